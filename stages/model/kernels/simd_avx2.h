/* Vectors of 8 floats in AVX2 with FMA: the functions of simd_avx512.h. */
#ifndef STAGES_MODEL_KERNELS_SIMD_AVX2_H
#define STAGES_MODEL_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/base/bf16.h"

#define SIMD_FLOATS 8

enum { SIMD_WIDTH = SIMD_FLOATS };

typedef __m256 simd_float;
typedef __m256i simd_int;
typedef __m256 simd_mask; /* all bits of a lane, or none */

static inline simd_float simd_set(float value) {
  return _mm256_set1_ps(value);
}

static inline simd_float simd_load(const float *from) {
  return _mm256_loadu_ps(from);
}

static inline void simd_store(float *to, simd_float x) {
  _mm256_storeu_ps(to, x);
}

static inline simd_float simd_load_some(const float *from, int count) {
  float lanes[SIMD_WIDTH] = {0};
  memcpy(lanes, from, (size_t)count * sizeof *from);
  return simd_load(lanes);
}

static inline void simd_store_some(float *to, simd_float x, int count) {
  float lanes[SIMD_WIDTH];
  simd_store(lanes, x);
  memcpy(to, lanes, (size_t)count * sizeof *to);
}

static inline simd_float simd_widen(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

static inline __m128i simd_narrow(simd_float x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const __m256i chosen =
      _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan)), 16);
  const __m256i packed = _mm256_packus_epi32(chosen, chosen);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

static inline simd_float simd_load_bf16(const bf16 *from) {
  return simd_widen(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline void simd_store_bf16(bf16 *to, simd_float x) {
  _mm_storeu_si128((__m128i *)(void *)to, simd_narrow(x));
}

static inline simd_float simd_load_bf16_some(const bf16 *from, int count) {
  bf16 lanes[SIMD_WIDTH] = {0};
  memcpy(lanes, from, (size_t)count * sizeof *from);
  return simd_load_bf16(lanes);
}

static inline void simd_store_bf16_some(bf16 *to, simd_float x, int count) {
  bf16 lanes[SIMD_WIDTH];
  simd_store_bf16(lanes, x);
  memcpy(to, lanes, (size_t)count * sizeof *to);
}

static inline simd_float simd_add(simd_float a, simd_float b) {
  return _mm256_add_ps(a, b);
}

static inline simd_float simd_sub(simd_float a, simd_float b) {
  return _mm256_sub_ps(a, b);
}

static inline simd_float simd_mul(simd_float a, simd_float b) {
  return _mm256_mul_ps(a, b);
}

static inline simd_float simd_div(simd_float a, simd_float b) {
  return _mm256_div_ps(a, b);
}

static inline simd_float simd_fma(simd_float a, simd_float b, simd_float c) {
  return _mm256_fmadd_ps(a, b, c);
}

static inline simd_float simd_fnma(simd_float a, simd_float b, simd_float c) {
  return _mm256_fnmadd_ps(a, b, c);
}

static inline simd_float simd_max(simd_float a, simd_float b) {
  return _mm256_max_ps(a, b);
}

static inline simd_float simd_min(simd_float a, simd_float b) {
  return _mm256_min_ps(a, b);
}

static inline simd_float simd_round(simd_float x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline simd_mask simd_less(simd_float a, simd_float b) {
  return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline simd_mask simd_equal(simd_float a, simd_float b) {
  return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

static inline simd_mask simd_both(simd_mask a, simd_mask b) {
  return _mm256_and_ps(a, b);
}

static inline simd_mask simd_either(simd_mask a, simd_mask b) {
  return _mm256_or_ps(a, b);
}

static inline bool simd_any(simd_mask mask) {
  return _mm256_movemask_ps(mask) != 0;
}

static inline bool simd_all(simd_mask mask) {
  return _mm256_movemask_ps(mask) == 0xff;
}

static inline simd_float simd_select(simd_mask mask, simd_float yes, simd_float no) {
  return _mm256_blendv_ps(no, yes, mask);
}

static inline simd_int simd_int_set(int32_t value) {
  return _mm256_set1_epi32(value);
}

static inline simd_int simd_int_load(const int32_t *from) {
  return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline simd_int simd_int_add(simd_int a, simd_int b) {
  return _mm256_add_epi32(a, b);
}

static inline simd_int simd_int_xor(simd_int a, simd_int b) {
  return _mm256_xor_si256(a, b);
}

static inline simd_int simd_int_count(void) {
  return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}

static inline simd_int simd_int_multiply(simd_int a, simd_int b, simd_int *high) {
  const __m256i even = _mm256_mul_epu32(a, b);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline simd_float simd_int_fraction(simd_int x) {
  return _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 8));
}

static inline simd_mask simd_int_between(simd_int low, simd_int x, simd_int high) {
  return _mm256_castsi256_ps(
      _mm256_andnot_si256(_mm256_cmpgt_epi32(low, x), _mm256_cmpgt_epi32(high, x)));
}

/* 2^n for a whole number n in [-126, 127]. */
static inline simd_float simd_power(simd_int n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, simd_int_set(127)), 23));
}

static inline simd_float simd_scale_by_power(simd_float x, simd_float n) {
  const simd_int whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return simd_mul(simd_mul(x, simd_power(half)), simd_power(_mm256_sub_epi32(whole, half)));
}

static inline simd_float simd_mantissa(simd_float x) {
  const simd_int bits = _mm256_and_si256(_mm256_castps_si256(x), simd_int_set(0x7fffff));
  return _mm256_castsi256_ps(_mm256_or_si256(bits, simd_int_set(0x3f800000)));
}

static inline simd_float simd_exponent(simd_float x) {
  const simd_int biased = _mm256_srli_epi32(_mm256_castps_si256(x), 23);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, simd_int_set(127)));
}

static inline float simd_sum(simd_float x) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

static inline float simd_top(simd_float x) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

static inline simd_float simd_reorder(simd_float x) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
}

static inline simd_float simd_evens(simd_float a, simd_float b) {
  return simd_reorder(_mm256_shuffle_ps(a, b, 0x88));
}

static inline simd_float simd_odds(simd_float a, simd_float b) {
  return simd_reorder(_mm256_shuffle_ps(a, b, 0xdd));
}

static inline simd_float simd_interleave_low(simd_float evens, simd_float odds) {
  return _mm256_permute2f128_ps(_mm256_unpacklo_ps(evens, odds), _mm256_unpackhi_ps(evens, odds),
                                0x20);
}

static inline simd_float simd_interleave_high(simd_float evens, simd_float odds) {
  return _mm256_permute2f128_ps(_mm256_unpacklo_ps(evens, odds), _mm256_unpackhi_ps(evens, odds),
                                0x31);
}

static inline void simd_transpose(simd_float rows[SIMD_WIDTH]) {
  simd_float pairs[SIMD_WIDTH], quads[SIMD_WIDTH];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; j++) {
      quads[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      quads[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int j = 0; j < 4; j++) {
    rows[j] = _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x20);
    rows[j + 4] = _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x31);
  }
}

#endif
