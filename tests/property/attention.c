/* Laws of softmax, attention and rotary embedding, in double. */
#include <math.h>
#include <string.h>

#include "stages/model/layers/attention.h"
#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/rope.h"
#include "tests/common/tap.h"

enum { T = 7, H = 2, D = 6, WIDTH = H * D };

static struct kernels kernels;
static struct arena arena, records;
static struct tape tape;

static int open_tape(void **state) {
  (void)state;
  assert_ok(kernels_open(&kernels, "reference", DTYPE_F64));
  assert_ok(arena_init(&arena, "tape", 1 << 22));
  assert_ok(arena_init(&records, "records", 1 << 20));
  tape_init(&tape, &kernels, &arena, &records);
  tape.recording = false;
  return 0;
}

static int close_tape(void **state) {
  (void)state;
  arena_free(&arena);
  arena_free(&records);
  return 0;
}

static struct value *random_value(const char *purpose) {
  struct value *value = tape_constant(&tape, T, WIDTH);
  for (int i = 0; i < T * WIDTH; i++)
    ((double *)value->data)[i] = random_normal(random_open(2, purpose, 0, 0), (uint64_t)i);
  return value;
}

static struct value *attend(struct value *q, struct value *k, struct value *v,
                            const struct attention_range *ranges) {
  return attention_forward(&tape, q, k, v,
                           &(struct attention){.batch = 1,
                                               .queries = T,
                                               .keys = T,
                                               .heads = H,
                                               .head_dim = D,
                                               .ranges = ranges,
                                               .shared_ranges = true});
}

static const double *row(const struct value *value, int64_t i) {
  return (const double *)value->data + i * WIDTH;
}

static void assert_rows_equal(const double *a, const double *b) {
  for (int j = 0; j < WIDTH; j++)
    if (!(fabs(a[j] - b[j]) <= 1e-12)) fail_msg("column %d: %.15g and %.15g", j, a[j], b[j]);
}

/* y[i] = x[(3 i + 2) % T] */
static struct value *permuted(const struct value *x) {
  struct value *y = tape_constant(&tape, T, WIDTH);
  for (int64_t i = 0; i < T; i++)
    memcpy((double *)y->data + i * WIDTH, row(x, (3 * i + 2) % T), WIDTH * sizeof(double));
  return y;
}

static void attention_commutes_with_permutations(void **state) {
  (void)state;
  struct value *q = random_value("q"), *k = random_value("k"), *v = random_value("v");
  const struct value *plain = permuted(attend(q, k, v, NULL));
  const struct value *moved = attend(permuted(q), permuted(k), permuted(v), NULL);
  for (int64_t i = 0; i < T; i++) assert_rows_equal(row(plain, i), row(moved, i));
}

/* Adding one vector to every key shifts all scores of a query alike. */
static void softmax_ignores_a_shift_of_its_scores(void **state) {
  (void)state;
  struct value *q = random_value("q"), *k = random_value("k"), *v = random_value("v");
  const struct value *plain = attend(q, k, v, NULL);
  for (int64_t i = 0; i < T * WIDTH; i++) ((double *)k->data)[i] += 3 * row(v, 0)[i % WIDTH];
  const struct value *shifted = attend(q, k, v, NULL);
  for (int64_t i = 0; i < T; i++) assert_rows_equal(row(plain, i), row(shifted, i));
}

/* What a query cannot see does not matter, and the last query of a causal mask sees everything. */
static void causal_attention_does_not_see_the_future(void **state) {
  (void)state;
  struct attention_range ranges[T];
  attention_mask_causal(ranges, T, T);
  struct value *q = random_value("q"), *k = random_value("k"), *v = random_value("v");
  const struct value *full = attend(q, k, v, NULL), *plain = attend(q, k, v, ranges);
  assert_rows_equal(row(full, T - 1), row(plain, T - 1));
  for (int64_t j = 0; j < WIDTH; j++)
    ((double *)k->data)[5 * WIDTH + j] = ((double *)v->data)[5 * WIDTH + j] = 9;
  const struct value *changed = attend(q, k, v, ranges);
  for (int64_t i = 0; i < 5; i++) assert_rows_equal(row(plain, i), row(changed, i));
  assert_true(row(plain, 5)[0] != row(changed, 5)[0]);
}

static struct value *rotate(struct value *x, int32_t shift, bool interleaved) {
  int32_t positions[T];
  for (int i = 0; i < T; i++) positions[i] = 3 * i + shift;
  return rope_forward(
      &tape, x,
      &(struct rope){.heads = H, .theta = 50, .interleaved = interleaved, .positions = positions});
}

static void rope_sees_differences_only(void **state) {
  (void)state;
  struct value *q = random_value("q"), *k = random_value("k"), *v = random_value("v");
  for (int interleaved = 0; interleaved < 2; interleaved++) {
    const struct value *near =
        attend(rotate(q, 0, interleaved), rotate(k, 0, interleaved), v, NULL);
    const struct value *far =
        attend(rotate(q, 1000, interleaved), rotate(k, 1000, interleaved), v, NULL);
    const struct value *apart =
        attend(rotate(q, 0, interleaved), rotate(k, 1000, interleaved), v, NULL);
    for (int64_t i = 0; i < T; i++) assert_rows_equal(row(near, i), row(far, i));
    assert_true(fabs(row(near, 1)[0] - row(apart, 1)[0]) > 1e-6);
  }
}

static void rope_leaves_position_minus_one_alone(void **state) {
  (void)state;
  const int32_t positions[T] = {-1, 0, 5, -1, 2, -1, 0};
  struct value *x = random_value("q");
  const struct value *y =
      rope_forward(&tape, x, &(struct rope){.heads = H, .theta = 50, .positions = positions});
  for (int64_t i = 0; i < T; i++) {
    if (positions[i] <= 0) assert_memory_equal(row(x, i), row(y, i), WIDTH * sizeof(double));
    if (positions[i] > 0) assert_true(row(x, i)[0] != row(y, i)[0]);
  }
}

/* The two streams of AURORA-LM see what the paper says (arXiv 2608.02602), written out for 4 positions in twos. */
static void two_streams_see_their_blocks(void **state) {
  (void)state;
  static const char *const expected[8] = {"xx......", "xx......", "xxxx....", "xxxx....",
                                          "....xx..", "....xx..", "xx....xx", "xx....xx"};
  struct attention_range ranges[8];
  attention_mask_two_stream(ranges, 4, 2);
  for (int i = 0; i < 8; i++)
    for (int key = 0; key < 8; key++) {
      const struct attention_range range = ranges[i];
      const bool seen = (key >= range.first_begin && key < range.first_end) ||
                        (key >= range.second_begin && key < range.second_end);
      assert_int_equal(seen, expected[i][key] == 'x');
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention_commutes_with_permutations),
      cmocka_unit_test(softmax_ignores_a_shift_of_its_scores),
      cmocka_unit_test(causal_attention_does_not_see_the_future),
      cmocka_unit_test(rope_sees_differences_only),
      cmocka_unit_test(rope_leaves_position_minus_one_alone),
      cmocka_unit_test(two_streams_see_their_blocks),
  };
  return cmocka_run_group_tests_name("laws of attention", tests, open_tape, close_tape);
}
