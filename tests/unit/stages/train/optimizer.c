/* The optimizer: first steps against the formulas in double, averages, and which rule a tensor
 * takes. */
#include <math.h>
#include <string.h>

#include "stages/model/networks/elf_backbone.h"
#include "stages/train/adam.h"
#include "stages/train/optimizer.h"
#include "tests/common/tap.h"

enum { WIDTH = 3, STEPS = 4, PARAMS = 3 };

/* A set of one matrix, one table and one vector, all owned here. */
struct fixture {
  struct arena declarations, weights, state;
  struct params params;
  struct options options;
  struct zero zero;
  int owners[PARAMS];
  bool sliced[PARAMS];
  struct comm world;
  struct grid grid;
  struct optimizer optimizer;
};

static void open_fixture(struct fixture *f, enum dtype element) {
  assert_ok(arena_init(&f->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&f->weights, "weights", 1 << 20));
  assert_ok(arena_init(&f->state, "optimizer", 1 << 20));
  params_init(&f->params, &f->declarations);
  params_add_matrix(&f->params, WIDTH, WIDTH, PARAM_NORMAL, 1, "matrix");
  params_add_table(&f->params, 5, WIDTH, PARAM_NORMAL, 1, "table");
  params_add_vector(&f->params, WIDTH, PARAM_ONE, 0, "gain");
  f->params.items[0]->rate = 0.5;
  params_bind(&f->params, &f->weights, element, true);
  params_initialise(&f->params, element, 3);
  f->world = (struct comm){.size = 1};
  f->grid = (struct grid){.world = &f->world};
  f->zero =
      (struct zero){.grid = &f->grid, .tensors = PARAMS, .owner = f->owners, .sliced = f->sliced};
  const struct optimizer_setup setup = {.options = &f->options,
                                        .zero = &f->zero,
                                        .params = f->params.items,
                                        .count = PARAMS,
                                        .element = element,
                                        .kernels = "reference"};
  assert_ok(optimizer_init(&f->optimizer, &setup, &f->state));
  optimizer_start(&f->optimizer);
}

static void close_fixture(struct fixture *f) {
  optimizer_free(&f->optimizer);
  arena_free(&f->state);
  arena_free(&f->weights);
  arena_free(&f->declarations);
}

static struct options adam_options(void) {
  struct options options;
  options_defaults(&options);
  options.weight_decay = 0.1;
  options.ema = 0.9;
  return options;
}

static float gradient_of(int64_t step, int64_t element) {
  return (float)sin((double)(7 * step + 3 * element + 1));
}

static void apply_all(struct fixture *f, int64_t step, double rate, double scale) {
  const struct optimizer_update update = {.rate = rate, .gradient_scale = scale};
  optimizer_begin(&f->optimizer);
  for (int64_t i = 0; i < PARAMS; i++) {
    float gradient[5 * WIDTH];
    bool finite = false;
    for (int64_t j = 0; j < param_count(f->params.items[i]); j++)
      gradient[j] = gradient_of(step, j);
    const struct gradients_sum sum = {gradient, DTYPE_F32};
    assert_ok(optimizer_apply(&f->optimizer, i, &sum, &update, &finite));
    assert_true(finite);
  }
}

/* The formulas of Adam with decoupled decay for one weight, in double. */
struct exact {
  double w, m, v, average;
};

static void exact_step(struct exact *e, double g, double rate, double decay, int k) {
  e->m = 0.9 * e->m + 0.1 * g;
  e->v = 0.95 * e->v + 0.05 * g * g;
  const double m = e->m / (1 - pow(0.9, k)), v = e->v / (1 - pow(0.95, k));
  e->w -= rate * (m / (sqrt(v) + 1e-8) + decay * e->w);
  const double start = (1.0 + k) / (10.0 + k), keep = start < 0.9 ? start : 0.9;
  e->average = keep * e->average + (1 - keep) * e->w;
}

static void check_adam(enum dtype element) {
  struct fixture f = {.options = adam_options()};
  open_fixture(&f, element);
  struct exact exact[PARAMS][5 * WIDTH];
  memset(exact, 0, sizeof exact);
  for (int64_t i = 0; i < PARAMS; i++)
    for (int64_t j = 0; j < param_count(f.params.items[i]); j++) {
      float w;
      optimizer_masters(&f.optimizer, i, &w, j, 1);
      exact[i][j].w = exact[i][j].average = (double)w;
    }
  for (int k = 1; k <= STEPS; k++) {
    apply_all(&f, k, 0.01, 0.5);
    for (int64_t i = 0; i < PARAMS; i++)
      for (int64_t j = 0; j < param_count(f.params.items[i]); j++)
        exact_step(&exact[i][j], 0.5 * (double)gradient_of(k, j), i == 0 ? 0.005 : 0.01,
                   i == 0   ? 0.2
                   : i == 1 ? 0.1
                            : 0,
                   k); /* decay takes as much at half the rate */
  }
  for (int64_t i = 0; i < PARAMS; i++)
    for (int64_t j = 0; j < param_count(f.params.items[i]); j++) {
      float w;
      optimizer_masters(&f.optimizer, i, &w, j, 1);
      assert_near((double)w, exact[i][j].w, 2e-6);
      assert_near((double)f.optimizer.tensors[i].average[j], exact[i][j].average, 2e-6);
    }
  assert_int_equal(f.optimizer.averaged, STEPS);
  close_fixture(&f);
}

static void adam_follows_its_formulas(void **state) {
  (void)state;
  check_adam(DTYPE_F32);
  check_adam(DTYPE_BF16); /* masters keep F32 */
}

static void nesterov_follows_its_formula(void **state) {
  (void)state;
  const struct adam adam = {.rate = 0.1,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .epsilon = 1e-8,
                            .gradient_scale = 1,
                            .nesterov = true};
  float w = 1, m = 0, v = 0;
  double exact = 1, em = 0, ev = 0;
  for (int k = 1; k <= STEPS; k++) {
    const float g = gradient_of(k, 0);
    adam_update(&w, &m, &v, &g, 1, k, &adam);
    em = 0.9 * em + 0.1 * (double)g;
    ev = 0.999 * ev + 0.001 * (double)g * (double)g;
    const double u = 0.9 * em / (1 - pow(0.9, k + 1)) + 0.1 * (double)g / (1 - pow(0.9, k));
    exact -= 0.1 * u / (sqrt(ev / (1 - pow(0.999, k))) + 1e-8);
    assert_near((double)w, exact, 1e-6);
  }
}

static void muon_takes_matrices_only(void **state) {
  (void)state;
  struct fixture f = {.options = adam_options()};
  f.options.optimizer = OPTIMIZER_MUON;
  f.options.weight_decay = 0;
  open_fixture(&f, DTYPE_F32);
  assert_true(f.optimizer.tensors[0].muon && !f.optimizer.tensors[0].second);
  assert_false(f.optimizer.tensors[1].muon || f.optimizer.tensors[2].muon);
  float before[WIDTH * WIDTH], after[WIDTH * WIDTH];
  optimizer_masters(&f.optimizer, 0, before, 0, WIDTH * WIDTH);
  apply_all(&f, 1, 0.01, 1);
  optimizer_masters(&f.optimizer, 0, after, 0, WIDTH * WIDTH);
  double square = 0;
  for (int i = 0; i < WIDTH * WIDTH; i++) square += pow((double)(before[i] - after[i]) / 0.01, 2);
  assert_in_range((int)(100 * square), 40, 300); /* singular values of the step are near 1 */
  close_fixture(&f);
}

/* ELF's released code orthogonalises what has two dimensions, the unembedding included, and nothing
 * else. */
static void muon_takes_every_matrix_of_elf(void **state) {
  (void)state;
  struct arena declarations;
  struct params params;
  struct elf_backbone net;
  struct options options = adam_options();
  options.optimizer = OPTIMIZER_MUON;
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  params_init(&params, &declarations);
  elf_backbone_declare(&net, &params,
                       &(struct elf_backbone_config){.depth = 1,
                                                     .width = 8,
                                                     .heads = 2,
                                                     .bottleneck = 3,
                                                     .latent_width = 6,
                                                     .vocabulary = 11});
  for (int64_t i = 0; i < params.count; i++)
    assert_true(optimizer_takes_muon(&options, params.items[i]) ==
                (params.items[i]->dimensions == 2));
  assert_true(optimizer_takes_muon(&options, net.unembed));
  arena_free(&declarations);
}

static void bad_weights_are_seen(void **state) {
  (void)state;
  struct fixture f = {.options = adam_options()};
  open_fixture(&f, DTYPE_F32);
  const struct optimizer_update update = {.rate = 1e30, .gradient_scale = 1};
  float gradient[WIDTH] = {1, NAN, 1};
  const struct gradients_sum sum = {gradient, DTYPE_F32};
  bool finite = true;
  optimizer_begin(&f.optimizer);
  assert_ok(optimizer_apply(&f.optimizer, 2, &sum, &update, &finite));
  assert_false(finite);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adam_follows_its_formulas), cmocka_unit_test(nesterov_follows_its_formula),
      cmocka_unit_test(muon_takes_matrices_only),  cmocka_unit_test(muon_takes_every_matrix_of_elf),
      cmocka_unit_test(bad_weights_are_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
