/* Laws of ELF's progressive distillation (arXiv 2605.10938 v2, appendix B): the target is two steps
 * of the teacher composed, a teacher whose steps compose is matched without loss, spans double from
 * round to round, and nothing depends on batch neighbours. */
#include <math.h>
#include <string.h>

#include "stages/flow/elf_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { N = TINY_ROWS * TINY_POSITIONS, ROW = TINY_POSITIONS * TINY_LATENT, SIZE = N * TINY_LATENT };

static void open_student(struct tiny_flow *tiny, int64_t rounds, int64_t trained) {
  tiny_flow_options(tiny);
  tiny->distills = true;
  tiny->options.elf_decode_share = 0;
  tiny->distill.steps = 100 * rounds;
  tiny->distill.elf_rounds = rounds;
  tiny->distill.elf_teacher = ELF_TEACHER_PREVIOUS;
  tiny_flow_open(tiny, &flow_elf);
  tiny_flow_bind(tiny);
  tiny->flow.trained = trained;
}

static void draw(const struct tiny_flow *tiny, struct elf_row rows[TINY_ROWS]) {
  for (int64_t b = 0; b < TINY_ROWS; b++) rows[b] = elf_draw_row(&tiny->flow, &tiny->batch, b);
}

static void spans_double_up_to_the_whole_way(void **state) {
  (void)state;
  static const double spans[] = {0.0625, 0.125, 0.25, 0.5, 1};
  struct elf_row rows[TINY_ROWS];
  struct tiny_flow tiny;
  open_student(&tiny, 5, 0);
  for (int64_t step = 0; step <= 500; step += 50) {
    const int64_t round =
        step < 500 ? step / 100 : 4; /* the last validation is of the last round */
    tiny.flow.trained = step;
    assert_true(elf_distill_span(&tiny.flow) == spans[round]);
    draw(&tiny, rows);
    for (int b = 0; b < TINY_ROWS; b++) {
      assert_true(rows[b].time >= 0 && rows[b].until <= 1);
      assert_true(fabs(rows[b].until - rows[b].time - spans[round]) < 1e-12);
    }
  }
  assert_true(rows[0].time == 0 && rows[0].until == 1);
  tiny_flow_close(&tiny);
}

/* What `net` predicts of z at times[b]. */
static void predict(struct tiny_flow *tiny, const struct elf_backbone *net, float *x,
                    const float *z, const float *draft, const double *times,
                    const struct elf_row *rows) {
  struct tape tape;
  double guidance[TINY_ROWS];
  const float decode[TINY_ROWS] = {0};
  const size_t mark = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  for (int b = 0; b < TINY_ROWS; b++) guidance[b] = rows[b].guidance;
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = false;
  struct value *hidden = elf_backbone_forward(
      &tape, net,
      &(struct elf_backbone_input){.batch = TINY_ROWS,
                                   .positions = TINY_POSITIONS,
                                   .z = tape_input(&tape, z, N, TINY_LATENT),
                                   .draft = tape_input(&tape, draft, N, TINY_LATENT),
                                   .time = times,
                                   .guidance = guidance,
                                   .decode = decode});
  tape_output(&tape, x, elf_backbone_denoise(&tape, net, hidden));
  arena_reset(&tiny->values, mark);
  arena_reset(&tiny->records, records);
}

static void target_of(struct tiny_flow *tiny, float *target, const float *z, const float *draft,
                      const struct elf_row *rows) {
  static const int64_t all[TINY_ROWS] = {0, 1, 2};
  struct tape tape;
  const size_t mark = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  const struct elf_lesson lesson = {.count = TINY_ROWS,
                                    .rows = all,
                                    .z = tape_input(&tape, z, N, TINY_LATENT),
                                    .draft = tape_input(&tape, draft, N, TINY_LATENT)};
  tape_output(&tape, target, elf_distill_target(&tiny->flow, &tape, &tiny->batch, rows, &lesson));
  arena_reset(&tiny->values, mark);
  arena_reset(&tiny->records, records);
}

static void normal(float *values, const char *name) {
  random_fill_normal(values, SIZE, random_open(6, name, 0, 0), 0);
}

/* Written out: z' = z + h v(z, t), z'' = z' + h' v(z', t'), and x such that z + (t'' - t) v = z''.
 */
static void target_is_two_steps_composed(void **state) {
  (void)state;
  static float z[SIZE], draft[SIZE], x[SIZE], middle[SIZE], last[SIZE], target[SIZE];
  struct elf_row rows[TINY_ROWS];
  struct tiny_flow tiny;
  double times[TINY_ROWS][3], from[TINY_ROWS], then[TINY_ROWS];
  open_student(&tiny, 3, 120);
  const struct elf *elf = tiny.flow.state;
  draw(&tiny, rows);
  normal(z, "z");
  normal(draft, "draft");
  for (int b = 0; b < TINY_ROWS; b++) {
    elf_distill_grid(times[b], 2, &tiny.flow, &tiny.batch, b, &rows[b]);
    assert_true(times[b][0] < times[b][1] && times[b][1] < times[b][2]);
    from[b] = times[b][0];
    then[b] = times[b][1];
  }
  predict(&tiny, &elf->teacher, x, z, draft, from, rows);
  for (int i = 0; i < SIZE; i++) {
    const double *t = times[i / ROW];
    middle[i] = (float)((double)z[i] + (t[1] - t[0]) * ((double)x[i] - (double)z[i]) / (1 - t[0]));
  }
  predict(&tiny, &elf->teacher, last, middle, x, then, rows);
  target_of(&tiny, target, z, draft, rows);
  for (int i = 0; i < SIZE; i++) {
    const double *t = times[i / ROW], m = (double)middle[i];
    const double end = m + (t[2] - t[1]) * ((double)last[i] - m) / (1 - t[1]);
    const double found =
        (double)z[i] + (t[2] - t[0]) * ((double)target[i] - (double)z[i]) / (1 - t[0]);
    assert_true(fabs(found - end) < 1e-5);
  }
  tiny_flow_close(&tiny);
}

static void copy_weights(struct tiny_flow *tiny, bool constant) {
  for (int64_t i = 0; i < tiny->teacher.count; i++) {
    const struct param *from = tiny->params.items[i], *to = tiny->teacher.items[i];
    assert_string_equal(from->name, to->name);
    if (constant && strcmp(from->name, "final_layer.linear.weight") == 0)
      memset(from->data, 0, (size_t)param_count(from) * sizeof(double));
    memcpy(to->data, from->data, (size_t)param_count(from) * sizeof(double));
  }
}

static double loss_of(struct tiny_flow *tiny, const struct flow_batch *batch, double *weight) {
  const double total[FLOW_PARTS] = {1};
  const struct flow_losses losses = tiny_flow_loss(tiny, batch, total, false);
  *weight = losses.weight[ELF_MSE];
  return losses.sum[ELF_MSE];
}

/* A network that predicts the same latents from everywhere goes straight there: its steps compose,
 * so that a student which equals it has nothing to learn; any other has. */
static void a_consistent_teacher_is_matched_without_loss(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double weight;
  for (int64_t trained = 0; trained < 300; trained += 100) {
    open_student(&tiny, 3, trained);
    assert_true(loss_of(&tiny, &tiny.batch, &weight) > 1e-3);
    copy_weights(&tiny, true);
    assert_true(loss_of(&tiny, &tiny.batch, &weight) < 1e-9 && weight == 9);
    tiny_flow_close(&tiny);
  }
}

/* One step of a teacher whose step is the student's own is no lesson either. */
static void a_step_of_the_same_length_is_matched_without_loss(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double weight;
  open_student(&tiny, 3, 100);
  tiny.distill.elf_teacher_steps = 1;
  copy_weights(&tiny, false);
  assert_true(loss_of(&tiny, &tiny.batch, &weight) < 1e-9);
  tiny_flow_close(&tiny);
}

static void descend(struct tiny_flow *tiny, double rate) {
  double total[FLOW_PARTS];
  params_clear_gradients(&tiny->params, DTYPE_F64);
  tiny->flow.kind->weights(&tiny->flow, &tiny->batch, total);
  tiny_flow_loss(tiny, &tiny->batch, total, true);
  for (int64_t i = 0; i < tiny->params.count; i++) {
    const struct param *param = tiny->params.items[i];
    double *data = param->data;
    const double *gradient = param->gradient;
    for (int64_t k = 0; k < param_count(param); k++) data[k] -= rate * gradient[k];
  }
}

/* A student that begins as its teacher learns to do two steps in one, in every round. */
static void descent_lowers_the_loss(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double weight;
  for (int64_t trained = 0; trained < 300; trained += 100) {
    open_student(&tiny, 3, trained);
    copy_weights(&tiny, false);
    const double before = loss_of(&tiny, &tiny.batch, &weight);
    for (int i = 0; i < 60; i++) descend(&tiny, 0.02);
    const double after = loss_of(&tiny, &tiny.batch, &weight);
    if (!(after < 0.6 * before))
      fail_msg("trained %d: loss %g, then %g", (int)trained, before, after);
    tiny_flow_close(&tiny);
  }
}

static void rows_do_not_depend_on_neighbours(void **state) {
  (void)state;
  static const int32_t sources[TINY_ROWS] = {2, 1, 1};
  static float alone[SIZE];
  struct tiny_flow tiny;
  double weight, sum = 0;
  open_student(&tiny, 3, 200);
  tiny.distill.elf_teacher = ELF_TEACHER_BASE;
  tiny.options.elf_source_drop = 0.4;
  tiny.batch.sources = sources;
  tiny.batch.alone = alone;
  const double all = loss_of(&tiny, &tiny.batch, &weight);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    struct flow_batch one = tiny_flow_row(&tiny, row);
    one.sources += row;
    one.alone += row * ROW;
    sum += loss_of(&tiny, &one, &weight);
  }
  assert_true(all > 0 && fabs(sum - all) < 1e-6 * all);
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spans_double_up_to_the_whole_way),
      cmocka_unit_test(target_is_two_steps_composed),
      cmocka_unit_test(a_consistent_teacher_is_matched_without_loss),
      cmocka_unit_test(a_step_of_the_same_length_is_matched_without_loss),
      cmocka_unit_test(descent_lowers_the_loss),
      cmocka_unit_test(rows_do_not_depend_on_neighbours)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
