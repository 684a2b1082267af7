/* Letters: n rows, H heads, D head width. */
#include "stages/model/networks/t5_block.h"

#include <math.h>
#include <stdio.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/dropout.h"
#include "stages/model/layers/embedding.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/vocab_embedding.h"

enum { PLACE_BYTES = 96 };

/* Its initial values have the deviation `scale`. */
static struct param *matrix(struct params *params, int64_t rows, int64_t cols, double scale,
                            const char *prefix, const char *name) {
  return params_add_matrix(params, rows, cols, PARAM_NORMAL, scale, "%s.%s.weight", prefix, name);
}

static struct param *norm(struct params *params, int64_t width, const char *prefix) {
  return params_add_vector(params, width, PARAM_ONE, 0, "%s.layer_norm.weight", prefix);
}

void t5_attention_declare(struct t5_attention *attention, struct params *params,
                          const struct t5_config *config, const char *prefix, const char *kind) {
  char maps[PARAM_NAME_BYTES];
  const int64_t inner = config->heads * config->head_dim, width = config->width;
  const double scale = 1 / sqrt((double)width);
  snprintf(maps, sizeof maps, "%s.%s", prefix, kind);
  attention->norm = norm(params, width, prefix);
  attention->q = matrix(params, inner, width, scale / sqrt((double)config->head_dim), maps, "q");
  attention->k = matrix(params, inner, width, scale, maps, "k");
  attention->v = matrix(params, inner, width, scale, maps, "v");
  attention->o = matrix(params, width, inner, 1 / sqrt((double)inner), maps, "o");
}

void t5_feedforward_declare(struct t5_feedforward *feedforward, struct params *params,
                            const struct t5_config *config, const char *prefix) {
  char maps[PARAM_NAME_BYTES];
  const int64_t width = config->width, inner = config->feedforward;
  const double scale = 1 / sqrt((double)width);
  snprintf(maps, sizeof maps, "%s.DenseReluDense", prefix);
  feedforward->norm = norm(params, width, prefix);
  feedforward->wi = matrix(params, inner, width, scale, maps, config->gated ? "wi_0" : "wi");
  feedforward->wi_gated = config->gated ? matrix(params, inner, width, scale, maps, "wi_1") : NULL;
  feedforward->wo = matrix(params, width, inner, 1 / sqrt((double)inner), maps, "wo");
}

struct param *t5_bias_declare(struct params *params, const struct t5_config *config,
                              const char *stack) {
  struct param *bias = params_add_matrix(
      params, config->buckets, config->heads, PARAM_NORMAL, 1 / sqrt((double)config->width),
      "%s.block.0.layer.0.SelfAttention.relative_attention_bias.weight", stack);
  bias->kind = PARAM_TOKENS; /* rows that are looked up: nothing for Muon */
  return bias;
}

struct value *t5_drop(struct tape *tape, const struct t5_pass *pass, struct value *x,
                      const char *place) {
  const struct t5_dropout *dropout = pass->dropout;
  if (!dropout || dropout->share <= 0) return x;
  char purpose[PLACE_BYTES];
  snprintf(purpose, sizeof purpose, "t5.dropout.%s", place);
  struct random_stream *streams = arena_take(tape->records, (size_t)pass->batch * sizeof *streams);
  for (int64_t b = 0; b < pass->batch; b++)
    streams[b] = random_open(dropout->seed, purpose, (uint64_t)dropout->samples[b], dropout->step);
  return dropout_forward(tape, x, dropout->share, streams, pass->positions);
}

struct value *t5_embed(struct tape *tape, const struct t5_pass *pass, struct vocab *vocab,
                       struct param *table, const int32_t *ids, const char *place) {
  const int64_t n = pass->batch * pass->positions;
  struct value *h = vocab ? vocab_embedding_forward(tape, vocab, ids, n, table)
                          : embedding_forward(tape, ids, n, table);
  return t5_drop(tape, pass, h, place);
}

struct value *t5_attention_forward(struct tape *tape, const struct t5_attention *attention,
                                   const struct t5_pass *pass, struct value *h,
                                   struct value *memory, const struct attention *mask,
                                   const char *place) {
  struct value *x = rmsnorm_forward(tape, h, attention->norm, 1, pass->config->epsilon);
  struct value *read = memory ? memory : x;
  struct value *q = linear_forward(tape, x, attention->q, NULL);
  struct value *k = linear_forward(tape, read, attention->k, NULL);
  struct value *v = linear_forward(tape, read, attention->v, NULL);
  struct value *mixed = attention_forward(tape, q, k, v, mask);
  struct value *y = linear_forward(tape, mixed, attention->o, NULL);
  return combine_add(tape, h, t5_drop(tape, pass, y, place));
}

static struct value *activate(struct tape *tape, const struct t5_feedforward *feedforward,
                              struct value *x) {
  struct value *inner = linear_forward(tape, x, feedforward->wi, NULL);
  if (!feedforward->wi_gated) return feedforward_activation(tape, inner, ACTIVATION_RELU);
  struct value *linear = linear_forward(tape, x, feedforward->wi_gated, NULL);
  return feedforward_gated(tape, combine_columns(tape, inner, linear), ACTIVATION_GELU);
}

struct value *t5_feedforward_forward(struct tape *tape, const struct t5_feedforward *feedforward,
                                     const struct t5_pass *pass, struct value *h,
                                     const char *place) {
  char within[PLACE_BYTES];
  snprintf(within, sizeof within, "%s.inner", place);
  struct value *x = rmsnorm_forward(tape, h, feedforward->norm, 1, pass->config->epsilon);
  x = t5_drop(tape, pass, activate(tape, feedforward, x), within);
  struct value *y = linear_forward(tape, x, feedforward->wo, NULL);
  return combine_add(tape, h, t5_drop(tape, pass, y, place));
}
