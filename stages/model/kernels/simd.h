/* Vectors of floats for the instruction set that the including file is compiled for, and the
 * functions that kernels need on them. Only files named *_avx2.c, *_avx512.c, *_avx512bf16.c and
 * *_amx.c include this, and are called where the processor has those instructions.
 */
#ifndef STAGES_MODEL_KERNELS_SIMD_H
#define STAGES_MODEL_KERNELS_SIMD_H

#ifdef __AVX512F__
#include "stages/model/kernels/simd_avx512.h"
#else
#include "stages/model/kernels/simd_avx2.h"
#endif

/* x where `from` is at least `low`, else 0. NaN stays NaN. */
static inline simd_float simd_flush(simd_float x, simd_float from, float low) {
  return simd_select(simd_less(from, simd_set(low)), simd_set(0.0f), x);
}

/* 2^x for x up to 160, beyond as there: relative error below 2^-22; 0 below -126, since results
 * that are not normal cost some processors a hundred times as much. NaN stays NaN. Taylor's series
 * of 2^f on [-1/2, 1/2]. */
static inline simd_float simd_exp2(simd_float x) {
  const simd_float inside = simd_min(simd_set(160.0f), simd_max(simd_set(-126.0f), x));
  const simd_float n = simd_round(inside), f = simd_sub(inside, n);
  simd_float sum = simd_set(1.5403530e-4f);
  sum = simd_fma(sum, f, simd_set(1.3333558e-3f));
  sum = simd_fma(sum, f, simd_set(9.6181291e-3f));
  sum = simd_fma(sum, f, simd_set(5.5504109e-2f));
  sum = simd_fma(sum, f, simd_set(2.4022651e-1f));
  sum = simd_fma(sum, f, simd_set(6.9314718e-1f));
  return simd_flush(simd_scale_by_power(simd_fma(sum, f, simd_set(1.0f)), n), x, -126.0f);
}

/* e^x for any x: relative error below 2^-22; 0 below -87.33654, infinite above 89. NaN stays NaN. As
 * simd_exp2 after taking off a multiple of ln 2 held in two parts. */
static inline simd_float simd_exp(simd_float x) {
  const simd_float inside = simd_min(simd_set(90.0f), simd_max(simd_set(-87.33654f), x));
  const simd_float n = simd_round(simd_mul(inside, simd_set(1.44269504f)));
  const simd_float r =
      simd_fnma(n, simd_set(-2.12194440e-4f), simd_fnma(n, simd_set(0.693359375f), inside));
  simd_float sum = simd_set(1.3888889e-3f);
  sum = simd_fma(sum, r, simd_set(8.3333333e-3f));
  sum = simd_fma(sum, r, simd_set(4.1666667e-2f));
  sum = simd_fma(sum, r, simd_set(1.6666667e-1f));
  sum = simd_fma(sum, r, simd_set(0.5f));
  sum = simd_fma(sum, r, simd_set(1.0f));
  return simd_flush(simd_scale_by_power(simd_fma(sum, r, simd_set(1.0f)), n), x, -87.33654f);
}

/* 1 / (1 + e^-x). */
static inline simd_float simd_sigmoid(simd_float x) {
  return simd_div(simd_set(1.0f), simd_add(simd_set(1.0f), simd_exp(simd_sub(simd_set(0.0f), x))));
}

/* ln x for positive normal x: absolute error below 2^-22 + 2^-23 |ln x|. With m = x 2^-n in
 * [2/3, 4/3): ln m = 2 artanh((m - 1) / (m + 1)). */
static inline simd_float simd_log(simd_float x) {
  const simd_float m = simd_mantissa(x), one = simd_set(1.0f);
  const simd_mask large = simd_less(simd_set(1.3333333f), m);
  const simd_float n = simd_add(simd_exponent(x), simd_select(large, one, simd_set(0.0f)));
  const simd_float near = simd_select(large, simd_mul(m, simd_set(0.5f)), m);
  const simd_float t = simd_div(simd_sub(near, one), simd_add(near, one)), tt = simd_mul(t, t);
  simd_float sum = simd_set(0.2222222f);
  sum = simd_fma(sum, tt, simd_set(0.2857143f));
  sum = simd_fma(sum, tt, simd_set(0.4f));
  sum = simd_fma(sum, tt, simd_set(0.6666667f));
  sum = simd_fma(sum, tt, simd_set(2.0f));
  return simd_fma(n, simd_set(0.69314718f), simd_mul(sum, t));
}

#endif
