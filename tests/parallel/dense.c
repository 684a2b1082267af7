/* np: 1 2 3 4 */
#include "sharding/dense.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/bf16.h"
#include "tests/common/parallel.h"

enum { V = 300, C = 19, SLICES = 4 };

static float element(int64_t row, int64_t c) {
  return bf16_to_float(bf16_from_float((float)((row * 31 + c * 17) % 101 - 50) / 37.0f));
}

struct group {
  struct comm comm;
  struct vocab vocab;
  struct arena scratch;
  float floats[V][C];
  bf16 halves[V][C];
};

static void open_group(struct parallel_test *test, struct group *group, int color) {
  parallel_ok(test, comm_split(&group->comm, test->world, color));
  parallel_ok(test, vocab_init(&group->vocab, &group->comm, V, SLICES));
  parallel_ok(test, arena_init(&group->scratch, "test", 4 << 20));
  const struct split rows = group->vocab.rows;
  for (int64_t v = rows.begin; v < rows.end; v++)
    for (int64_t c = 0; c < C; c++) {
      group->floats[v - rows.begin][c] = element(v, c);
      group->halves[v - rows.begin][c] = bf16_from_float(element(v, c));
    }
}

static void close_group(struct group *group) {
  arena_free(&group->scratch);
  comm_free(&group->comm);
}

static void gram_of(struct parallel_test *test, struct group *group, double *gram,
                    const struct dense_table *table) {
  struct arena measured;
  arena_measure(&measured, "measured");
  parallel_ok(test, dense_gram(&group->vocab, NULL, table, &measured));
  parallel_ok(test, dense_gram(&group->vocab, gram, table, &group->scratch));
  parallel_expect(test, measured.peak == group->scratch.peak);
}

static void compare_with_serial(struct parallel_test *test, const double *gram, double tolerance) {
  for (int64_t i = 0; i < C; i++)
    for (int64_t j = 0; j < C; j++) {
      double sum = 0;
      for (int64_t v = 0; v < V; v++) sum += (double)element(v, i) * (double)element(v, j);
      parallel_expect(test, fabs(gram[i * C + j] - sum) < tolerance);
      parallel_expect(test, gram[i * C + j] == gram[j * C + i]);
    }
}

static void float_product(void *context, float *gram, const void *rows, int64_t n, int64_t width) {
  const float *values = rows;
  int *calls = context;
  ++*calls;
  for (int64_t i = 0; i < width; i++)
    for (int64_t j = 0; j <= i; j++) {
      float sum = 0;
      for (int64_t r = 0; r < n; r++) sum += values[r * width + i] * values[r * width + j];
      gram[i * width + j] = sum;
      gram[j * width + i] = sum;
    }
}

/* The whole group against a group of this rank alone. */
static void compare_groups(struct parallel_test *test, const struct dense_product *product,
                           double tolerance) {
  static double gram[C * C], alone[C * C];
  static struct group group, single;
  open_group(test, &group, 0);
  open_group(test, &single, test->world->rank);
  gram_of(test, &group, gram, &(struct dense_table){group.floats, DTYPE_F32, C, product});
  gram_of(test, &single, alone, &(struct dense_table){single.floats, DTYPE_F32, C, product});
  compare_with_serial(test, gram, tolerance);
  if (split_power_of_two(test->world->size))
    parallel_expect(test, memcmp(gram, alone, sizeof gram) == 0);
  close_group(&single);
  close_group(&group);
}

static void gram_has_the_same_bits(struct parallel_test *test) {
  compare_groups(test, NULL, 1e-10);
}

static void gram_of_a_given_product(struct parallel_test *test) {
  int calls = 0;
  compare_groups(test, &(struct dense_product){float_product, &calls}, 1e-3);
  parallel_expect(test, calls > 0);
}

static void bf16_rows_are_exact(struct parallel_test *test) {
  static double gram[C * C], halves[C * C];
  static struct group group;
  open_group(test, &group, 0);
  gram_of(test, &group, gram, &(struct dense_table){group.floats, DTYPE_F32, C, NULL});
  gram_of(test, &group, halves, &(struct dense_table){group.halves, DTYPE_BF16, C, NULL});
  parallel_expect(test, memcmp(gram, halves, sizeof gram) == 0);
  close_group(&group);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-SCA-3 Gram matrix: same bits for 1, 2, 4 ranks, equal to the serial one",
       gram_has_the_same_bits},
      {"Gram matrix with a product of the caller's", gram_of_a_given_product},
      {"Gram matrix of bf16 rows", bf16_rows_are_exact},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
