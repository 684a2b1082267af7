/* Times, prefixes and noise of categorical flows: every draw is keyed by the global sample. */
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/vocab_embedding.h"

/* Draws of one row, each at its own position of one stream. */
enum row_draw { DRAW_TIME, DRAW_GAP, DRAW_PREFIX, DRAW_PREFIX_LENGTH, DRAW_JUMP, DRAW_WHOLE };

static double uniform(const struct flow *flow, const struct flow_batch *batch, int64_t row,
                      enum row_draw which) {
  const char *purpose = batch->validation ? "cfm.validation.row" : "cfm.row";
  const struct random_stream stream =
      random_open(flow->seed, purpose, (uint64_t)batch->samples[row], batch->step);
  return random_uniform(stream, (uint64_t)which);
}

/* Whether the row is off the diagonal: only in distillation. */
static bool draw_jump(const struct flow *flow, const struct flow_batch *batch, int64_t row) {
  return flow->distill && uniform(flow, batch, row, DRAW_JUMP) < flow->distill->distill_share;
}

/* A draw within the row's part of [0, 1], which the rows of the set divide evenly. */
static double stratified(const struct flow *flow, const struct flow_batch *batch, int64_t row,
                         enum row_draw which) {
  const double within = uniform(flow, batch, row, which);
  return ((double)batch->strata[row] + within) / (double)batch->stratum_count;
}

/* A pair of times off the diagonal: a gap, then a start that leaves room for it; some rows take the
 * whole way from noise to data. */
static void draw_pair(const struct flow *flow, const struct flow_batch *batch, int64_t row,
                      double pair[2]) {
  pair[0] = 0;
  pair[1] = 1;
  if (uniform(flow, batch, row, DRAW_WHOLE) < flow->distill->distill_whole_share) return;
  const double gap = stratified(flow, batch, row, DRAW_GAP);
  pair[0] = (1 - gap) * uniform(flow, batch, row, DRAW_TIME);
  pair[1] = pair[0] + gap;
}

static void draw_times(const struct flow *flow, const struct flow_batch *batch, int64_t row,
                       struct cfm_row *drawn) {
  const struct cfm *cfm = flow->state;
  double pair[2];
  if (drawn->jump) {
    draw_pair(flow, batch, row, pair);
  } else {
    pair[0] = pair[1] = stratified(flow, batch, row, DRAW_TIME);
  }
  drawn->from = cfm_schedule_alpha(&cfm->schedule, pair[0]);
  drawn->to = cfm_schedule_alpha(&cfm->schedule, pair[1]);
  drawn->middle = flow->distill && flow->distill->distill_middle == MIDDLE_TIME
                      ? cfm_schedule_alpha(&cfm->schedule, 0.5 * (pair[0] + pair[1]))
                      : 0.5 * (drawn->from + drawn->to);
}

static int64_t draw_prefix(const struct flow *flow, const struct flow_batch *batch, int64_t row) {
  if (uniform(flow, batch, row, DRAW_PREFIX) >= flow->options->cfm_prefix) return 0;
  return (int64_t)((double)batch->positions * uniform(flow, batch, row, DRAW_PREFIX_LENGTH));
}

struct cfm_row cfm_draw_row(const struct flow *flow, const struct flow_batch *batch, int64_t row) {
  struct cfm_row drawn = {.jump = draw_jump(flow, batch, row),
                          .prefix = draw_prefix(flow, batch, row)};
  draw_times(flow, batch, row, &drawn);
  const int64_t covered = batch->lengths[row] - drawn.prefix;
  drawn.covered = covered > 0 ? covered : 0;
  return drawn;
}

struct cfm_draw cfm_draw(const struct flow *flow, const struct flow_batch *batch,
                         struct tape *tape) {
  const size_t count = (size_t)batch->count, n = count * (size_t)batch->positions;
  struct arena *arena = tape->records;
  struct cfm_draw draw = {.rows = arena_take(arena, count * sizeof *draw.rows),
                          .from = arena_take(arena, count * sizeof(double)),
                          .to = arena_take(arena, count * sizeof(double)),
                          .weight = arena_take_zeroed(arena, n * sizeof(float)),
                          .jump_weight = arena_take_zeroed(arena, n * sizeof(float)),
                          .clean = arena_take_zeroed(arena, n * sizeof(float))};
  for (int64_t row = 0; row < batch->count; row++) {
    draw.rows[row] = cfm_draw_row(flow, batch, row);
    const struct cfm_row *drawn = &draw.rows[row];
    draw.from[row] = drawn->from;
    draw.to[row] = drawn->to;
    float *weight = (drawn->jump ? draw.jump_weight : draw.weight) + row * batch->positions;
    for (int64_t i = 0; i < drawn->covered; i++) weight[drawn->prefix + i] = 1;
    for (int64_t i = 0; i < drawn->prefix; i++) draw.clean[row * batch->positions + i] = 1;
  }
  return draw;
}

/* eta[T, d] of one row times 1 - alpha; 0 in the prefix. */
static void fill_noise(const struct flow *flow, const struct flow_batch *batch,
                       const struct cfm_draw *draw, int64_t row, float *noise) {
  const struct cfm *cfm = flow->state;
  const int64_t clean = draw->rows[row].prefix * cfm->width, count = batch->positions * cfm->width;
  const struct random_stream stream =
      random_open(flow->seed, batch->validation ? "cfm.validation.noise" : "cfm.noise",
                  (uint64_t)batch->samples[row], batch->step);
  memset(noise, 0, (size_t)clean * sizeof *noise);
  random_fill_normal(noise + clean, count - clean, stream, (uint64_t)clean);
  for (int64_t i = clean; i < count; i++) noise[i] *= (float)(1 - draw->from[row]);
}

static void fill_share(const struct flow_batch *batch, const struct cfm_draw *draw, int64_t row,
                       int64_t width, float *share) {
  for (int64_t i = 0; i < batch->positions; i++)
    for (int64_t c = 0; c < width; c++)
      share[i * width + c] = i < draw->rows[row].prefix ? 1 : (float)draw->from[row];
}

struct value *cfm_noisy(const struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const struct cfm_draw *draw) {
  const struct cfm *cfm = flow->state;
  const int64_t n = batch->count * batch->positions, d = cfm->width,
                row_size = batch->positions * d;
  float *noise = tape_save(tape, (size_t)(n * d) * sizeof *noise);
  float *share = tape_save(tape, (size_t)(n * d) * sizeof *share);
  for (int64_t row = 0; noise && row < batch->count; row++) {
    fill_noise(flow, batch, draw, row, noise + row * row_size);
    fill_share(batch, draw, row, d, share + row * row_size);
  }
  struct value *g = linear_forward(tape, tape_input(tape, noise, n, d), cfm->factor, NULL);
  struct value *clean =
      vocab_embedding_forward(tape, flow->vocab, batch->tokens, n, cfm->model.table);
  return modulate_gate(tape, g, clean, tape_input(tape, share, n, d), 1);
}
