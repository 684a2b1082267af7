#include "stages/sample/given.h"

#include <stdlib.h>
#include <string.h>

/* The encoder of the embed node that the model was trained on. */
static enum status open_encoder(struct given *given, const struct stage *stage,
                                const struct model *model) {
  char folder[STAGE_PATH_BYTES];
  const struct recipe_node *generator, *embed;
  TRY(recipe_upstream(&generator, stage->recipe, stage->node, IN_PRETRAIN | IN_DISTILL));
  TRY(recipe_upstream(&embed, stage->recipe, generator, IN_EMBED));
  CHECK(embed, STATUS_MISMATCH, "node '%s': no embed node is upstream of '%s'", stage->node->name,
        generator->name);
  TRY(latents_open(&given->latents,
                   &(struct latents_request){.encoder = {.stage = stage,
                                                         .node = embed,
                                                         .vocabulary = model->vocab.size,
                                                         .tokenizer = model_tokenizer_hash(model)},
                                             .positions = model->flow.positions,
                                             .most = given->rows.most}));
  TRY(stage_folder(folder, stage, embed));
  return latents_take_scale(&given->latents, folder);
}

static enum status take_buffers(struct given *given, const struct flow *flow) {
  const size_t most = (size_t)given->rows.most, n = most * (size_t)flow->positions;
  given->before = calloc(most, sizeof *given->before);
  given->after = calloc(most, sizeof *given->after);
  given->beginning = calloc(most * (size_t)given->prefix + 1, sizeof *given->beginning);
  CHECK(given->before && given->after && given->beginning, STATUS_ENVIRONMENT,
        "out of memory: what is given to %zu texts", most);
  if (!flow->kind->needs_embeddings) return STATUS_OK;
  given->ranges = calloc(n, sizeof *given->ranges);
  CHECK(given->ranges, STATUS_ENVIRONMENT, "out of memory: %zu tokens that are given", n);
  return STATUS_OK;
}

static enum status open_rows(struct given *given, const struct stage *stage,
                             const struct flow *flow, int64_t most) {
  char folder[STAGE_PATH_BYTES];
  TRY(stage_input(folder, NULL, stage, IN_TOKENIZE));
  return token_rows_open(&given->rows, &(struct token_rows_request){
                                           .folder = folder,
                                           .side = options_choice(stage->options, OPTION_side),
                                           .vocabulary = flow->vocab->size,
                                           .pad = flow->pad,
                                           .end = flow->eos,
                                           .positions = flow->positions,
                                           .most = most});
}

static enum status check(const struct given *given, const struct stage *stage,
                         const struct flow *flow) {
  const int64_t all = given->prefix + given->suffix;
  CHECK(!given->rows.pairs || flow->kind->needs_embeddings, STATUS_MISMATCH,
        "node '%s': the rows are pairs, which a model of method %s does not read; sample an elf",
        stage->node->name, flow->kind->name);
  CHECK(!given->rows.pairs || all == 0, STATUS_MISMATCH,
        "node '%s': the rows are pairs, whose sources are given; leave out prefix and suffix",
        stage->node->name);
  CHECK(all < flow->positions, STATUS_MISMATCH,
        "node '%s': prefix (%lld) and suffix (%lld) leave nothing of %lld tokens to draw",
        stage->node->name, (long long)given->prefix, (long long)given->suffix,
        (long long)flow->positions);
  return STATUS_OK;
}

enum status given_open(struct given *given, const struct stage *stage, const struct model *model,
                       int64_t most) {
  const struct flow *flow = &model->flow;
  *given = (struct given){.prefix = stage->options->prefix, .suffix = stage->options->suffix};
  if (!flow->kind->needs_embeddings && given->prefix == 0) return STATUS_OK;
  TRY(open_rows(given, stage, flow, most));
  TRY(check(given, stage, flow));
  given->any = given->rows.pairs || given->prefix + given->suffix > 0;
  if (!given->any) return STATUS_OK;
  TRY(take_buffers(given, flow));
  return flow->kind->needs_embeddings ? open_encoder(given, stage, model) : STATUS_OK;
}

void given_close(struct given *given) {
  token_rows_close(&given->rows);
  latents_close(&given->latents);
  free(given->before);
  free(given->after);
  free(given->beginning);
  free(given->ranges);
  *given = (struct given){0};
}

/* Where text i is given; all of it sees that and nothing else. */
static enum status place(struct given *given, int64_t i, int64_t row) {
  const struct token_rows *rows = &given->rows;
  const int64_t T = rows->positions;
  given->before[i] = rows->pairs ? rows->sources[i] : (int32_t)given->prefix;
  given->after[i] = (int32_t)given->suffix;
  CHECK(rows->pairs ||
            (rows->lengths[i] >= given->prefix && (given->suffix == 0 || rows->lengths[i] == T)),
        STATUS_MISMATCH,
        "'%s', side %s, row %lld has %d of %lld tokens, too few for a prefix of %lld and a suffix "
        "of %lld",
        rows->store.folder, rows->side, (long long)row, rows->lengths[i], (long long)T,
        (long long)given->prefix, (long long)given->suffix);
  for (int64_t t = 0; given->ranges && t < T; t++)
    given->ranges[i * T + t] =
        (struct attention_range){.first_end = given->before[i],
                                 .second_begin = (int32_t)(T - given->after[i]),
                                 .second_end = (int32_t)T};
  memcpy(given->beginning + i * given->prefix, rows->tokens + i * T,
         (size_t)given->prefix * sizeof *given->beginning);
  return STATUS_OK;
}

static enum status embed_texts(void *embedder, const int32_t *tokens, const int32_t *lengths) {
  struct given *given = embedder;
  return latents_embed(&given->latents, &(struct latents_rows){.count = given->count,
                                                               .tokens = tokens,
                                                               .lengths = lengths,
                                                               .sources = given->before});
}

enum status given_read(struct given *given, int64_t first, int64_t count) {
  if (!given->any) return STATUS_OK;
  TRY(token_rows_read(&given->rows, first, count));
  given->count = count;
  for (int64_t i = 0; i < count; i++) TRY(place(given, i, first + i));
  given->shown = (struct flow_given){.latents = given->latents.values,
                                     .tokens = given->rows.tokens,
                                     .before = given->before,
                                     .after = given->after,
                                     .embed = embed_texts,
                                     .embedder = given,
                                     .source = given->rows.pairs};
  if (!given->latents.values) return STATUS_OK;
  return latents_embed(&given->latents, &(struct latents_rows){.count = count,
                                                               .tokens = given->rows.tokens,
                                                               .ranges = given->ranges});
}

void given_show(const struct given *given, struct flow_request *request) {
  if (!given->any) return;
  if (given->latents.values) {
    request->given = &given->shown;
    return;
  }
  request->prefix = given->beginning;
  request->prefix_length = given->prefix;
}
