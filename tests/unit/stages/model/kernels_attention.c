/* Attention of every table against the reference: odd lengths and head widths, all masks, biases.
 */
#include <math.h>

#include "stages/model/layers/attention_mask.h"
#include "tests/common/kernel_case.h"
#include "tests/common/tap.h"

enum { MAXIMUM_RANGES = 1024 };

/* The masks of the networks (attention_mask.h), by number from 6 on. */
static void make_network_ranges(struct attention_range *ranges, int64_t mask, int64_t B,
                                int64_t T) {
  for (int64_t b = 0; b < B; b++, ranges += T) {
    if (mask == 6) attention_mask_causal(ranges, T, T);
    if (mask == 7) attention_mask_prefix(ranges, T, 20 + 9 * b, T - 3 * b, false);
    if (mask == 8) attention_mask_prefix(ranges, T, 20 + 9 * b, T - 3 * b, true);
    if (mask == 9) attention_mask_padding(ranges, T, T - 30 * b);
    if (mask == 10) attention_mask_two_stream(ranges, T / 2, 16 + b);
  }
}

/* Visible keys by the number of a mask; 0 is no mask. */
static void make_ranges(struct attention_range *ranges, int64_t mask, int64_t B, int64_t Tq,
                        int64_t Tk) {
  for (int64_t i = 0; i < B * Tq; i++) {
    const int32_t query = (int32_t)(i % Tq), keys = (int32_t)Tk, shift = (int32_t)(Tk - Tq);
    struct attention_range *range = &ranges[i];
    *range = (struct attention_range){0, 0, 0, 0};
    if (mask == 1) range->first_end = query + 1 + shift;                    /* causal */
    if (mask == 2) range->first_end = keys - (i >= Tq ? 3 : 0);             /* padding */
    if (mask == 3) *range = (struct attention_range){2, 5, keys / 2, keys}; /* two pieces */
    if (mask == 4 && query % 3) *range = (struct attention_range){query / 2, keys, 0, 0};
    if (mask == 5) *range = (struct attention_range){keys / 2, query / 8 * 8, 1, 70};
  }
}

/* Sizes: B, Tq, Tk, H, D, mask, whether there is a bias, whether all add. */
static void case_attention(struct kernel_run *run) {
  static struct attention_range ranges[MAXIMUM_RANGES];
  const int64_t *size = run->sizes;
  struct attention_shape s = {.B = size[0],
                              .Tq = size[1],
                              .Tk = size[2],
                              .H = size[3],
                              .D = size[4],
                              .scale = 0.3,
                              .has_bias = size[6],
                              .shared_ranges = size[5] == 3 || size[5] == 5};
  const bool add = size[7];
  const int64_t q_rows = s.B * s.Tq, k_rows = s.B * s.Tk, width = s.H * s.D;
  s.q_stride = width + 3, s.k_stride = width + 1, s.v_stride = width;
  assert_true(q_rows <= MAXIMUM_RANGES);
  if (size[5] < 6)
    make_ranges(ranges, size[5], s.B, s.Tq, s.Tk);
  else
    make_network_ranges(ranges, size[5], s.B, s.Tq);
  s.ranges = size[5] ? ranges : NULL;
  void *q = kernel_case_elements(run, q_rows * s.q_stride);
  void *k = kernel_case_elements(run, k_rows * s.k_stride);
  void *v = kernel_case_elements(run, k_rows * s.v_stride);
  void *y = kernel_case_elements(run, q_rows * width),
       *dy = kernel_case_elements(run, q_rows * width);
  void *lse = kernel_case_sums(run, s.B * s.H * s.Tq);
  void *bias = kernel_case_sums(run, s.H * (s.Tq + s.Tk - 1));
  void *dbias = kernel_case_sums(run, s.H * (s.Tq + s.Tk - 1));
  void *dq = kernel_case_elements(run, q_rows * s.q_stride);
  void *dk = kernel_case_elements(run, k_rows * s.k_stride);
  void *dv = kernel_case_elements(run, k_rows * s.v_stride);
  run->kernels->attention_forward(y, lse, q, k, v, bias, &s);
  run->kernels->attention_backward(add ? dq : NULL, dk, dv, s.has_bias ? dbias : NULL, dy, y, lse,
                                   q, k, v, bias, &s, add, add, add);
}

/* The forward derivative, of the forward pass's own results. */
static void case_jvp(struct kernel_run *run) {
  static struct attention_range ranges[MAXIMUM_RANGES];
  const int64_t *size = run->sizes;
  struct attention_shape s = {
      .B = size[0], .Tq = size[1], .Tk = size[2], .H = size[3], .D = size[4]};
  s.scale = 1 / sqrt((double)s.D);
  const int64_t q_rows = s.B * s.Tq, k_rows = s.B * s.Tk, width = s.H * s.D;
  s.q_stride = width + 3, s.k_stride = width + 1, s.v_stride = width;
  make_ranges(ranges, size[5], s.B, s.Tq, s.Tk);
  s.ranges = size[5] ? ranges : NULL;
  s.shared_ranges = size[5] == 3;
  void *q = kernel_case_elements(run, q_rows * s.q_stride);
  void *k = kernel_case_elements(run, k_rows * s.k_stride);
  void *v = kernel_case_elements(run, k_rows * s.v_stride);
  void *tq = kernel_case_elements(run, q_rows * s.q_stride);
  void *tk = kernel_case_elements(run, k_rows * s.k_stride);
  void *tv = kernel_case_elements(run, k_rows * s.v_stride);
  void *y = kernel_case_elements(run, q_rows * width);
  void *lse = kernel_case_sums(run, s.B * s.H * s.Tq);
  run->kernels->attention_forward(y, lse, q, k, v, NULL, &s);
  run->kernels->attention_jvp(kernel_case_elements(run, q_rows * width), tq, tk, tv, y, lse, q, k,
                              v, &s);
}

static void check(const int64_t sizes[][8], size_t count) {
  for (size_t i = 0; i < count; i++) {
    kernel_case_check("attention", case_attention, sizes[i], DTYPE_F32);
    kernel_case_check("attention", case_attention, sizes[i], DTYPE_BF16);
    kernel_case_check("attention_jvp", case_jvp, sizes[i], DTYPE_F32);
    kernel_case_check("attention_jvp", case_jvp, sizes[i], DTYPE_BF16);
  }
}

#define COUNT(sizes) (sizeof(sizes) / sizeof(sizes)[0])

static void lengths(void **state) {
  (void)state;
  const int64_t sizes[][8] = {{1, 1, 1, 1, 1, 0, 0, 0},     {2, 3, 5, 2, 8, 0, 0, 1},
                              {1, 63, 65, 2, 16, 0, 0, 1},  {2, 64, 64, 1, 32, 0, 0, 1},
                              {1, 130, 67, 1, 33, 0, 0, 1}, {1, 17, 200, 3, 5, 0, 0, 0}};
  check(sizes, COUNT(sizes));
}

static void head_widths(void **state) {
  (void)state;
  const int64_t sizes[][8] = {{1, 40, 70, 1, 64, 0, 0, 1},
                              {1, 40, 70, 1, 66, 0, 0, 1},
                              {1, 40, 70, 1, 80, 0, 0, 1},
                              {1, 40, 70, 1, 128, 0, 0, 1},
                              {1, 9, 11, 1, 257, 0, 0, 1}};
  check(sizes, COUNT(sizes));
}

static void masks(void **state) {
  (void)state;
  const int64_t sizes[][8] = {{2, 100, 100, 1, 16, 1, 0, 1}, {2, 70, 90, 2, 16, 1, 0, 1},
                              {2, 40, 66, 1, 16, 2, 0, 1},   {2, 65, 140, 1, 16, 3, 0, 1},
                              {2, 65, 140, 1, 16, 4, 0, 1},  {1, 150, 150, 1, 16, 5, 0, 1}};
  check(sizes, COUNT(sizes));
}

/* Each mask at each head width of the networks, forward and backward. */
static void network_masks_at_network_widths(void **state) {
  (void)state;
  static const int64_t widths[] = {64, 66, 80, 128};
  for (size_t i = 0; i < COUNT(widths); i++) {
    const int64_t sizes[][8] = {
        {2, 74, 74, 1, widths[i], 0, 0, 1}, {2, 74, 74, 1, widths[i], 6, 0, 0},
        {2, 74, 74, 1, widths[i], 7, 0, 1}, {2, 74, 74, 1, widths[i], 8, 0, 0},
        {2, 74, 74, 1, widths[i], 9, 0, 1}, {2, 74, 74, 1, widths[i], 10, 0, 1}};
    check(sizes, COUNT(sizes));
  }
}

static void biases(void **state) {
  (void)state;
  const int64_t sizes[][8] = {
      {2, 5, 7, 3, 16, 0, 1, 1}, {3, 70, 66, 2, 16, 2, 1, 1}, {2, 70, 130, 2, 16, 1, 1, 0}};
  check(sizes, COUNT(sizes));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lengths), cmocka_unit_test(head_widths),
      cmocka_unit_test(masks),   cmocka_unit_test(network_masks_at_network_widths),
      cmocka_unit_test(biases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
