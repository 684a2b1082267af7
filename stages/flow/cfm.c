/* Categorical flow maps: base flow (arXiv 2605.07820 and 2604.09784; methods in docs/glossary).
 *
 * The network sees the state's image under the input table and predicts the distribution of the
 * clean token; the objective is cross-entropy at a stratified time, with an adaptive weight.
 */
#include <math.h>

#include "stages/flow/cfm_state.h"
#include "stages/flow/penalties.h"
#include "stages/model/layers/rmsnorm.h"

static const double NORM_EPSILON = 1e-6;

enum { PART_CE, PART_DISTILL, PART_PENALTIES };

static const char *const parts[] = {"ce", "distill", PENALTIES_NAMES, NULL};

/* Settings found at the width cfm_base_width serve any other: matrices that read channels of the
 * width learn at a rate that falls as 1 / width, and the head also starts as small (arXiv
 * 2203.03466, table 8; the state is normalised, so the table keeps the size of its entries). */
static double width_ratio(const struct options *options) {
  const int64_t base = options->cfm_base_width;
  return base > 0 ? (double)base / (double)options->width : 1;
}

static struct cfm_transformer_config configure(const struct options *options) {
  return (struct cfm_transformer_config){.depth = options->depth,
                                         .width = options->width,
                                         .heads = options->heads,
                                         .feedforward = options->feedforward,
                                         .state_width = options->width,
                                         .condition = options->cfm_condition,
                                         .bounded = options->cfm_modulation == MODULATION_BOUNDED,
                                         .shared = options->cfm_modulation_shared,
                                         .plain_attention = !options->cfm_qk_norm,
                                         .spectral = options->cfm_initial == INITIAL_SPECTRAL,
                                         .rate = width_ratio(options),
                                         .flag = options->cfm_clean_flag,
                                         .recompute = options->recompute};
}

static void declare_table(const struct flow *flow, struct cfm_model *model, struct params *params) {
  const struct options *options = flow->options;
  const double scale = 1 / sqrt((double)options->width * width_ratio(options));
  const struct vocab *vocab = flow->vocab;
  model->table = params_add_table(params, vocab->size, options->width, PARAM_NORMAL, scale,
                                  "embedding.weight");
  param_slice(model->table, vocab->rows.begin, vocab->rows.end - vocab->rows.begin);
}

static void declare(const struct flow *flow, struct cfm_model *model, struct params *params) {
  const struct options *options = flow->options;
  const struct vocab *vocab = flow->vocab;
  const struct cfm_transformer_config config = configure(options);
  cfm_transformer_declare(&model->network, params, &config);
  model->output = params_add_table(params, vocab->size, options->width, PARAM_NORMAL,
                                   0.02 * config.rate, "head.weight");
  model->output->rate = config.rate;
  if (options->cfm_weight_learned) cfm_balance_declare(&model->balance, params);
  param_slice(model->output, vocab->rows.begin, vocab->rows.end - vocab->rows.begin);
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
  cfm_schedule_init(&cfm->schedule, flow->vocab->size, flow->options->cfm_lambda, leverage(flow));
  /* Gradients are complete in about the reverse order of declarations: that of noise is the last.
   */
  cfm->factor = params_add_matrix(flow->params, d, d, PARAM_ZERO, 0, "embedding.noise_factor");
  cfm->factor->derived = true;
  declare_table(flow, &cfm->model, flow->params);
  declare(flow, &cfm->model, flow->params);
  TRY(cfm_noise_init(flow, arena));
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
  penalties_weights(flow, batch, weight[PART_CE], weight + PART_PENALTIES);
}

struct value *cfm_hidden(struct tape *tape, const struct cfm_model *model, struct value *y,
                         const struct cfm_times *times, int64_t batch, int64_t positions) {
  struct value *state = rmsnorm_forward(tape, y, NULL, 1, NORM_EPSILON);
  return cfm_transformer_forward(tape, &model->network, state, times, batch, positions);
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
  struct head head = {.vocab = flow->vocab,
                      .w = cfm->model.output,
                      .targets = batch->tokens,
                      .weight = draw->weight};
  penalties_open(flow, batch, tape, n, &head, &result);
  head_forward(tape, &result, hidden, &head);
  for (int64_t i = 0; i < n; i++) {
    if (draw->weight[i] <= 0) continue;
    losses->sum[PART_CE] += result.loss[i];
    losses->weight[PART_CE] += 1;
    result.loss[i] += penalties_add(&head, &result, i, losses, PART_PENALTIES);
    /* ||q - e_c||^2 */
    result.square_sum[i] += 1 - 2 * exp(result.target_logit[i] - result.log_sum_exp[i]);
  }
  cfm_weigh(flow, tape,
            &(struct cfm_weighing){.weight = draw->weight,
                                   .distance = result.square_sum,
                                   .loss = result.loss,
                                   .from = draw->from,
                                   .to = draw->from,
                                   .rows = batch->count,
                                   .positions = batch->positions,
                                   .power = flow->options->cfm_weight_power,
                                   .constant = flow->options->cfm_weight_constant,
                                   .total = total});
}

static enum status loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const double *total, struct flow_losses *losses) {
  struct cfm *cfm = flow->state;
  const struct flow_batch rows = cfm_pick_rows(flow, tape, batch);
  struct cfm_draw draw = cfm_draw(flow, &rows, tape);
  *losses = (struct flow_losses){0};
  struct value *y = cfm_noisy(flow, tape, &rows, &draw);
  struct value *hidden =
      cfm_hidden(tape, &cfm->model, y,
                 &(struct cfm_times){.from = draw.from, .to = draw.to, .clean = draw.clean},
                 rows.count, rows.positions);
  if (batch->rows != FLOW_JUMP_ROWS)
    diagonal_loss(flow, tape, &rows, &draw, hidden, total[PART_CE], losses);
  if (!flow->distill || batch->rows == FLOW_DIAGONAL_ROWS) return tape->status;
  return cfm_distill_loss(flow, tape, &rows, &draw, y, hidden, total[PART_DISTILL], losses);
}

const struct flow_kind flow_cfm = {.name = "cfm",
                                   .parts = parts,
                                   .has_nfe = true,
                                   .init = init,
                                   .weights = weights,
                                   .loss = loss,
                                   .prepare = cfm_noise_prepare,
                                   .complete_gradients = cfm_noise_gradients,
                                   .sample = cfm_sample,
                                   .bound = cfm_bound};
