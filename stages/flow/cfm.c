/* Categorical flow maps: base flow (arXiv 2605.07820 and 2604.09784; methods in docs/glossary).
 *
 * The network sees the state's image under the input table and predicts the distribution of the
 * clean token; the objective is cross-entropy at a stratified time, with an adaptive weight.
 */
#include <math.h>

#include "sharding/dense.h"
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/rmsnorm.h"

static const double NORM_EPSILON = 1e-6;
static const double JITTER = 1e-6; /* of the Gram matrix, relative to its mean diagonal */

enum { PART_CE, PART_DISTILL };

static const char *const parts[] = {"ce", "distill", NULL};

static void declare(const struct flow *flow, struct cfm_model *model, struct params *params) {
  const struct options *options = flow->options;
  const struct vocab *vocab = flow->vocab;
  const double scale = 1 / sqrt((double)options->width);
  model->table = params_add_table(params, vocab->size, options->width, PARAM_NORMAL, scale,
                                  "embedding.weight");
  cfm_transformer_declare(&model->network, params,
                          &(struct cfm_transformer_config){.depth = options->depth,
                                                           .width = options->width,
                                                           .heads = options->heads,
                                                           .feedforward = options->feedforward,
                                                           .state_width = options->width,
                                                           .condition = options->cfm_condition,
                                                           .recompute = options->recompute});
  model->output =
      params_add_table(params, vocab->size, options->width, PARAM_NORMAL, 0.02, "head.weight");
  param_slice(model->table, vocab->rows.begin, vocab->rows.end - vocab->rows.begin);
  param_slice(model->output, vocab->rows.begin, vocab->rows.end - vocab->rows.begin);
}

/* What dense_gram wants, and a row for multiply_rows. */
static enum status take_scratch(struct flow *flow, struct cfm *cfm, struct arena *arena) {
  struct arena measured;
  arena_measure(&measured, "gram");
  arena_take(&measured, (size_t)cfm->width * sizeof(double));
  const struct dense_table table = {.dtype = flow->kernels->element, .C = cfm->width};
  TRY(dense_gram(flow->vocab, NULL, &table, &measured));
  const size_t bytes = measured.peak;
  cfm->scratch = (struct arena){.account = "gram", .base = arena_take(arena, bytes), .size = bytes};
  return STATUS_OK;
}

/* What the schedule's decisions are made from: the state, or what the network sees of it. */
static double leverage(const struct flow *flow) {
  const double seen = (double)flow->options->width / (double)flow->vocab->size;
  return flow->options->cfm_decoding == DECODING_EMBEDDED && seen < 1 ? seen : 1;
}

static enum status init(struct flow *flow, struct arena *arena) {
  struct cfm *cfm = arena_take_zeroed(arena, sizeof *cfm);
  const int64_t d = flow->options->width;
  flow->state = cfm;
  cfm->width = d;
  cfm->exact = arena_take_zeroed(arena, (size_t)(d * d) * sizeof(double));
  cfm->square = arena_take_zeroed(arena, (size_t)(d * d) * sizeof(double));
  cfm->tile = arena_take_zeroed(arena, (size_t)(CFM_TILE_ROWS * d) * sizeof(float));
  TRY(take_scratch(flow, cfm, arena));
  cfm_schedule_init(&cfm->schedule, flow->vocab->size, flow->options->cfm_lambda, leverage(flow));
  declare(flow, &cfm->model, flow->params);
  cfm->factor = params_add_matrix(flow->params, d, d, PARAM_ZERO, 0, "embedding.noise_factor");
  cfm->factor->derived = true;
  if (!flow->distill) return STATUS_OK;
  cfm->model.table->frozen = cfm->factor->frozen = true; /* both models read the same state */
  declare(flow, &cfm->teacher, flow->teacher);
  return STATUS_OK;
}

static void weights(const struct flow *flow, const struct flow_batch *batch, double *weight) {
  weight[PART_CE] = weight[PART_DISTILL] = 0;
  for (int64_t row = 0; row < batch->count; row++) {
    const struct cfm_row drawn = cfm_draw_row(flow, batch, row);
    weight[drawn.jump ? PART_DISTILL : PART_CE] += (double)drawn.covered;
  }
}

struct value *cfm_hidden(struct tape *tape, const struct cfm_model *model, struct value *y,
                         const double *from, const double *to, int64_t batch, int64_t positions) {
  struct value *state = rmsnorm_forward(tape, y, NULL, 1, NORM_EPSILON);
  return cfm_transformer_forward(tape, &model->network, state, from, to, batch, positions);
}

void cfm_adapt(const struct flow *flow, float *weight, const double *distance, int64_t count) {
  const double power = flow->options->cfm_weight_power;
  for (int64_t i = 0; power > 0 && i < count; i++)
    if (weight[i] > 0)
      weight[i] *= (float)pow(distance[i] + flow->options->cfm_weight_constant, -power);
}

static void scale_weights(float *weight, double total, int64_t count) {
  const float factor = total > 0 ? (float)(1 / total) : 0;
  for (int64_t i = 0; i < count; i++) weight[i] *= factor;
}

/* Cross-entropy of the rows on the diagonal. */
static void diagonal_loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                          const struct cfm_draw *draw, struct value *hidden, double total,
                          struct flow_losses *losses) {
  const struct cfm *cfm = flow->state;
  const int64_t n = hidden->rows;
  const size_t bytes = (size_t)n * sizeof(double);
  struct head_result result = {.loss = arena_take_zeroed(tape->records, bytes),
                               .log_sum_exp = arena_take_zeroed(tape->records, bytes),
                               .target_logit = arena_take_zeroed(tape->records, bytes),
                               .square_sum = arena_take_zeroed(tape->records, bytes)};
  head_forward(tape, &result, hidden,
               &(struct head){.vocab = flow->vocab,
                              .w = cfm->model.output,
                              .targets = batch->tokens,
                              .weight = draw->weight});
  for (int64_t i = 0; i < n; i++) {
    if (draw->weight[i] <= 0) continue;
    losses->sum[PART_CE] += result.loss[i];
    losses->weight[PART_CE] += 1;
    /* ||q - e_c||^2 */
    result.square_sum[i] += 1 - 2 * exp(result.target_logit[i] - result.log_sum_exp[i]);
  }
  cfm_adapt(flow, draw->weight, result.square_sum, n);
  scale_weights(draw->weight, total, n);
}

static enum status loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const double *total, struct flow_losses *losses) {
  struct cfm *cfm = flow->state;
  struct cfm_draw draw = cfm_draw(flow, batch, tape);
  *losses = (struct flow_losses){0};
  struct value *y = cfm_noisy(flow, tape, batch, &draw);
  struct value *hidden =
      cfm_hidden(tape, &cfm->model, y, draw.from, draw.to, batch->count, batch->positions);
  diagonal_loss(flow, tape, batch, &draw, hidden, total[PART_CE], losses);
  if (!flow->distill) return tape->status;
  return cfm_distill_loss(flow, tape, batch, &draw, y, hidden, total[PART_DISTILL], losses);
}

static void store_factor(struct flow *flow, const struct cfm *cfm) {
  const int64_t count = cfm->width * cfm->width;
  for (int64_t first = 0; first < count; first += cfm->width) {
    for (int64_t i = 0; i < cfm->width; i++) cfm->tile[i] = (float)cfm->exact[first + i];
    unsigned char *target = cfm->factor->data;
    target += (size_t)first * dtype_bytes(flow->kernels->element);
    flow->kernels->convert_from_float(target, cfm->tile, cfm->width);
  }
}

/* L with L L' = E'E, from the rows of all members. */
static enum status prepare(struct flow *flow) {
  struct cfm *cfm = flow->state;
  const struct dense_table table = {
      .rows = cfm->model.table->data, .dtype = flow->kernels->element, .C = cfm->width};
  TRY(dense_gram(flow->vocab, cfm->exact, &table, &cfm->scratch));
  TRY(dense_cholesky(cfm->exact, cfm->width, JITTER));
  store_factor(flow, cfm);
  return STATUS_OK;
}

/* tile[rows, d] = table rows [first, first + rows) times X, X[k, j] = square[k, j]. */
static void multiply_rows(const struct flow *flow, struct cfm *cfm, int64_t first, int64_t rows,
                          double *row) {
  const int64_t d = cfm->width;
  const unsigned char *table = cfm->model.table->data;
  const size_t row_bytes = (size_t)d * dtype_bytes(flow->kernels->element);
  flow->kernels->convert_to_float(cfm->tile, table + (size_t)first * row_bytes, rows * d);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < d; j++) row[j] = 0;
    for (int64_t k = 0; k < d; k++)
      for (int64_t j = 0; j < d; j++)
        row[j] += (double)cfm->tile[i * d + k] * cfm->square[k * d + j];
    for (int64_t j = 0; j < d; j++) cfm->tile[i * d + j] = (float)row[j];
  }
}

/* The Rao-Blackwellised gradient of the table through the noise: with D the gradient of L and
 * g = L eta, E[eps | g] = E G^-1 g gives dE += E (D L^-1)' (docs/decisions). */
static enum status complete_gradients(struct flow *flow) {
  struct cfm *cfm = flow->state;
  const int64_t d = cfm->width, rows = cfm->model.table->row_count;
  const float *factor_gradient = cfm->factor->gradient;
  float *gradient = cfm->model.table->gradient;
  if (!gradient) return STATUS_OK;
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++) cfm->square[j * d + i] = (double)factor_gradient[i * d + j];
  dense_solve_lower_transposed(cfm->exact, cfm->square, d, d);
  double *row = arena_take(&cfm->scratch, (size_t)d * sizeof *row);
  for (int64_t first = 0; first < rows; first += CFM_TILE_ROWS) {
    const int64_t count = rows - first < CFM_TILE_ROWS ? rows - first : CFM_TILE_ROWS;
    multiply_rows(flow, cfm, first, count, row);
    for (int64_t i = 0; i < count * d; i++) gradient[first * d + i] += cfm->tile[i];
  }
  arena_reset(&cfm->scratch, 0);
  return STATUS_OK;
}

const struct flow_kind flow_cfm = {.name = "cfm",
                                   .parts = parts,
                                   .has_nfe = true,
                                   .init = init,
                                   .weights = weights,
                                   .loss = loss,
                                   .prepare = prepare,
                                   .complete_gradients = complete_gradients,
                                   .sample = cfm_sample};
