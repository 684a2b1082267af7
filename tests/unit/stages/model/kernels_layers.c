/* Linear maps, norms, modulation, rotary embedding and softmax tiles of every table against the
 * reference. */
#include <math.h>

#include "tests/common/kernel_case.h"
#include "tests/common/tap.h"

/* n, c and a variant. */
static const int64_t SIZES[][6] = {{1, 1, 0},   {3, 17, 1}, {6, 15, 2},   {9, 33, 3},
                                   {4, 63, 0},  {7, 64, 1}, {130, 65, 2}, {257, 130, 3},
                                   {12, 48, 4}, {2, 770, 5}};

static void check(const char *name, kernel_case *run) {
  for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
    kernel_case_check(name, run, SIZES[i], DTYPE_F32);
    kernel_case_check(name, run, SIZES[i], DTYPE_BF16);
  }
}

static void case_linear(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], in = run->sizes[1], out = in / 2 + 3;
  const int64_t gap = run->sizes[2];
  void *x = kernel_case_elements(run, n * (in + gap)), *w = kernel_case_elements(run, out * in);
  void *dy = kernel_case_elements(run, n * (out + gap)), *bias = kernel_case_sums(run, out);
  k->linear_forward(kernel_case_elements(run, n * (out + gap)), x, w, gap & 1 ? bias : NULL, n, out,
                    in, out + gap, in + gap);
  k->linear_backward_input(kernel_case_elements(run, n * (in + gap)), dy, w, n, out, in, in + gap,
                           out + gap, gap & 1);
  k->linear_backward_weight(kernel_case_sums(run, out * in), dy, x, n, out, in, out + gap,
                            in + gap);
  k->linear_forward_sum(kernel_case_sums(run, n * out), x, w, bias, n, out, in);
  k->linear_backward_input_sum(kernel_case_sums(run, n * in), dy, w, n, out, in, out + gap);
}

static void case_rmsnorm(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], c = run->sizes[1], variant = run->sizes[2];
  const int64_t groups = 1 + variant % 3, stride = groups * c + variant;
  void *x = kernel_case_elements(run, n * stride), *dy = kernel_case_elements(run, n * groups * c);
  void *gain = kernel_case_sums(run, c), *dgain = kernel_case_sums(run, c);
  void *scale = kernel_case_positive(run, n * groups);
  if (variant & 1) gain = dgain = NULL;
  k->rmsnorm_backward(variant == 4 ? NULL : kernel_case_elements(run, n * stride), dgain, dy, scale,
                      x, gain, n, groups, c, stride, variant & 2);
  k->rmsnorm_jvp(kernel_case_elements(run, n * groups * c), kernel_case_elements(run, n * stride),
                 scale, x, gain, n, groups, c, stride);
  k->rmsnorm_forward(kernel_case_elements(run, n * groups * c), scale, x, gain, n, groups, c,
                     stride, 1e-5);
}

static void case_layernorm(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], c = run->sizes[1], variant = run->sizes[2];
  const int64_t stride = c + variant;
  void *x = kernel_case_elements(run, n * stride), *dy = kernel_case_elements(run, n * c);
  void *gain = kernel_case_sums(run, c), *bias = kernel_case_sums(run, c);
  void *dgain = kernel_case_sums(run, c), *dbias = kernel_case_sums(run, c);
  void *mean = kernel_case_sums(run, n), *scale = kernel_case_positive(run, n);
  if (variant & 1) gain = bias = dgain = dbias = NULL;
  k->layernorm_backward(variant == 4 ? NULL : kernel_case_elements(run, n * stride), dgain, dbias,
                        dy, mean, scale, x, gain, n, c, stride, variant & 2);
  k->layernorm_forward(kernel_case_elements(run, n * c), mean, scale, x, gain, bias, n, c, stride,
                       0.1);
}

static void case_modulation(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t T = run->sizes[0], c = run->sizes[1], variant = run->sizes[2], n = 2 * T;
  const int64_t stride = 2 * c + variant;
  void *x = kernel_case_elements(run, n * c), *dy = kernel_case_elements(run, n * c);
  void *condition = kernel_case_elements(run, 2 * stride),
       *scale = kernel_case_elements(run, 2 * stride);
  void *y = kernel_case_elements(run, n * c), *dx = kernel_case_elements(run, n * c);
  void *dshift = kernel_case_elements(run, 2 * stride),
       *dscale = kernel_case_elements(run, 2 * stride);
  k->modulate_forward(y, x, condition, scale, n, c, T, stride);
  k->gate_forward(kernel_case_elements(run, n * c), x, dy, condition, n, c, T, stride);
  k->modulate_backward(variant & 2 ? NULL : dx, variant & 4 ? NULL : dshift, dscale, dy, x, scale,
                       n, c, T, stride, variant & 1, false, variant & 1);
  k->gate_backward(kernel_case_elements(run, n * c), dshift, dy, x, condition, n, c, T, stride,
                   variant & 1, true);
}

static void case_rope(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], D = run->sizes[1] / 2 * 2, H = 3, variant = run->sizes[2];
  if (D == 0) return;
  void *x = kernel_case_elements(run, n * (H * D + 1));
  void *cosine = kernel_case_sums(run, n * D / 2), *sine = kernel_case_sums(run, n * D / 2);
  k->rope_forward(kernel_case_elements(run, n * (H * D + 5)), x, cosine, sine, n, H, D, H * D + 1,
                  H * D + 5, variant & 1, variant & 2, variant & 1);
}

static void case_softmax(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], v = run->sizes[1];
  float *logits = kernel_case_sums(run, n * (v + 2));
  logits[0] = -INFINITY;
  const int32_t *targets = kernel_case_integers(run, n, 0, 100);
  float *maximum = kernel_case_sums(run, n);
  maximum[0] = -INFINITY;
  const int64_t stride = v + run->sizes[2] % 3;
  const struct softmax_statistics statistics = {kernel_case_sums(run, n), kernel_case_sums(run, n),
                                                kernel_case_sums(run, n), kernel_case_sums(run, n),
                                                kernel_case_sums(run, n)};
  const struct softmax_target target = {targets, 0.9, 0.01};
  k->softmax_tile_statistics(&statistics, logits, targets, n, v, 7, stride);
  k->softmax_tile_gradient(kernel_case_elements(run, n * v), logits, kernel_case_positive(run, n),
                           kernel_case_positive(run, n), kernel_case_sums(run, n), &target, n, v,
                           7);
  k->softmax_tile_online(kernel_case_elements(run, n * v), maximum, kernel_case_positive(run, n),
                         kernel_case_sums(run, n), logits, n, v, stride);
}

/* The score of each row's winner may differ in its last bits; the winner does not. */
static void case_best(struct kernel_run *run) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], v = 8 * run->sizes[1];
  const float *logits = kernel_case_sums(run, n * v);
  int32_t *ids = kernel_case_integers(run, n, -9, -1),
          *noisy = kernel_case_integers(run, n, -9, -1);
  for (int64_t i = 0; i < n; i++) {
    const struct random_stream stream = random_open(3, "best", (uint64_t)i, 0);
    const int64_t position = 11 * i;
    double best = -INFINITY, best_noisy = -INFINITY;
    for (int64_t part = 0; part < 2; part++) {
      const int64_t begin = part * (v / 2), count = part ? v - v / 2 : v / 2;
      k->softmax_tile_best(&best, ids + i, logits + i * v + begin, NULL, NULL, 1, 1, count, begin);
      k->softmax_tile_best(&best_noisy, noisy + i, logits + i * v + begin, &stream, &position, 0.7,
                           1, count, begin);
    }
  }
}

/* Rows of two teachers, or of one, with a stride. */
static struct distill_tile distill_tile(struct kernel_run *run, enum divergence divergence) {
  const int64_t n = run->sizes[0], stride = run->sizes[1] + 3;
  float *first = kernel_case_sums(run, n * stride), *second = kernel_case_sums(run, n * stride);
  float *omega = kernel_case_sums(run, n);
  first[0] = second[0] = -INFINITY;
  for (int64_t i = 0; i < n; i++) omega[i] = 0.25f * (float)(i % 5);
  return (struct distill_tile){.divergence = divergence,
                               .stride = stride,
                               .logits = kernel_case_sums(run, n * stride),
                               .first = first,
                               .second = run->sizes[1] % 3 == 1 ? NULL : second,
                               .lse = kernel_case_positive(run, n),
                               .first_lse = kernel_case_positive(run, n),
                               .second_lse = kernel_case_positive(run, n),
                               .omega = omega};
}

static void check_distill(struct kernel_run *run, enum divergence divergence) {
  const struct kernels *k = run->kernels;
  const int64_t n = run->sizes[0], v = run->sizes[1];
  struct distill_tile tile = distill_tile(run, divergence);
  const struct distill_statistics statistics = {kernel_case_sums(run, n), kernel_case_sums(run, n),
                                                kernel_case_sums(run, n), kernel_case_sums(run, n),
                                                kernel_case_sums(run, n), kernel_case_sums(run, n),
                                                kernel_case_sums(run, n), kernel_case_sums(run, n)};
  k->distill_tile_statistics(&statistics, &tile, n, v);
  tile.stride = v;
  k->distill_tile_gradient(kernel_case_elements(run, n * v), kernel_case_positive(run, n),
                           kernel_case_sums(run, n), &tile, n, v);
}

static void case_forward_kl(struct kernel_run *run) {
  check_distill(run, DIVERGENCE_FORWARD_KL);
}

static void case_reverse_kl(struct kernel_run *run) {
  check_distill(run, DIVERGENCE_REVERSE_KL);
}

static void case_jensen_shannon(struct kernel_run *run) {
  check_distill(run, DIVERGENCE_JENSEN_SHANNON);
}

#define CASE(name)                                                                                 \
  static void name(void **state) {                                                                 \
    (void)state;                                                                                   \
    check(#name, case_##name);                                                                     \
  }
CASE(linear)
CASE(rmsnorm)
CASE(layernorm)
CASE(modulation)
CASE(rope)
CASE(softmax)
CASE(best)
CASE(forward_kl)
CASE(reverse_kl)
CASE(jensen_shannon)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear),         cmocka_unit_test(rmsnorm),    cmocka_unit_test(layernorm),
      cmocka_unit_test(modulation),     cmocka_unit_test(rope),       cmocka_unit_test(softmax),
      cmocka_unit_test(best),           cmocka_unit_test(forward_kl), cmocka_unit_test(reverse_kl),
      cmocka_unit_test(jensen_shannon),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
