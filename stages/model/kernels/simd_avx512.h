/* Vectors of 16 floats in AVX-512, with the instructions of AVX512-BF16 where the file has them. */
#ifndef STAGES_MODEL_KERNELS_SIMD_AVX512_H
#define STAGES_MODEL_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/bf16.h"

#define SIMD_FLOATS 16

enum { SIMD_WIDTH = SIMD_FLOATS };

typedef __m512 simd_float;
typedef __m512i simd_int;
typedef __mmask16 simd_mask;

static inline simd_float simd_set(float value) {
  return _mm512_set1_ps(value);
}

static inline simd_float simd_load(const float *from) {
  return _mm512_loadu_ps(from);
}

static inline void simd_store(float *to, simd_float x) {
  _mm512_storeu_ps(to, x);
}

/* The first `count` lanes; the others are 0, or are not written. */
static inline simd_float simd_load_some(const float *from, int count) {
  return _mm512_maskz_loadu_ps((simd_mask)((1u << count) - 1u), from);
}

static inline void simd_store_some(float *to, simd_float x, int count) {
  _mm512_mask_storeu_ps(to, (simd_mask)((1u << count) - 1u), x);
}

static inline simd_float simd_widen(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* Rounds to bf16: to nearest, ties to even; NaN stays NaN. The instruction takes denormals as 0. */
static inline __m256i simd_narrow(simd_float x) {
#ifdef __AVX512BF16__
  return (__m256i)_mm512_cvtneps_pbh(x);
#else
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16));
#endif
}

static inline simd_float simd_load_bf16(const bf16 *from) {
  return simd_widen(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

static inline void simd_store_bf16(bf16 *to, simd_float x) {
  _mm256_storeu_si256((__m256i *)(void *)to, simd_narrow(x));
}

static inline simd_float simd_load_bf16_some(const bf16 *from, int count) {
  return simd_widen(_mm256_maskz_loadu_epi16((simd_mask)((1u << count) - 1u), from));
}

static inline void simd_store_bf16_some(bf16 *to, simd_float x, int count) {
  _mm256_mask_storeu_epi16(to, (simd_mask)((1u << count) - 1u), simd_narrow(x));
}

static inline simd_float simd_add(simd_float a, simd_float b) {
  return _mm512_add_ps(a, b);
}

static inline simd_float simd_sub(simd_float a, simd_float b) {
  return _mm512_sub_ps(a, b);
}

static inline simd_float simd_mul(simd_float a, simd_float b) {
  return _mm512_mul_ps(a, b);
}

static inline simd_float simd_div(simd_float a, simd_float b) {
  return _mm512_div_ps(a, b);
}

/* a b + c and c - a b, rounded once. */
static inline simd_float simd_fma(simd_float a, simd_float b, simd_float c) {
  return _mm512_fmadd_ps(a, b, c);
}

static inline simd_float simd_fnma(simd_float a, simd_float b, simd_float c) {
  return _mm512_fnmadd_ps(a, b, c);
}

/* b where either is NaN. */
static inline simd_float simd_max(simd_float a, simd_float b) {
  return _mm512_max_ps(a, b);
}

static inline simd_float simd_min(simd_float a, simd_float b) {
  return _mm512_min_ps(a, b);
}

static inline simd_float simd_round(simd_float x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline simd_mask simd_less(simd_float a, simd_float b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline simd_mask simd_equal(simd_float a, simd_float b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline simd_mask simd_both(simd_mask a, simd_mask b) {
  return (simd_mask)(a & b);
}

static inline simd_mask simd_either(simd_mask a, simd_mask b) {
  return (simd_mask)(a | b);
}

static inline bool simd_any(simd_mask mask) {
  return mask != 0;
}

static inline bool simd_all(simd_mask mask) {
  return mask == 0xffff;
}

/* yes where the mask is set, else no. */
static inline simd_float simd_select(simd_mask mask, simd_float yes, simd_float no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}

static inline simd_int simd_int_set(int32_t value) {
  return _mm512_set1_epi32(value);
}

static inline simd_int simd_int_load(const int32_t *from) {
  return _mm512_loadu_si512(from);
}

static inline simd_int simd_int_add(simd_int a, simd_int b) {
  return _mm512_add_epi32(a, b);
}

static inline simd_int simd_int_xor(simd_int a, simd_int b) {
  return _mm512_xor_si512(a, b);
}

/* Lanes 0, 1, 2, ... */
static inline simd_int simd_int_count(void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* The product of unsigned numbers: its lower 32 bits, and its upper ones in *high. */
static inline simd_int simd_int_multiply(simd_int a, simd_int b, simd_int *high) {
  const __m512i even = _mm512_mul_epu32(a, b);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
  *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* The upper 24 bits as a number in [0, 2^24). */
static inline simd_float simd_int_fraction(simd_int x) {
  return _mm512_cvtepi32_ps(_mm512_srli_epi32(x, 8));
}

/* Lanes where low <= x < high. */
static inline simd_mask simd_int_between(simd_int low, simd_int x, simd_int high) {
  return (simd_mask)(_mm512_cmple_epi32_mask(low, x) & _mm512_cmplt_epi32_mask(x, high));
}

/* x 2^n for a whole number n in [-200, 200]. */
static inline simd_float simd_scale_by_power(simd_float x, simd_float n) {
  return _mm512_scalef_ps(x, n);
}

/* x = m 2^n with m in [1, 2), for positive normal x. */
static inline simd_float simd_mantissa(simd_float x) {
  return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
}

static inline simd_float simd_exponent(simd_float x) {
  return _mm512_getexp_ps(x);
}

/* Sum and maximum over lanes, in a fixed order. */
static inline float simd_sum(simd_float x) {
  return _mm512_reduce_add_ps(x);
}

static inline float simd_top(simd_float x) {
  return _mm512_reduce_max_ps(x);
}

/* Even and odd lanes of the 32 floats [a, b], and back. */
static inline simd_float simd_evens(simd_float a, simd_float b) {
  const __m512i index =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, index, b);
}

static inline simd_float simd_odds(simd_float a, simd_float b) {
  const __m512i index =
      _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, index, b);
}

static inline simd_float simd_interleave_low(simd_float evens, simd_float odds) {
  const __m512i index = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return _mm512_permutex2var_ps(evens, index, odds);
}

static inline simd_float simd_interleave_high(simd_float evens, simd_float odds) {
  const __m512i index =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return _mm512_permutex2var_ps(evens, index, odds);
}

/* Lane j of row i becomes lane i of row j, for 16 rows. */
static inline void simd_transpose(simd_float rows[SIMD_WIDTH]) {
  simd_float pairs[SIMD_WIDTH], quads[SIMD_WIDTH], halves[SIMD_WIDTH];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; j++) {
      const __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + j + 2]);
      quads[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      quads[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  for (int i = 0; i < 16; i += 8)
    for (int j = 0; j < 4; j++) {
      halves[i + j] = _mm512_shuffle_f32x4(quads[i + j], quads[i + j + 4], 0x88);
      halves[i + j + 4] = _mm512_shuffle_f32x4(quads[i + j], quads[i + j + 4], 0xdd);
    }
  for (int j = 0; j < 8; j++) {
    rows[j] = _mm512_shuffle_f32x4(halves[j], halves[j + 8], 0x88);
    rows[j + 8] = _mm512_shuffle_f32x4(halves[j], halves[j + 8], 0xdd);
  }
}

#ifdef __AVX512BF16__
/* Pairs of bf16 as 32-bit words, for products that take two terms at a time. */

/* Words of up to 32 neighbours; 0 beyond `count`. */
static inline simd_float simd_load_pairs(const bf16 *from, int count) {
  const __mmask32 mask = count >= 32 ? 0xffffffffu : (1u << count) - 1u;
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, from));
}

/* Words (low[i], high[i]) for i < count; 0 beyond, and for high when it is NULL. */
static inline simd_float simd_load_across(const bf16 *low, const bf16 *high, int count) {
  const simd_mask mask = (simd_mask)((1u << count) - 1u);
  const __m512i first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low));
  if (!high) return _mm512_castsi512_ps(first);
  const __m512i second = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high));
  return _mm512_castsi512_ps(_mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
}

/* Words (low[i], high[i]) of floats. */
static inline simd_float simd_pair_lanes(simd_float low, simd_float high) {
  const __m512i index = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_castsi512_ps(
      _mm512_permutexvar_epi16(index, (__m512i)_mm512_cvtne2ps_pbh(high, low)));
}

/* The 32 numbers [a, b] as bf16, in words of neighbours. */
static inline simd_float simd_pair_along(simd_float a, simd_float b) {
  return (simd_float)_mm512_cvtne2ps_pbh(b, a);
}

/* Words (row[i], next[i]) of the first or last 16 of 32 numbers in words of neighbours. */
static inline simd_float simd_pair_across_low(simd_float row, simd_float next) {
  const __m512i index = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_castsi512_ps(
      _mm512_permutex2var_epi16(_mm512_castps_si512(row), index, _mm512_castps_si512(next)));
}

static inline simd_float simd_pair_across_high(simd_float row, simd_float next) {
  const __m512i index =
      _mm512_set_epi16(63, 31, 62, 30, 61, 29, 60, 28, 59, 27, 58, 26, 57, 25, 56, 24, 55, 23, 54,
                       22, 53, 21, 52, 20, 51, 19, 50, 18, 49, 17, 48, 16);
  return _mm512_castsi512_ps(
      _mm512_permutex2var_epi16(_mm512_castps_si512(row), index, _mm512_castps_si512(next)));
}

/* sum + a.low b.low + a.high b.high */
static inline simd_float simd_dot_pairs(simd_float a, simd_float b, simd_float sum) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#endif

#endif
