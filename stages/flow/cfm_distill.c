/* Progressive self-distillation of categorical flow maps (arXiv 2604.09784, equations 18, 23, 64).
 *
 * A row off the diagonal has the student's psi_{s,t} against the mixture
 *   p = omega psi_{s,u}(z_s) + (1 - omega) psi_{u,t}(X_{s,u}(z_s)), u midway in alpha or in time,
 * where the teacher's pieces are the base's own Euler steps (psi_{s,s} and psi_{u,u}), or the maps
 * of the student, or of its average, with the gradient stopped; or against what another identity of
 * flow maps makes of it (cfm_eulerian.c, cfm_lagrangian.c).
 */
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"

enum { PART_DISTILL = 1 };

static const enum divergence divergences[] = {[DISTILL_FORWARD_KL] = DIVERGENCE_FORWARD_KL,
                                              [DISTILL_REVERSE_KL] = DIVERGENCE_REVERSE_KL,
                                              [DISTILL_JSD] = DIVERGENCE_JENSEN_SHANNON};

static double mixture(double s, double u, double t) {
  return (u - s) * (1 - t) / ((t - s) * (1 - u));
}

static void add_jump(struct cfm_jumps *jumps, const struct flow_batch *batch,
                     const struct cfm_draw *draw, int64_t row) {
  const int64_t j = jumps->count++, T = batch->positions;
  const double s = draw->from[row], t = draw->to[row], u = draw->rows[row].middle;
  jumps->from[j] = s;
  jumps->middle[j] = u;
  jumps->to[j] = t;
  for (int64_t i = 0; i < T; i++) {
    jumps->index[j * T + i] = row * T + i;
    jumps->omega[j * T + i] = mixture(s, u, t);
    jumps->weight[j * T + i] = draw->jump_weight[row * T + i];
    jumps->clean[j * T + i] = draw->clean[row * T + i];
  }
}

/* A measuring tape takes every row, so that what it finds is enough for any draw. */
static struct cfm_jumps gather(struct tape *tape, const struct flow_batch *batch,
                               const struct cfm_draw *draw) {
  const size_t rows = (size_t)batch->count, n = rows * (size_t)batch->positions;
  struct arena *arena = tape->records;
  struct cfm_jumps jumps = {.positions = batch->positions,
                            .index = arena_take(arena, n * sizeof(int64_t)),
                            .from = arena_take(arena, rows * sizeof(double)),
                            .middle = arena_take(arena, rows * sizeof(double)),
                            .to = arena_take(arena, rows * sizeof(double)),
                            .omega = arena_take(arena, n * sizeof(double)),
                            .weight = arena_take(arena, n * sizeof(float)),
                            .clean = arena_take(arena, n * sizeof(float))};
  for (int64_t row = 0; row < batch->count; row++)
    if (draw->rows[row].jump || arena_is_measuring(tape->arena)) add_jump(&jumps, batch, draw, row);
  return jumps;
}

struct value *cfm_advance(struct tape *tape, const struct cfm_jumps *jumps, const struct value *y,
                          const struct value *mean, const double *until) {
  const int64_t count = y->rows * y->cols, row_size = jumps->positions * y->cols;
  float *state = tape_save(tape, (size_t)count * sizeof *state);
  float *target = tape_save(tape, (size_t)count * sizeof *target);
  tape_output(tape, state, y);
  tape_output(tape, target, mean);
  for (int64_t i = 0; state && i < count; i++) {
    const int64_t j = i / row_size;
    const double s = jumps->from[j], u = until[j];
    if (jumps->weight[i / y->cols] <= 0) continue;
    state[i] = (float)(((1 - u) * (double)state[i] + (u - s) * (double)target[i]) / (1 - s));
  }
  return tape_input(tape, state, y->rows, y->cols);
}

const struct cfm_model *cfm_teacher(const struct flow *flow) {
  const struct cfm *cfm = flow->state;
  return flow->distill->distill_teacher == TEACHER_SELF ? &cfm->model : &cfm->teacher;
}

/* The semigroup identity: two pieces, for the head to mix. */
static void semigroup_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                              struct value *y, struct head_teacher *teacher) {
  const struct cfm *cfm = flow->state;
  const bool maps = flow->distill->distill_teacher != TEACHER_BASE;
  const struct cfm_model *model = cfm_teacher(flow);
  const int64_t T = jumps->positions;
  const struct cfm_times early = {
      .from = jumps->from, .to = maps ? jumps->middle : jumps->from, .clean = jumps->clean};
  const struct cfm_times late = {
      .from = jumps->middle, .to = maps ? jumps->to : jumps->middle, .clean = jumps->clean};
  struct value *first = cfm_hidden(tape, model, y, &early, jumps->count, T);
  struct value *mean = head_expectation(
      tape, first, &(struct head){.vocab = flow->vocab, .w = model->output}, cfm->model.table);
  struct value *middle = cfm_advance(tape, jumps, y, mean, jumps->middle);
  struct value *second = cfm_hidden(tape, model, middle, &late, jumps->count, T);
  *teacher = (struct head_teacher){
      .w = model->output, .first = first, .second = second, .omega = jumps->omega};
}

static void run_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                        struct value *y, struct head_teacher *teacher) {
  switch (flow->distill->distill_loss) {
  case IDENTITY_SEMIGROUP:
    semigroup_teacher(flow, tape, jumps, y, teacher);
    return;
  case IDENTITY_EULERIAN:
  case IDENTITY_EULERIAN_DIFFERENCE:
    cfm_eulerian_teacher(flow, tape, jumps, y, teacher);
    return;
  case IDENTITY_LAGRANGIAN:
    cfm_lagrangian_teacher(flow, tape, jumps, y, teacher);
    return;
  }
}

/* Sums the loss and makes the weights adaptive; a learned weight is one of the start alone
 * with the semigroup identity, else of both times. */
static void settle(const struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                   const struct head_distill_result *result, int64_t positions, double total,
                   struct flow_losses *losses) {
  const bool semigroup = flow->distill->distill_loss == IDENTITY_SEMIGROUP;
  for (int64_t i = 0; i < jumps->count * positions; i++) {
    if (jumps->weight[i] <= 0) continue;
    losses->sum[PART_DISTILL] += result->loss[i];
    losses->weight[PART_DISTILL] += 1;
  }
  cfm_weigh(flow, tape,
            &(struct cfm_weighing){.weight = jumps->weight,
                                   .distance = result->distance,
                                   .loss = result->loss,
                                   .from = jumps->from,
                                   .to = semigroup ? jumps->from : jumps->to,
                                   .rows = jumps->count,
                                   .positions = positions,
                                   .power = flow->distill->distill_weight_power,
                                   .constant = flow->distill->distill_weight_constant,
                                   .total = total});
}

enum status cfm_distill_loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                             const struct cfm_draw *draw, struct value *y, struct value *hidden,
                             double total, struct flow_losses *losses) {
  const struct cfm *cfm = flow->state;
  struct cfm_jumps jumps = gather(tape, batch, draw);
  const int64_t n = jumps.count * batch->positions;
  struct head_teacher teacher;
  const bool was_recording = tape_pause(tape);
  struct value *state = combine_pick_rows(tape, tape_detach(tape, y), jumps.index, n);
  run_teacher(flow, tape, &jumps, state, &teacher);
  tape_resume(tape, was_recording);
  struct head_distill_result result = {
      .loss = arena_take_zeroed(tape->records, (size_t)n * sizeof(double)),
      .distance = arena_take_zeroed(tape->records, (size_t)n * sizeof(double))};
  head_distill_forward(
      tape, &result, combine_pick_rows(tape, hidden, jumps.index, n),
      &(struct head){.vocab = flow->vocab, .w = cfm->model.output, .weight = jumps.weight},
      &teacher, divergences[flow->distill->distill_divergence]);
  settle(flow, tape, &jumps, &result, batch->positions, total, losses);
  return tape->status;
}
