#include "stages/evaluate/evaluate.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "stages/evaluate/choices.h"
#include "stages/evaluate/judge.h"
#include "stages/evaluate/likelihood.h"
#include "stages/evaluate/pairs.h"
#include "stages/evaluate/reconstruction.h"
#include "stages/evaluate/texts.h"

enum { NAME_BYTES = 32 };

struct evaluator {
  struct stage *stage;
  struct solo judge;
  struct texts held_out;
  struct choices choices; /* none without the option */
  struct evaluation evaluation;
  double tokens_per_byte; /* of held-out documents */
};

/* The i-th node of `from:`. */
static const struct recipe_node *input_at(const struct stage *stage, size_t i) {
  return &stage->recipe->nodes[stage->node->inputs[i]];
}

static bool is_judge(const struct recipe_node *node) {
  return node->kind == KIND_PRETRAIN && node->options.method == METHOD_AR;
}

/* The recipe has exactly one judge (recipe_check.c). */
static const struct recipe_node *find_judge(const struct stage *stage) {
  size_t i = 0;
  while (!is_judge(input_at(stage, i))) i++;
  return input_at(stage, i);
}

/* Of a generator in `from:` that is not the judge the likelihood is bounded. */
static bool is_bounded(const struct recipe_node *node) {
  return (node->kind == KIND_PRETRAIN || node->kind == KIND_DISTILL) && !is_judge(node);
}

static bool has_bounds(const struct stage *stage) {
  for (size_t i = 0; i < stage->node->input_count; i++)
    if (is_bounded(input_at(stage, i))) return true;
  return false;
}

/* The most samples of a set among the nodes it is from, or rows of a bound: as many held-out rows
 * are scored. */
static int64_t rows_wanted(const struct stage *stage) {
  int64_t most = 1;
  if (has_bounds(stage)) most = stage->options->bound_rows;
  for (size_t i = 0; i < stage->node->input_count; i++) {
    const struct recipe_node *node = input_at(stage, i);
    if (node->kind == KIND_SAMPLE && node->options.samples > most) most = node->options.samples;
  }
  return most;
}

/* Ids of two tokenizers must not be mixed (R-TOK-5): all texts are those of the judge's. */
static enum status check_tokenizer(const struct evaluator *evaluator, const char *name,
                                   const char *hash) {
  const char *judge = model_tokenizer_hash(&evaluator->judge.model);
  CHECK(strcmp(hash, judge) == 0, STATUS_MISMATCH,
        "node '%s': '%s' holds ids of tokenizer %s, the judge '%s' reads those of %s",
        evaluator->stage->node->name, name, *hash ? hash : "(none named)",
        evaluator->evaluation.judge, judge);
  return STATUS_OK;
}

static enum status measure_diversity(struct evaluation_system *system, struct diversity_rows rows) {
  TRY(diversity_entropy(&system->token_entropy, rows));
  TRY(diversity_distinct(&system->distinct_1, rows, 1));
  return diversity_distinct(&system->distinct_2, rows, 2);
}

/* Measures one set under the judge. */
static enum status measure(struct evaluator *evaluator, struct evaluation_system *system,
                           struct texts *texts) {
  const struct diversity_rows rows = texts_rows(texts);
  system->texts = rows.count;
  TRY(comm_agree(evaluator->stage->comm,
                 check_tokenizer(evaluator, system->name, texts->tokenizer)));
  TRY(comm_agree(evaluator->stage->comm, measure_diversity(system, rows)));
  TRY(judge_perplexity(&system->judge_perplexity, &evaluator->judge, evaluator->stage, rows));
  log_line(evaluator->stage->log, "%s%s%s: judge perplexity %.2f, token entropy %.3f", system->name,
           *system->method ? ", " : "", system->method, system->judge_perplexity,
           system->token_entropy);
  for (int i = 0; i < EVALUATION_TEXTS; i++) {
    system->samples[i] = texts->samples[i];
    texts->samples[i] = NULL;
  }
  return STATUS_OK;
}

static enum status add_system(struct evaluator *evaluator, struct evaluation_system **system) {
  *system = evaluation_add_system(&evaluator->evaluation);
  CHECK(*system, STATUS_ENVIRONMENT, "out of memory: the results of node '%s'",
        evaluator->stage->node->name);
  return STATUS_OK;
}

/* Name, method and remarks of the generator behind a sample node. */
static enum status describe(struct evaluation_system *system, const struct stage *stage,
                            const struct recipe_node *sample) {
  const struct recipe_node *generator, *shape, *encoder;
  TRY(recipe_upstream(&generator, stage->recipe, sample, IN_PRETRAIN | IN_DISTILL));
  TRY(model_shape(&shape, stage->recipe, generator));
  TRY(recipe_upstream(&encoder, stage->recipe, shape, IN_EMBED));
  snprintf(system->name, sizeof system->name, "%s", generator->name);
  snprintf(system->method, sizeof system->method, "%s",
           options_choice(&shape->options, OPTION_method));
  if (encoder && encoder->options.encoder == ENCODER_RANDOM && model_kind(shape)->needs_embeddings)
    snprintf(system->note, sizeof system->note, "random encoder");
  return STATUS_OK;
}

static double speed_of(const char *folder, const char *set) {
  struct manifest manifest = {0};
  char key[NAME_BYTES + 32];
  double speed = 0;
  snprintf(key, sizeof key, "tokens_per_second.%s", set);
  if (manifest_read(&manifest, folder) != STATUS_OK ||
      scalars_get_real(&manifest.timings, key, &speed) != STATUS_OK)
    error_clear(); /* a speed is not known: the report shows a dash */
  manifest_free(&manifest);
  return speed;
}

static enum status evaluate_set(struct evaluator *evaluator, const struct recipe_node *node,
                                const char *set, int64_t nfe) {
  struct evaluation_system *system;
  struct texts texts;
  char folder[STAGE_PATH_BYTES];
  TRY(stage_folder(folder, evaluator->stage, node));
  TRY(add_system(evaluator, &system));
  TRY(describe(system, evaluator->stage, node));
  system->nfe = nfe;
  system->tokens_per_second = speed_of(folder, set);
  TRY(comm_agree(evaluator->stage->comm, texts_read(&texts, folder, set, node->options.samples)));
  const enum status status = measure(evaluator, system, &texts);
  texts_free(&texts);
  return status;
}

static enum status evaluate_samples(struct evaluator *evaluator, const struct recipe_node *node) {
  const struct stage *stage = evaluator->stage;
  const struct recipe_node *generator, *shape;
  TRY(recipe_upstream(&generator, stage->recipe, node, IN_PRETRAIN | IN_DISTILL));
  TRY(model_shape(&shape, stage->recipe, generator));
  if (!model_kind(shape)->has_nfe) return evaluate_set(evaluator, node, "samples", 0);
  for (size_t i = 0; i < node->options.nfe.count; i++) {
    char set[NAME_BYTES];
    snprintf(set, sizeof set, "nfe%lld", (long long)node->options.nfe.values[i]);
    TRY(evaluate_set(evaluator, node, set, node->options.nfe.values[i]));
  }
  return STATUS_OK;
}

static enum status evaluate_held_out(struct evaluator *evaluator) {
  struct evaluation_system *system;
  TRY(add_system(evaluator, &system));
  snprintf(system->name, sizeof system->name, "held-out text");
  return measure(evaluator, system, &evaluator->held_out);
}

static enum status evaluate_choices(struct evaluator *evaluator, struct solo *solo,
                                    const struct recipe_node *node) {
  if (evaluator->choices.rows == 0) return STATUS_OK;
  return choices_measure(&evaluator->evaluation, &evaluator->choices, solo, evaluator->stage, node);
}

/* Measures a trained model itself on held-out rows. */
static enum status evaluate_model(struct evaluator *evaluator, const struct recipe_node *node) {
  struct solo solo;
  struct evaluation *evaluation = &evaluator->evaluation;
  const struct diversity_rows rows = texts_rows(&evaluator->held_out);
  const bool bounded = is_bounded(node);
  /* BF16 would round what the inverse Gram matrix multiplies. */
  const enum precision_choice precision =
      bounded ? PRECISION_FP32 : evaluator->stage->options->precision;
  TRY(solo_open(&solo, evaluator->stage, node, 0, precision,
                bounded ? "likelihood" : "reconstruction"));
  enum status status =
      comm_agree(evaluator->stage->comm,
                 check_tokenizer(evaluator, node->name, model_tokenizer_hash(&solo.model)));
  if (status == STATUS_OK && bounded)
    status = likelihood_measure(evaluation, &solo, evaluator->stage, node, rows,
                                evaluator->tokens_per_byte);
  if (status == STATUS_OK && bounded) status = evaluate_choices(evaluator, &solo, node);
  if (status == STATUS_OK && !bounded)
    status = reconstruction_measure(evaluation, &solo, evaluator->stage, node, rows);
  solo_close(&solo);
  return status;
}

static enum status evaluate_inputs(struct evaluator *evaluator) {
  const struct stage *stage = evaluator->stage;
  TRY(evaluate_held_out(evaluator));
  for (size_t i = 0; i < stage->node->input_count; i++) {
    const struct recipe_node *node = input_at(stage, i);
    if (node->kind == KIND_SAMPLE) TRY(evaluate_samples(evaluator, node));
    if (node->kind == KIND_AUTOENCODE || is_bounded(node)) TRY(evaluate_model(evaluator, node));
  }
  return STATUS_OK;
}

/* What the tokenize stage knows of the held-out rows. */
static enum status read_statistics(struct evaluator *evaluator, const char *folder) {
  char path[STAGE_PATH_BYTES];
  struct text bytes = {0};
  CHECK(snprintf(path, sizeof path, "%s/statistics.json", folder) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  TRY(file_read(&bytes, path));
  json_t *root = json_loadb(bytes.bytes, bytes.length, 0, NULL);
  const json_t *value = json_object_get(root, "unigram_loss_nats");
  const json_t *side = json_object_get(root, "held_out");
  const double tokens = json_number_value(json_object_get(side, "document_tokens"));
  const bool found = json_is_number(value);
  evaluator->evaluation.unigram_loss = json_number_value(value);
  evaluator->tokens_per_byte = tokens / json_number_value(json_object_get(side, "bytes"));
  json_decref(root);
  text_free(&bytes);
  CHECK(found, STATUS_DAMAGED, "'%s': no number unigram_loss_nats; tokenize again", path);
  return STATUS_OK;
}

static enum status open_texts(struct evaluator *evaluator) {
  char folder[STAGE_PATH_BYTES];
  TRY(stage_input(folder, NULL, evaluator->stage, IN_TOKENIZE));
  TRY(read_statistics(evaluator, folder));
  return texts_read(&evaluator->held_out, folder, "held_out", rows_wanted(evaluator->stage));
}

static enum status open_choices(struct evaluator *evaluator) {
  const char *path = evaluator->stage->options->choices;
  const struct flow *judge = &evaluator->judge.model.flow;
  char folder[STAGE_PATH_BYTES];
  struct tokenizer *tokenizer;
  if (!*path) return STATUS_OK;
  TRY(stage_input(folder, NULL, evaluator->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&tokenizer, folder));
  const enum status status =
      choices_read(&evaluator->choices, tokenizer, judge->positions, judge->pad, path);
  tokenizer_close(tokenizer);
  return status;
}

static enum status write_result(struct evaluator *evaluator) {
  const struct stage *stage = evaluator->stage;
  struct evaluation *evaluation = &evaluator->evaluation;
  char path[STAGE_PATH_BYTES];
  const struct model *model = &evaluator->judge.model;
  evaluation->positions = evaluator->held_out.positions;
  snprintf(evaluation->judge_hash, sizeof evaluation->judge_hash, "%s", model_weights_hash(model));
  snprintf(evaluation->tokenizer_hash, sizeof evaluation->tokenizer_hash, "%s",
           model_tokenizer_hash(model));
  if (stage->comm->rank != 0) return STATUS_OK;
  CHECK(snprintf(path, sizeof path, "%s/" EVALUATION_FILE_NAME, stage->folder) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", stage->folder);
  TRY(evaluation_write(evaluation, path));
  return manifest_add_file(stage->manifest, stage->folder, EVALUATION_FILE_NAME);
}

static enum status evaluate_all(struct evaluator *evaluator) {
  const struct recipe_node *judge = find_judge(evaluator->stage);
  snprintf(evaluator->evaluation.judge, sizeof evaluator->evaluation.judge, "%s", judge->name);
  TRY(comm_agree(evaluator->stage->comm, open_texts(evaluator)));
  TRY(solo_open(&evaluator->judge, evaluator->stage, judge, 0,
                evaluator->stage->options->precision, "judge"));
  enum status status = comm_agree(evaluator->stage->comm, open_choices(evaluator));
  if (status == STATUS_OK) status = evaluate_choices(evaluator, &evaluator->judge, judge);
  if (status == STATUS_OK) status = evaluate_inputs(evaluator);
  if (status == STATUS_OK) status = write_result(evaluator);
  solo_close(&evaluator->judge);
  return status;
}

enum status evaluate_stage(struct stage *stage) {
  struct evaluator evaluator = {.stage = stage};
  if (pairs_apply(stage)) return pairs_evaluate(stage);
  const enum status status = comm_agree(stage->comm, evaluate_all(&evaluator));
  texts_free(&evaluator.held_out);
  choices_free(&evaluator.choices);
  evaluation_free(&evaluator.evaluation);
  return status;
}
