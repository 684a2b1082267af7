/* Rules over a node and the nodes it is from: an input that would not be read is an error, and so
 * is one that does not fit the others (R-DLM-10, R-TOK-5). */
#include "pipeline/config/recipe_resolve.h"
#include "pipeline/config/sweep.h"

static const char *method_of(const struct recipe_node *node) {
  return options_choice(&node->options, OPTION_method);
}

const struct recipe_node *recipe_tokenizer(const struct recipe *recipe,
                                           const struct recipe_node *tokens) {
  while (tokens->options.tokenizer == TOKENIZER_SAME && tokens->input_count > 0)
    tokens = &recipe->nodes[tokens->inputs[0]];
  return tokens;
}

static enum status check_tokenizer(const struct recipe *recipe, const struct recipe_node *node) {
  const bool same = node->options.tokenizer == TOKENIZER_SAME;
  CHECK(!same || node->input_count == 1, STATUS_MISMATCH,
        "%s: node '%s': tokenizer: same needs one tokenize node in `from:`, there are %zu",
        node->where, node->name, node->input_count);
  CHECK(same || node->input_count == 0, STATUS_MISMATCH,
        "%s: node '%s': '%s' would not be read; set tokenizer: same to take its tokenizer, or "
        "remove it from `from:`",
        node->where, node->name, recipe->nodes[node->inputs[0]].name);
  return STATUS_OK;
}

/* Only ELF learns from embeddings, and it needs them; their rows are those of the tokens. */
static enum status check_embeddings(const struct recipe *recipe, const struct recipe_node *node) {
  const struct recipe_node *embeddings, *rows, *embedded;
  TRY(recipe_upstream(&embeddings, recipe, node, IN_EMBED));
  if (node->options.method != METHOD_ELF) {
    CHECK(!embeddings, STATUS_MISMATCH,
          "%s: node '%s': method %s does not read the embeddings of '%s'; remove it from `from:`",
          node->where, node->name, method_of(node), embeddings->name);
    return STATUS_OK;
  }
  CHECK(embeddings, STATUS_MISMATCH,
        "%s: node '%s': method elf trains on embeddings; name an embed node in `from:`",
        node->where, node->name);
  TRY(recipe_upstream(&rows, recipe, node, IN_TOKENIZE));
  TRY(recipe_upstream(&embedded, recipe, embeddings, IN_TOKENIZE));
  CHECK(rows == embedded, STATUS_MISMATCH,
        "%s: node '%s': '%s' embeds the tokens of '%s', but the node trains on those of '%s'",
        node->where, node->name, embeddings->name, embedded->name, rows->name);
  return STATUS_OK;
}

static enum status check_distill(const struct recipe_node *node) {
  CHECK(node->options.method == METHOD_CFM || node->options.method == METHOD_ELF, STATUS_MISMATCH,
        "%s: node '%s': a generator of method %s cannot be distilled; only cfm and elf can",
        node->where, node->name, method_of(node));
  return STATUS_OK;
}

/* An encoder of the recipe is a t5, named where it is read and nowhere else. */
static enum status check_encoder(const struct recipe *recipe, const struct recipe_node *node) {
  const struct recipe_node *trained = NULL;
  for (size_t i = 0; i < node->input_count; i++) {
    const struct recipe_node *input = &recipe->nodes[node->inputs[i]];
    if (input->kind != KIND_PRETRAIN) continue;
    CHECK(!trained, STATUS_MISMATCH, "%s: node '%s' is from both '%s' and '%s': leave one out",
          node->where, node->name, trained->name, input->name);
    trained = input;
  }
  const bool wanted = node->options.encoder == ENCODER_TRAINED;
  CHECK(wanted || !trained, STATUS_MISMATCH,
        "%s: node '%s': '%s' would not be read; set encoder: trained, or remove it from `from:`",
        node->where, node->name, trained->name);
  CHECK(!wanted || (trained && trained->options.method == METHOD_T5), STATUS_MISMATCH,
        "%s: node '%s': encoder: trained needs a pretrain node of method t5 in `from:`",
        node->where, node->name);
  return STATUS_OK;
}

/* Said before hours of training are over, not after. */
static enum status check_step(const struct recipe *recipe, const struct recipe_node *node) {
  const struct recipe_node *trained;
  const int64_t step = node->options.weights_step;
  if (step == 0) return STATUS_OK;
  TRY(recipe_upstream(&trained, recipe, node, IN_PRETRAIN | IN_DISTILL));
  if (step == trained->options.steps) return STATUS_OK;
  const struct option_integers *published = &trained->options.publish_at;
  for (size_t i = 0; i < published->count; i++)
    if (published->values[i] == step) return STATUS_OK;
  FAIL(STATUS_MISMATCH,
       "%s: node '%s': '%s' does not keep the weights of step %lld; add it to its publish_at, or "
       "leave weights_step out",
       node->where, node->name, trained->name, (long long)step);
}

static enum status check_sample(const struct recipe *recipe, const struct recipe_node *node) {
  CHECK(node->options.method != METHOD_T5, STATUS_MISMATCH,
        "%s: node '%s': a t5 is an encoder for embed nodes; no texts are drawn from it",
        node->where, node->name);
  return check_step(recipe, node);
}

/* Of generators, evaluate reads the judge, and those whose likelihood has a bound; what others make
 * comes as samples. */
static enum status check_judge(const struct recipe *recipe, const struct recipe_node *node) {
  const struct recipe_node *judge = NULL;
  for (size_t i = 0; i < node->input_count; i++) {
    const struct recipe_node *input = &recipe->nodes[node->inputs[i]];
    const bool trains = input->kind == KIND_PRETRAIN || input->kind == KIND_DISTILL;
    if (!trains || input->options.method == METHOD_CFM) continue;
    CHECK(input->options.method == METHOD_AR, STATUS_MISMATCH,
          "%s: node '%s': '%s' is of method %s, but a judge is a pretrain node of method ar; name "
          "a sample node that draws from it instead",
          node->where, node->name, input->name, method_of(input));
    CHECK(!judge, STATUS_MISMATCH,
          "%s: node '%s': both '%s' and '%s' could be the judge; keep one of them in `from:`",
          node->where, node->name, judge->name, input->name);
    judge = input;
  }
  CHECK(judge, STATUS_MISMATCH,
        "%s: node '%s': no judge; add a pretrain node of method ar to its `from:`", node->where,
        node->name);
  return STATUS_OK;
}

bool recipe_draws_targets(const struct recipe *recipe, const struct recipe_node *node) {
  const struct recipe_node *tokens;
  if (node->kind != KIND_SAMPLE) return false;
  if (recipe_upstream(&tokens, recipe, node, IN_TOKENIZE) == STATUS_OK)
    return tokens && tokens->options.packing == PACKING_PAIRS;
  error_clear(); /* two are equally near: the stage says so */
  return false;
}

/* Targets are scored against references, and nothing else beside them. */
static enum status check_targets(const struct recipe *recipe, const struct recipe_node *node) {
  for (size_t i = 0; i < node->input_count; i++) {
    const struct recipe_node *input = &recipe->nodes[node->inputs[i]];
    CHECK(recipe_draws_targets(recipe, input), STATUS_MISMATCH,
          "%s: node '%s' scores targets of pairs, and '%s' draws none; give it an evaluate node of "
          "its own",
          node->where, node->name, input->name);
  }
  return STATUS_OK;
}

static enum status check_evaluation(const struct recipe *recipe, const struct recipe_node *node) {
  for (size_t i = 0; i < node->input_count; i++)
    if (recipe_draws_targets(recipe, &recipe->nodes[node->inputs[i]]))
      return check_targets(recipe, node);
  return check_judge(recipe, node);
}

static enum status check_sweep(const struct recipe *recipe, const struct recipe_node *node) {
  struct sweep sweep;
  TRY(sweep_expand(&sweep, recipe, node));
  sweep_free(&sweep);
  return STATUS_OK;
}

enum status recipe_check(const struct recipe *recipe, const struct recipe_node *node) {
  if (node->kind == KIND_TOKENIZE) return check_tokenizer(recipe, node);
  if (node->kind == KIND_PRETRAIN) return check_embeddings(recipe, node);
  if (node->kind == KIND_DISTILL) return check_distill(node);
  if (node->kind == KIND_EMBED) return check_encoder(recipe, node);
  if (node->kind == KIND_SAMPLE) return check_sample(recipe, node);
  if (node->kind == KIND_EVALUATE) return check_evaluation(recipe, node);
  if (node->kind == KIND_SWEEP) return check_sweep(recipe, node);
  return STATUS_OK;
}
