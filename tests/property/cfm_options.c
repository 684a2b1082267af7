/* What each option of the categorical flows' network does. */
#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/model/networks/cfm_transformer.h"
#include "tests/common/tap.h"

enum { BATCH = 2, POSITIONS = 3, N = BATCH * POSITIONS, WIDTH = 8, STATE = 6, WORK = 8 << 20 };

static const double early[BATCH] = {.2, .5}, late[BATCH] = {.7, .5};

struct network {
  struct arena declarations, weights, values, records;
  struct params params;
  struct kernels kernels;
  struct cfm_transformer net;
  double y[N * WIDTH]; /* what the last run gave */
};

static void randomise(const struct param *param) {
  const struct random_stream stream = random_open(2, param->name, 0, 0);
  for (int64_t i = 0; i < param_count(param); i++)
    ((double *)param->data)[i] += 0.5 * random_normal(stream, (uint64_t)i);
}

static void open_network(struct network *n, struct cfm_transformer_config config) {
  config.depth = 2;
  config.width = WIDTH;
  config.heads = 2;
  config.state_width = STATE;
  config.condition = 4;
  *n = (struct network){.y = {0}};
  assert_ok(arena_init(&n->declarations, "declarations", WORK));
  assert_ok(arena_init(&n->weights, "weights", WORK));
  assert_ok(arena_init(&n->values, "values", WORK));
  assert_ok(arena_init(&n->records, "records", WORK));
  assert_ok(kernels_open(&n->kernels, "reference", DTYPE_F64));
  params_init(&n->params, &n->declarations);
  cfm_transformer_declare(&n->net, &n->params, &config);
  params_bind(&n->params, &n->weights, DTYPE_F64, false);
  params_initialise(&n->params, DTYPE_F64, 1);
}

static void close_network(struct network *n) {
  arena_free(&n->records);
  arena_free(&n->values);
  arena_free(&n->weights);
  arena_free(&n->declarations);
}

static const float no_token[N] = {0}, one_token[N] = {0, 0, 0, 0, 1, 0};

static void run(struct network *n, const float *clean) {
  struct tape tape;
  float state[N * STATE];
  random_fill_normal(state, N * STATE, random_open(4, "state", 0, 0), 0);
  arena_reset(&n->values, 0);
  arena_reset(&n->records, 0);
  tape_init(&tape, &n->kernels, &n->values, &n->records);
  struct value *y = tape_input(&tape, state, N, STATE);
  y = cfm_transformer_forward(&tape, &n->net, y,
                              &(struct cfm_times){.from = early, .to = late, .clean = clean}, BATCH,
                              POSITIONS);
  memcpy(n->y, y->data, sizeof n->y);
}

/* The largest change of the output when a parameter's first rows are multiplied. */
static double change(struct cfm_transformer_config config, const char *name, int64_t rows,
                     double factor) {
  struct network n;
  double before[N * WIDTH], most = 0;
  open_network(&n, config);
  for (int64_t i = 0; i < n.params.count; i++) randomise(n.params.items[i]);
  run(&n, one_token);
  memcpy(before, n.y, sizeof before);
  const struct param *param = params_find(&n.params, name);
  for (int64_t i = 0; i < rows * param->cols; i++) ((double *)param->data)[i] *= factor;
  run(&n, one_token);
  for (int i = 0; i < N * WIDTH; i++) most = fmax(most, fabs(n.y[i] - before[i]));
  close_network(&n);
  return most;
}

/* The whole modulation of a block times 10, by its matrix and its bias. */
static double change_of_modulation(struct cfm_transformer_config config) {
  struct network n;
  double before[N * WIDTH], most = 0;
  open_network(&n, config);
  for (int64_t i = 0; i < n.params.count; i++) randomise(n.params.items[i]);
  run(&n, one_token);
  memcpy(before, n.y, sizeof before);
  struct param *const both[] = {n.net.blocks[0].modulation, n.net.blocks[0].modulation_bias};
  for (int p = 0; p < 2; p++)
    for (int64_t i = 0; i < param_count(both[p]); i++) ((double *)both[p]->data)[i] *= 10;
  run(&n, one_token);
  for (int i = 0; i < N * WIDTH; i++) most = fmax(most, fabs(n.y[i] - before[i]));
  close_network(&n);
  return most;
}

static void bounded_modulation_ignores_its_size(void **state) {
  (void)state;
  assert_true(change_of_modulation((struct cfm_transformer_config){.bounded = true}) < 1e-4);
  assert_true(change_of_modulation((struct cfm_transformer_config){.bounded = false}) > 0.05);
}

static void norm_of_queries_ignores_their_size(void **state) {
  (void)state;
  const char *name = "blocks.0.attn.qkv.weight";
  assert_true(change((struct cfm_transformer_config){.plain_attention = false}, name, WIDTH, 10) <
              1e-4);
  assert_true(change((struct cfm_transformer_config){.plain_attention = true}, name, WIDTH, 10) >
              1e-2);
}

static void shared_modulation_is_one_matrix(void **state) {
  (void)state;
  struct network own, shared;
  open_network(&own, (struct cfm_transformer_config){.shared = false});
  open_network(&shared, (struct cfm_transformer_config){.shared = true});
  assert_int_equal(params_count(&own.params) - params_count(&shared.params), 6 * WIDTH * 4);
  assert_null(params_find(&shared.params, "blocks.0.modulation.weight"));
  assert_non_null(params_find(&shared.params, "blocks.1.modulation.bias"));
  close_network(&own);
  close_network(&shared);
  const struct cfm_transformer_config config = {.shared = true};
  assert_true(change(config, "modulation.weight", 6 * WIDTH, 2) > 1e-2);
}

/* Of the output of a row when token 4 is marked. */
static double change_by_mark(bool flag, int row) {
  struct network n;
  double before[N * WIDTH], most = 0;
  open_network(&n, (struct cfm_transformer_config){.flag = flag});
  for (int64_t i = 0; i < n.params.count; i++) randomise(n.params.items[i]);
  run(&n, no_token);
  memcpy(before, n.y, sizeof before);
  run(&n, one_token);
  for (int i = row * WIDTH; i < (row + 1) * WIDTH; i++) most = fmax(most, fabs(n.y[i] - before[i]));
  close_network(&n);
  return most;
}

static void flag_tells_which_tokens_are_clean(void **state) {
  (void)state;
  assert_true(change_by_mark(false, 4) == 0);
  assert_true(change_by_mark(true, 4) > 1e-3); /* itself, */
  assert_true(change_by_mark(true, 3) > 0);    /* its row by attention, */
  assert_true(change_by_mark(true, 0) == 0);   /* and no other row */
}

/* |A v| / |v| grows towards the largest singular value under many multiplications with A'A. */
static double largest_singular_value(const struct param *param) {
  double v[64], u[64], length = 0;
  const double *a = param->data;
  const int64_t rows = param->rows, cols = param->cols;
  assert_true(rows <= 64 && cols <= 64);
  for (int64_t j = 0; j < cols; j++) v[j] = 1 + 0.1 * (double)j;
  for (int round = 0; round < 3000; round++) {
    double square = 0;
    for (int64_t i = 0; i < rows; i++) u[i] = 0;
    for (int64_t i = 0; i < rows * cols; i++) u[i / cols] += a[i] * v[i % cols];
    for (int64_t j = 0; j < cols; j++) v[j] = 0;
    for (int64_t i = 0; i < rows * cols; i++) v[i % cols] += a[i] * u[i / cols];
    for (int64_t j = 0; j < cols; j++) square += v[j] * v[j];
    length = sqrt(square);
    for (int64_t j = 0; j < cols; j++) v[j] /= length;
  }
  return sqrt(length);
}

static void spectral_weights_start_at_one(void **state) {
  (void)state;
  static const char *const names[] = {"input.weight", "blocks.0.attn.qkv.weight",
                                      "blocks.1.mlp.w3.weight"};
  struct network n;
  open_network(&n, (struct cfm_transformer_config){.spectral = true});
  for (int i = 0; i < 3; i++)
    assert_near(largest_singular_value(params_find(&n.params, names[i])), 1, 0.03);
  close_network(&n);
}

static void rate_is_that_of_matrices_of_the_width(void **state) {
  (void)state;
  struct network n;
  open_network(&n, (struct cfm_transformer_config){.rate = 0.25});
  assert_true(params_find(&n.params, "blocks.0.mlp.w12.weight")->rate == 0.25);
  assert_true(params_find(&n.params, "input.weight")->rate == 0.25);
  assert_true(params_find(&n.params, "blocks.0.modulation.weight")->rate == 1);
  assert_true(params_find(&n.params, "s_embedder.mlp_0.weight")->rate == 1);
  close_network(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounded_modulation_ignores_its_size),
                                     cmocka_unit_test(norm_of_queries_ignores_their_size),
                                     cmocka_unit_test(shared_modulation_is_one_matrix),
                                     cmocka_unit_test(flag_tells_which_tokens_are_clean),
                                     cmocka_unit_test(spectral_weights_start_at_one),
                                     cmocka_unit_test(rate_is_that_of_matrices_of_the_width)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
