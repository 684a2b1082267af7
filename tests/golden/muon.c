/* Steps 1 to 3 of the whole optimizer, Muon and Nesterov-Adam behind a clipped norm, in F32 against
 * optax.contrib.muon in double (tests/golden/muon.py): relative error < 1e-5. `unembed` is cut into
 * slices of a vocabulary, as ELF's is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stages/train/optimizer.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

enum { WIDTH = 8, VOCABULARY = 40, PARAMS = 5, STEPS = 3 };

static const double RATE = 0.002, TOLERANCE = 1e-5;
static const double scales[STEPS] = {0.4, 0.01, 3};

struct golden_way {
  const char *name;
  int step;
  double projection, size;
};

static const struct golden_way golden[] = {
#include "tests/golden/muon.inc"
};

struct fixture {
  struct arena declarations, weights, state;
  struct params params;
  struct options options;
  struct vocab vocab;
  struct zero zero;
  int owners[PARAMS];
  bool sliced[PARAMS];
  struct comm world;
  struct grid grid;
  struct optimizer optimizer;
  float *gradients[PARAMS];
};

static void declare(struct fixture *f) {
  params_init(&f->params, &f->declarations);
  params_add_matrix(&f->params, 24, WIDTH, PARAM_ZERO, 0, "qkv");
  params_add_matrix(&f->params, WIDTH, 21, PARAM_ZERO, 0, "down");
  struct param *unembed =
      params_add_matrix(&f->params, VOCABULARY, WIDTH, PARAM_ZERO, 0, "unembed");
  param_slice(unembed, 0, VOCABULARY);
  params_add_tokens(&f->params, 4, WIDTH, PARAM_ZERO, 0, "tokens");
  params_add_vector(&f->params, WIDTH, PARAM_ZERO, 0, "bias");
}

static void take_gradients(struct fixture *f) {
  for (int i = 0; i < PARAMS; i++) {
    f->gradients[i] = malloc((size_t)param_count(f->params.items[i]) * sizeof(float));
    assert_non_null(f->gradients[i]);
  }
}

static void open_fixture(struct fixture *f) {
  *f = (struct fixture){.world = {.size = 1}};
  options_defaults(&f->options);
  f->options.optimizer = OPTIMIZER_MUON;
  f->options.beta2 = 0.999;
  assert_ok(arena_init(&f->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&f->weights, "weights", 1 << 20));
  assert_ok(arena_init(&f->state, "optimizer", 1 << 20));
  assert_ok(vocab_init(&f->vocab, NULL, VOCABULARY, 16));
  declare(f);
  params_bind(&f->params, &f->weights, DTYPE_F32, false);
  params_initialise(&f->params, DTYPE_F32, 1);
  take_gradients(f);
  f->grid = (struct grid){.world = &f->world};
  f->zero =
      (struct zero){.grid = &f->grid, .tensors = PARAMS, .owner = f->owners, .sliced = f->sliced};
  const struct optimizer_setup setup = {.options = &f->options,
                                        .vocab = &f->vocab,
                                        .zero = &f->zero,
                                        .params = f->params.items,
                                        .count = PARAMS,
                                        .element = DTYPE_F32,
                                        .kernels = "cpu"};
  assert_ok(optimizer_init(&f->optimizer, &setup, &f->state));
  optimizer_start(&f->optimizer);
}

static void close_fixture(struct fixture *f) {
  for (int i = 0; i < PARAMS; i++) free(f->gradients[i]);
  optimizer_free(&f->optimizer);
  arena_free(&f->state);
  arena_free(&f->weights);
  arena_free(&f->declarations);
}

/* Fills the gradients of a step; returns their norm. */
static double make_gradients(struct fixture *f, int step) {
  char name[64];
  double square = 0;
  for (int i = 0; i < PARAMS; i++) {
    const struct param *param = f->params.items[i];
    snprintf(name, sizeof name, "gradient.%d.%.40s", step, param->name);
    golden_fill(f->gradients[i], param_count(param), name, scales[step - 1], 0);
    for (int64_t j = 0; j < param_count(param); j++)
      square += (double)f->gradients[i][j] * (double)f->gradients[i][j];
  }
  return sqrt(square);
}

static void update(struct fixture *f, int step) {
  const double norm = make_gradients(f, step);
  const struct optimizer_update given = {.rate = RATE, .gradient_scale = norm > 1 ? 1 / norm : 1};
  optimizer_begin(&f->optimizer);
  for (int i = 0; i < PARAMS; i++) {
    bool finite = false;
    const struct gradients_sum sum = {f->gradients[i], DTYPE_F32};
    assert_ok(optimizer_apply(&f->optimizer, i, &sum, &given, &finite));
    assert_true(finite);
  }
}

static void compare(const struct fixture *f, int i, const struct golden_way *expected) {
  char name[64];
  float way[VOCABULARY * WIDTH];
  const struct param *param = f->params.items[i];
  const float *now = param->data;
  double square = 0;
  for (int64_t j = 0; j < param_count(param); j++) {
    way[j] = (float)((double)now[j] / RATE);
    square += (double)way[j] * (double)way[j];
  }
  snprintf(name, sizeof name, "way.%.40s", param->name);
  const double found = golden_project(name, way, param_count(param));
  const double most = TOLERANCE * expected->size;
  if (!(fabs(found - expected->projection) < most && fabs(sqrt(square) - expected->size) < most))
    fail_msg("step %d of %s: %.9g of size %.9g, golden %.9g of size %.9g", expected->step,
             param->name, found, sqrt(square), expected->projection, expected->size);
}

static void steps_equal_optax(void **state) {
  (void)state;
  struct fixture f;
  open_fixture(&f);
  assert_int_equal(sizeof golden / sizeof *golden, STEPS * PARAMS);
  for (int step = 1; step <= STEPS; step++) {
    update(&f, step);
    for (int i = 0; i < PARAMS; i++) {
      const struct golden_way *expected = &golden[(step - 1) * PARAMS + i];
      assert_string_equal(expected->name, f.params.items[i]->name);
      compare(&f, i, expected);
    }
  }
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_equal_optax)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
