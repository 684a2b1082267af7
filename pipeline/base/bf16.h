/* bfloat16: the upper half of an IEEE float. Arithmetic is done in float; stores round to nearest,
 * ties to even; NaN stays NaN.
 */
#ifndef PIPELINE_BASE_BF16_H
#define PIPELINE_BASE_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t bf16;

static inline float bf16_to_float(bf16 value) {
  const uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

static inline bf16 bf16_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bf16)((bits >> 16) | 0x40u);
  return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
