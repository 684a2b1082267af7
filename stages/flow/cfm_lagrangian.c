/* The Lagrangian identity as a teacher (arXiv 2604.09784, equation 34): the end of a jump moves in
 * its end time as the flow does, so with l the student's logits of psi_{s,t} and X the end,
 *
 *   psi_{s,t} = softmax(log psi_{t,t}(X) - log(1 + C (dl/dt - <psi_{s,t}, dl/dt>))),
 *   C = (t - s) (1 - t) / (1 - s).
 */
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"

struct head_bend *cfm_bend_open(struct tape *tape, const struct cfm_jumps *jumps) {
  const size_t bytes = (size_t)(jumps->count * jumps->positions) * sizeof(float);
  struct head_bend *bend = arena_take_zeroed(tape->records, sizeof *bend);
  bend->a = arena_take_zeroed(tape->records, bytes);
  bend->b = arena_take_zeroed(tape->records, bytes);
  return bend;
}

void cfm_bend_set(struct head_bend *bend, const struct cfm_jumps *jumps, int64_t j, double a,
                  double b) {
  for (int64_t i = j * jumps->positions; i < (j + 1) * jumps->positions; i++) {
    bend->a[i] = (float)a;
    bend->b[i] = (float)b;
  }
}

void cfm_lagrangian_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                            struct value *y, struct head_teacher *teacher) {
  const struct cfm *cfm = flow->state;
  const struct cfm_model *model = cfm_teacher(flow);
  double *one = arena_take(tape->records, (size_t)jumps->count * sizeof *one);
  struct head_bend *bend = cfm_bend_open(tape, jumps);
  for (int64_t j = 0; j < jumps->count; j++) {
    const double s = jumps->from[j], t = jumps->to[j];
    one[j] = 1;
    cfm_bend_set(bend, jumps, j, 1, -(t - s) * (1 - t) / (1 - s));
  }
  struct value *hidden = tape_constant(tape, y->rows, cfm->model.output->cols);
  struct value *rate = tape_constant(tape, y->rows, cfm->model.output->cols);
  cfm_move(flow, tape, jumps, y, &(struct cfm_rates){.to = one}, hidden, rate);
  bend->rate = rate;
  struct value *mean = head_expectation(
      tape, hidden, &(struct head){.vocab = flow->vocab, .w = cfm->model.output}, cfm->model.table);
  struct value *end = cfm_advance(tape, jumps, y, mean, jumps->to);
  struct value *first =
      cfm_hidden(tape, model, end,
                 &(struct cfm_times){.from = jumps->to, .to = jumps->to, .clean = jumps->clean},
                 jumps->count, jumps->positions);
  *teacher = (struct head_teacher){.w = model->output, .first = first, .bend = bend};
}
