/* The Eulerian identity as a teacher (arXiv 2604.09784, equations 40 to 46): along the flow the end
 * of a jump stays where it is, so with l the student's logits of psi_{s,t} and D its derivative
 * along the flow in s,
 *
 *   psi_{s,t} = softmax(log psi_{s,s} - log((1 - t) - (1 - s) (t - s) (D l - <psi_{s,t}, D l>))).
 *
 * Here D is taken along (1 - s) times the flow, which has the state's rate mean - y and the time's
 * rate 1 - s: no division. The derivative is exact, or a difference of two calls of the network.
 */
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/tape/tangent.h"

/* Where the state goes: mean - y, but prefixes stay. */
static struct value *drift(struct tape *tape, const struct cfm_jumps *jumps, const struct value *y,
                           const struct value *mean) {
  const int64_t count = y->rows * y->cols;
  float *state = tape_save(tape, (size_t)count * sizeof *state);
  float *target = tape_save(tape, (size_t)count * sizeof *target);
  tape_output(tape, state, y);
  tape_output(tape, target, mean);
  for (int64_t i = 0; state && i < count; i++)
    target[i] = jumps->weight[i / y->cols] > 0 ? target[i] - state[i] : 0;
  return tape_input(tape, target, y->rows, y->cols);
}

void cfm_move(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
              const struct value *y, const struct cfm_rates *rates, struct value *hidden,
              struct value *rate) {
  const struct cfm *cfm = flow->state;
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  const struct cfm_times times = {jumps->from, jumps->to, rates->from, rates->to, jumps->clean};
  struct tangent_span span;
  tangent_begin(tape, &span);
  struct value *moving = tape_detach(tape, y);
  if (rates->state)
    tape->kernels->copy(tangent_open(tape, moving), rates->state->data, y->rows * y->cols);
  struct value *out = cfm_hidden(tape, &cfm->model, moving, &times, jumps->count, jumps->positions);
  tangent_end(tape, &span);
  if (hidden) tape->kernels->copy(hidden->data, out->data, out->rows * out->cols);
  tape->kernels->copy(rate->data, tangent_of(tape, out), out->rows * out->cols);
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
}

/* The student's hidden states `step` further on along the drift, steps[j] of the way left. */
static float *shifted(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                      const struct value *y, const struct value *drift, const double *steps) {
  const struct cfm *cfm = flow->state;
  const int64_t count = y->rows * y->cols, row = jumps->positions * y->cols;
  float *state = tape_save(tape, (size_t)count * sizeof *state);
  float *along = tape_save(tape, (size_t)count * sizeof *along);
  double *from = arena_take(tape->records, (size_t)jumps->count * sizeof *from);
  tape_output(tape, state, y);
  tape_output(tape, along, drift);
  for (int64_t i = 0; state && i < count; i++)
    state[i] = (float)((double)state[i] + steps[i / row] * (double)along[i]);
  for (int64_t j = 0; j < jumps->count; j++)
    from[j] = jumps->from[j] + steps[j] * (1 - jumps->from[j]);
  struct value *hidden =
      cfm_hidden(tape, &cfm->model, tape_input(tape, state, y->rows, y->cols),
                 &(struct cfm_times){.from = from, .to = jumps->to, .clean = jumps->clean},
                 jumps->count, jumps->positions);
  float *out = tape_save(tape, (size_t)(hidden->rows * hidden->cols) * sizeof *out);
  tape_output(tape, out, hidden);
  return out;
}

/* Steps of a difference, as shares of the way left: central where there is room on both sides. */
struct steps {
  double *ahead, *behind; /* behind is negative */
};

static struct steps steps_of(const struct flow *flow, struct tape *tape,
                             const struct cfm_jumps *jumps) {
  const size_t bytes = (size_t)jumps->count * sizeof(double);
  const double step = flow->distill->distill_step;
  struct steps steps = {arena_take(tape->records, bytes), arena_take(tape->records, bytes)};
  for (int64_t j = 0; j < jumps->count; j++) {
    const double rest = 1 - jumps->from[j], room = (jumps->to[j] - jumps->from[j]) / rest;
    steps.ahead[j] = room < step ? room : step;
    steps.behind[j] = jumps->from[j] / rest < step ? -jumps->from[j] / rest : -step;
  }
  return steps;
}

/* The rate of the student's hidden states by a difference. */
static void difference(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                       const struct value *y, const struct value *drift, struct value *rate) {
  const size_t mark = arena_mark(tape->arena);
  const int64_t count = rate->rows * rate->cols, row = jumps->positions * rate->cols;
  const struct steps steps = steps_of(flow, tape, jumps);
  const float *ahead = shifted(flow, tape, jumps, y, drift, steps.ahead);
  const float *behind = shifted(flow, tape, jumps, y, drift, steps.behind);
  float *slope = tape_save(tape, (size_t)count * sizeof *slope);
  for (int64_t i = 0; slope && i < count; i++)
    slope[i] = (float)(((double)ahead[i] - (double)behind[i]) /
                       (steps.ahead[i / row] - steps.behind[i / row]));
  tape->kernels->convert_from_float(rate->data, slope, count);
  arena_reset(tape->arena, mark);
}

static void exact(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                  const struct value *y, const struct value *drift, struct value *rate) {
  double *rest = arena_take(tape->records, (size_t)jumps->count * sizeof *rest);
  for (int64_t j = 0; j < jumps->count; j++) rest[j] = 1 - jumps->from[j];
  const struct cfm_rates rates = {.state = drift, .from = rest};
  cfm_move(flow, tape, jumps, y, &rates, NULL, rate);
}

struct value *cfm_eulerian_rate(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                                const struct value *y, const struct value *mean) {
  const struct cfm *cfm = flow->state;
  struct value *rate = tape_constant(tape, y->rows, cfm->model.output->cols);
  const struct value *along = drift(tape, jumps, y, mean);
  if (flow->distill->distill_loss == IDENTITY_EULERIAN)
    exact(flow, tape, jumps, y, along, rate);
  else
    difference(flow, tape, jumps, y, along, rate);
  return rate;
}

void cfm_eulerian_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                          struct value *y, struct head_teacher *teacher) {
  const struct cfm *cfm = flow->state;
  const struct cfm_model *model = cfm_teacher(flow);
  struct value *first =
      cfm_hidden(tape, model, y,
                 &(struct cfm_times){.from = jumps->from, .to = jumps->from, .clean = jumps->clean},
                 jumps->count, jumps->positions);
  struct value *mean = head_expectation(
      tape, first, &(struct head){.vocab = flow->vocab, .w = model->output}, cfm->model.table);
  struct head_bend *bend = cfm_bend_open(tape, jumps);
  bend->rate = cfm_eulerian_rate(flow, tape, jumps, y, mean);
  for (int64_t j = 0; j < jumps->count; j++)
    cfm_bend_set(bend, jumps, j, 1 - jumps->to[j], jumps->to[j] - jumps->from[j]);
  *teacher = (struct head_teacher){.w = model->output, .first = first, .bend = bend};
}
