/* R-VOC-2: the bits of the heads do not depend on how much is in memory at once, in multiples of
 * the chunks; other tiles agree up to rounding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "tests/common/head_case.h"
#include "tests/common/tap.h"

/* Two chunks of tokens and three of each slice's rows, the last a part. */
enum { N = 530, C = 6, D = 3, V = 4200, SLICES = 2 };

/* Everything that the heads make, as stored but for the mean rows. */
struct made {
  double loss[N], lse[N], smoothing[N], divergence[3][N], distance[3][N];
  float means[N * D];
  float dx[N * C], dw[V * C], db[V]; /* bf16 dx: in the first half */
};

static struct made first, other;

static void run(struct made *made, enum dtype element, const struct head_tiling *tiling) {
  static struct head_case bench;
  static int32_t targets[N];
  static float weight[N];
  static double omega[N];
  bench = (struct head_case){
      .name = "cpu", .element = element, .N = N, .C = C, .V = V, .D = D, .slices = SLICES};
  memset(made, 0, sizeof *made);
  head_case_open(&bench);
  for (int i = 0; i < N; i++) {
    targets[i] = i * 211 % V;
    weight[i] = i % 7 == 3 ? 0 : 0.25f * (float)(1 + i % 3);
    omega[i] = (i % 4) / 3.0;
  }
  struct head head = head_case_head(&bench, true);
  head.targets = targets;
  head.weight = weight;
  head.smoothing = 0.1;
  head.log_sum_exp_penalty = 0.01;
  head.tiling = tiling;
  head_forward(&bench.tape,
               &(struct head_result){
                   .loss = made->loss, .log_sum_exp = made->lse, .smoothing = made->smoothing},
               bench.x[0], &head);
  const struct head_teacher teacher = {bench.w, bench.x[1], bench.x[2], omega, NULL};
  for (int kind = 0; kind < 3; kind++)
    head_distill_forward(
        &bench.tape, &(struct head_distill_result){made->divergence[kind], made->distance[kind]},
        bench.x[0], &head, &teacher, (enum divergence)kind);
  tape_output(&bench.tape, made->means,
              head_expectation(&bench.tape, bench.x[0], &head, bench.table));
  assert_ok(tape_backward(&bench.tape, NULL, NULL));
  memcpy(made->dx, bench.x[0]->gradient, (size_t)(N * C) * dtype_bytes(element));
  memcpy(made->dw, bench.w->gradient, sizeof made->dw);
  memcpy(made->db, bench.b->gradient, sizeof made->db);
  head_case_close(&bench);
}

static void check_multiples(enum dtype element) {
  static const struct head_tiling tilings[] = {{512, 2048}, {1024, 3072}};
  run(&first, element, NULL);
  for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
    run(&other, element, &tilings[i]);
    assert_memory_equal(&first, &other, sizeof first);
  }
}

static void multiples_of_a_chunk_have_the_same_bits(void **state) {
  (void)state;
  check_multiples(DTYPE_F32);
  check_multiples(DTYPE_BF16);
}

static void compare(const float *a, const float *b, int64_t count) {
  float size = 0;
  for (int64_t i = 0; i < count; i++) size = fmaxf(size, fabsf(a[i]));
  for (int64_t i = 0; i < count; i++) assert_true(fabsf(a[i] - b[i]) <= 2e-6f * size);
}

static void other_tiles_agree(void **state) {
  (void)state;
  static const struct head_tiling tilings[] = {{100, 300}, {512, 700}};
  run(&first, DTYPE_F32, NULL);
  for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
    run(&other, DTYPE_F32, &tilings[i]);
    for (int64_t j = 0; j < N; j++) {
      assert_true(fabs(first.lse[j] - other.lse[j]) <= 2e-7 * first.lse[j]);
      assert_true(fabs(first.divergence[1][j] - other.divergence[1][j]) <= 1e-5);
      assert_true(fabs(first.divergence[2][j] - other.divergence[2][j]) <= 1e-6);
    }
    compare(first.means, other.means, N * D);
    compare(first.dx, other.dx, N * C);
    compare(first.dw, other.dw, V * C);
    compare(first.db, other.db, V);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(multiples_of_a_chunk_have_the_same_bits),
      cmocka_unit_test(other_tiles_agree),
  };
  return cmocka_run_group_tests_name("R-VOC-2 tiles of the heads", tests, NULL, NULL);
}
