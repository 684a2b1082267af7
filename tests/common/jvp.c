#include "tests/common/jvp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/model/tape/tangent.h"
#include "tests/common/tap.h"

enum { RECORD_BYTES = 64 << 20 };

static const double STEP = 1e-3;

/* Values of one run, of the output or of its tangent. */
struct output {
  double *values;
  int64_t count;
};

static double number(const char *purpose, int input, int64_t i) {
  return random_normal(random_open(31, purpose, (uint64_t)input, 0), (uint64_t)i);
}

static void set_inputs(const struct jvp_case *tested, struct tape *tape, struct value **inputs,
                       double shift) {
  for (int k = 0; k < JVP_INPUTS && tested->inputs[k].rows > 0; k++) {
    const bool moves = !tested->inputs[k].fixed;
    inputs[k] = tape_constant(tape, tested->inputs[k].rows, tested->inputs[k].cols);
    double *tangent = tape->moving && moves ? tangent_open(tape, inputs[k]) : NULL;
    double *data = inputs[k]->data;
    for (int64_t i = 0; data && i < inputs[k]->rows * inputs[k]->cols; i++) {
      const double direction = number("direction", k, i);
      data[i] = number("point", k, i) + (moves ? shift * direction : 0);
      if (tangent) tangent[i] = direction;
    }
  }
}

static struct output read_output(const struct value *y, const double *data) {
  struct output output = {.count = y->rows * y->cols};
  output.values = malloc((size_t)output.count * sizeof(double));
  assert_non_null(output.values);
  for (int64_t i = 0; i < output.count; i++)
    output.values[i] = data[i / y->cols * y->stride + i % y->cols];
  return output;
}

static struct output run(const struct jvp_case *tested, const char *name, struct arena *arena,
                         bool moving, double shift) {
  struct arena records;
  struct kernels kernels;
  struct tape tape;
  struct tangent_span span;
  struct value *inputs[JVP_INPUTS];
  struct output output = {NULL, 0};
  assert_ok(arena_init(&records, "records", RECORD_BYTES));
  assert_ok(kernels_open(&kernels, name, DTYPE_F64));
  tape_init(&tape, &kernels, arena, &records);
  tape.recording = false;
  if (moving) tangent_begin(&tape, &span);
  set_inputs(tested, &tape, inputs, shift);
  struct value *y = tested->build(tested->context, &tape, inputs, shift);
  if (moving) tangent_end(&tape, &span);
  assert_ok(tape.status);
  assert_true(!moving || tangent_moves(y));
  if (y->data) output = read_output(y, moving ? tangent_of(&tape, y) : y->data);
  for (int64_t i = 0; tested->params && i < tested->params->count; i++)
    assert_true(tested->params->items[i]->uses == 0); /* no backward pass is waited for */
  arena_free(&records);
  return output;
}

static struct output measured_run(const struct jvp_case *tested, bool moving, double shift) {
  struct arena measuring, arena;
  arena_measure(&measuring, "measured");
  run(tested, "measure", &measuring, moving, shift);
  assert_ok(arena_init(&arena, "tape", measuring.peak));
  const struct output output = run(tested, "reference", &arena, moving, shift);
  assert_int_equal(measuring.peak, arena.peak);
  assert_int_equal(measuring.used, arena.used);
  arena_free(&arena);
  return output;
}

/* Fourth-order central differences of every number of the output. */
static struct output differences(const struct jvp_case *tested) {
  static const double weights[] = {1, -8, 8, -1}, places[] = {-2, -1, 1, 2};
  struct output sum = {NULL, 0};
  for (int k = 0; k < 4; k++) {
    struct output at = measured_run(tested, false, places[k] * STEP);
    if (!sum.values) sum = (struct output){calloc((size_t)at.count, sizeof(double)), at.count};
    assert_non_null(sum.values);
    for (int64_t i = 0; i < at.count; i++) sum.values[i] += weights[k] * at.values[i] / (12 * STEP);
    free(at.values);
  }
  return sum;
}

void jvp_check(const struct jvp_case *tested) {
  const double tolerance = tested->tolerance > 0 ? tested->tolerance : 1e-6;
  struct output tangent = measured_run(tested, true, 0), expected = differences(tested);
  double size = 0, most = 0;
  for (int64_t i = 0; i < expected.count; i++) {
    size = fmax(size, fabs(expected.values[i]));
    most = fmax(most, fabs(expected.values[i] - tangent.values[i]));
  }
  free(tangent.values);
  free(expected.values);
  assert_true(size > 0);
  if (!(most <= tolerance * size)) fail_msg("differs by %g of %g", most, size);
}

void jvp_bind(struct params *params, struct arena *arena) {
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(params, &measuring, DTYPE_F64, false);
  assert_ok(arena_init(arena, "weights", measuring.peak));
  params_bind(params, arena, DTYPE_F64, false);
  params_initialise(params, DTYPE_F64, 7);
  for (int64_t p = 0; p < params->count; p++)
    for (int64_t i = 0; i < param_count(params->items[p]); i++)
      ((double *)params->items[p]->data)[i] += 0.3 * number(params->items[p]->name, 0, i);
}
