#include "tests/common/gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/tap.h"

enum { DIRECTIONS = 3, RECORD_BYTES = 64 << 20, PARAM_LIMIT = 4096 };

/* One run of a case at a point. */
struct run {
  const struct gradient_case *tested;
  struct tape tape;
  struct value *inputs[GRADIENT_INPUTS + 1];
  double objective;
  int ready[PARAM_LIMIT];
};

static int64_t input_count(const struct gradient_case *tested) {
  int64_t count = 0;
  while (count < GRADIENT_INPUTS && tested->inputs[count].rows > 0) count++;
  return count;
}

static int64_t param_numbers(const struct gradient_case *tested) {
  int64_t count = 0;
  for (int64_t i = 0; tested->params && i < tested->params->count; i++)
    count += tested->params->items[i]->row_count * tested->params->items[i]->cols;
  return count;
}

static int64_t input_numbers(const struct gradient_case *tested) {
  int64_t count = 0;
  for (int64_t i = 0; i < input_count(tested); i++)
    count += tested->inputs[i].rows * tested->inputs[i].cols;
  return count;
}

int64_t gradient_count(const struct gradient_case *tested) {
  return input_numbers(tested) + param_numbers(tested);
}

static struct random_stream stream_of(const char *purpose) {
  return random_open(17, purpose, 0, 0);
}

/* Parameters are bound to memory that lives as long as the program. */
static void bind(const struct gradient_case *tested) {
  static struct arena arenas[64];
  static int used;
  struct params *params = tested->params;
  if (!params || params->count == 0 || params->items[0]->data) return;
  struct arena measure;
  arena_measure(&measure, "test");
  params_bind(params, &measure, DTYPE_F64, true);
  assert_true(used < 64 && params->count <= PARAM_LIMIT);
  assert_ok(arena_init(&arenas[used], "test", measure.peak));
  params_bind(params, &arenas[used++], DTYPE_F64, true);
  params_initialise(params, DTYPE_F64, 7);
}

/* point[] = inputs N(0, 1), then parameters: initial values plus noise. */
static double *make_point(const struct gradient_case *tested) {
  bind(tested);
  const int64_t inputs = input_numbers(tested), count = gradient_count(tested);
  const double spread = tested->spread > 0 ? tested->spread : 0.3;
  double *point = malloc((size_t)(count + 1) * sizeof *point);
  for (int64_t i = 0; i < count; i++) point[i] = random_normal(stream_of("point"), (uint64_t)i);
  int64_t at = inputs;
  if (tested->params) params_initialise(tested->params, DTYPE_F64, 7);
  for (int64_t p = 0; tested->params && p < tested->params->count; p++) {
    const struct param *param = tested->params->items[p];
    for (int64_t i = 0; i < param->row_count * param->cols; i++, at++)
      point[at] = ((double *)param->data)[i] + (param->frozen ? 0 : spread * point[at]);
  }
  return point;
}

static void set_params(const struct gradient_case *tested, const double *point) {
  const double *from = point + input_numbers(tested);
  for (int64_t p = 0; tested->params && p < tested->params->count; p++) {
    struct param *param = tested->params->items[p];
    const int64_t count = param->row_count * param->cols;
    memcpy(param->data, from, (size_t)count * sizeof *from);
    from += count;
  }
  if (tested->params) params_clear_gradients(tested->params, DTYPE_F64);
}

static void set_inputs(struct run *run, const double *point) {
  for (int64_t i = 0; i < input_count(run->tested); i++) {
    const struct gradient_shape shape = run->tested->inputs[i];
    struct value *input = tape_value(&run->tape, shape.rows, shape.cols);
    input->needs_gradient = true;
    run->inputs[i] = input;
    const int64_t count = shape.rows * shape.cols;
    if (input->data) memcpy(input->data, point, (size_t)count * sizeof *point);
    point += count;
  }
}

static double projection(int64_t i) {
  return random_normal(stream_of("projection"), (uint64_t)i);
}

static void count_ready(void *context, struct param *param) {
  struct run *run = context;
  for (int64_t i = 0; i < run->tested->params->count; i++)
    if (run->tested->params->items[i] == param) run->ready[i]++;
}

static void project(struct run *run, struct value *y, bool backward) {
  if (!y) return;
  for (int64_t i = 0; y->data && i < y->rows * y->cols; i++)
    run->objective += projection(i) * ((double *)y->data)[i / y->cols * y->stride + i % y->cols];
  if (!backward) return;
  bool add;
  double *dy = tape_gradient(&run->tape, y, &add);
  for (int64_t i = 0; dy && i < y->rows * y->cols; i++) {
    double *place = &dy[i / y->cols * y->stride + i % y->cols];
    *place = projection(i) + (add ? *place : 0);
  }
}

static void build(struct run *run, const char *kernels, struct arena *arena, struct arena *records,
                  const double *point, bool backward) {
  static struct kernels tables[2];
  struct kernels *table = &tables[strcmp(kernels, "measure") == 0];
  assert_ok(kernels_open(table, kernels, DTYPE_F64));
  tape_init(&run->tape, table, arena, records);
  run->tape.recording = backward;
  set_inputs(run, point);
  struct value *y =
      run->tested->build(run->tested->context, &run->tape, run->inputs, &run->objective);
  project(run, y, backward);
  if (backward) assert_ok(tape_backward(&run->tape, count_ready, run));
  assert_ok(run->tape.status);
}

static void check_ready(const struct run *run) {
  for (int64_t p = 0; run->tested->params && p < run->tested->params->count; p++) {
    const struct param *param = run->tested->params->items[p];
    bool moved = false;
    for (int64_t i = 0; param->gradient && i < param->row_count * param->cols; i++)
      moved = moved || ((double *)param->gradient)[i] != 0;
    if (run->ready[p] > 1 || (moved && run->ready[p] != 1) || param->pending != 0)
      fail_msg("%s was reported ready %d times, %d uses are pending", param->name, run->ready[p],
               param->pending);
  }
}

static void read_gradients(const struct run *run, double *gradients) {
  const struct gradient_case *tested = run->tested;
  memset(gradients, 0, (size_t)gradient_count(tested) * sizeof *gradients);
  for (int64_t i = 0; i < input_count(tested); i++) {
    const int64_t count = tested->inputs[i].rows * tested->inputs[i].cols;
    const struct value *input = run->inputs[i];
    if (input->reached) memcpy(gradients, input->gradient, (size_t)count * sizeof *gradients);
    gradients += count;
  }
  for (int64_t p = 0; tested->params && p < tested->params->count; p++) {
    const struct param *param = tested->params->items[p];
    const int64_t count = param->row_count * param->cols;
    if (param->gradient) memcpy(gradients, param->gradient, (size_t)count * sizeof *gradients);
    gradients += count;
  }
}

/* The objective at a point, and its gradients unless NULL. */
static double evaluate(const struct gradient_case *tested, const double *point, double *gradients) {
  struct arena measure, arena, records;
  struct run measured = {.tested = tested}, run = {.tested = tested};
  arena_measure(&measure, "measured");
  assert_ok(arena_init(&records, "records", RECORD_BYTES));
  set_params(tested, point);
  build(&measured, "measure", &measure, &records, point, gradients != NULL);
  arena_reset(&records, 0);
  assert_ok(arena_init(&arena, "tape", measure.peak));
  build(&run, "reference", &arena, &records, point, gradients != NULL);
  if (tested->measures_most) {
    assert_true(measure.peak >= arena.peak);
  } else {
    assert_int_equal(measure.peak, arena.peak);
    assert_int_equal(measure.used, arena.used);
  }
  if (gradients) {
    check_ready(&run);
    read_gradients(&run, gradients);
  }
  arena_free(&arena);
  arena_free(&records);
  return run.objective;
}

double gradient_compute(const struct gradient_case *tested, double *gradients) {
  double *point = make_point(tested);
  const double objective = evaluate(tested, point, gradients);
  free(point);
  return objective;
}

/* A part of the point that is moved alone. */
struct part {
  char name[PARAM_NAME_BYTES];
  int64_t first, count;
};

static double objective_at(const struct gradient_case *tested, const double *point,
                           const struct part *part, const double *direction, double step) {
  const size_t bytes = (size_t)gradient_count(tested) * sizeof *point;
  double *moved = malloc(bytes + sizeof *point);
  memcpy(moved, point, bytes);
  for (int64_t i = 0; i < part->count; i++) moved[part->first + i] += step * direction[i];
  const double objective = evaluate(tested, moved, NULL);
  free(moved);
  return objective;
}

/* Fourth-order central difference. */
static double slope_along(const struct gradient_case *tested, const double *point,
                          const struct part *part, const double *direction) {
  const double h = tested->step > 0 ? tested->step : 1e-3;
  const double near = objective_at(tested, point, part, direction, h) -
                      objective_at(tested, point, part, direction, -h);
  const double far = objective_at(tested, point, part, direction, 2 * h) -
                     objective_at(tested, point, part, direction, -2 * h);
  return (8 * near - far) / (12 * h);
}

static void check_direction(const struct gradient_case *tested, const double *point,
                            const double *gradients, const struct part *part, int which) {
  double *direction = malloc((size_t)(part->count + 1) * sizeof *direction);
  double along = 0, scale = 0;
  for (int64_t i = 0; i < part->count; i++) {
    direction[i] = random_normal(random_open(23, part->name, (uint64_t)which, 0), (uint64_t)i);
    along += gradients[part->first + i] * direction[i];
    scale += gradients[part->first + i] * gradients[part->first + i];
  }
  const double slope = slope_along(tested, point, part, direction);
  const double error = fabs(slope - along),
               bound = tested->tolerance > 0 ? tested->tolerance : 1e-6;
  free(direction);
  if (!(error <= bound * (sqrt(scale) + fabs(slope)) + 1e-10))
    fail_msg("%s: differences give %.12g, backward gives %.12g", part->name, slope, along);
}

static void check_part(const struct gradient_case *tested, const double *point,
                       const double *gradients, const struct part *part) {
  for (int i = 0; i < DIRECTIONS; i++) check_direction(tested, point, gradients, part, i);
}

void gradient_check(const struct gradient_case *tested) {
  double *point = make_point(tested);
  double *gradients = malloc((size_t)(gradient_count(tested) + 1) * sizeof *gradients);
  evaluate(tested, point, gradients);
  struct part part = {.first = 0};
  for (int64_t i = 0; i < input_count(tested); i++) {
    snprintf(part.name, sizeof part.name, "input %d", (int)i);
    part.count = tested->inputs[i].rows * tested->inputs[i].cols;
    check_part(tested, point, gradients, &part);
    part.first += part.count;
  }
  for (int64_t p = 0; tested->params && p < tested->params->count; p++) {
    const struct param *param = tested->params->items[p];
    memcpy(part.name, param->name, sizeof part.name);
    part.count = param->row_count * param->cols;
    if (!param->frozen) check_part(tested, point, gradients, &part);
    part.first += part.count;
  }
  free(gradients);
  free(point);
}

void gradient_same(const struct gradient_case *a, const struct gradient_case *b) {
  const int64_t count = gradient_count(a);
  assert_int_equal(count, gradient_count(b));
  double *of_a = malloc((size_t)(count + 1) * sizeof *of_a);
  double *of_b = malloc((size_t)(count + 1) * sizeof *of_b);
  assert_true(gradient_compute(a, of_a) == gradient_compute(b, of_b));
  for (int64_t i = 0; i < count; i++)
    if (of_a[i] != of_b[i]) fail_msg("gradient %d: %.17g and %.17g", (int)i, of_a[i], of_b[i]);
  free(of_a);
  free(of_b);
}
