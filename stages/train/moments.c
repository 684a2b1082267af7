#include "stages/train/moments.h"

#include <string.h>

#include "pipeline/base/bf16.h"

void moments_load(float *values, const void *moments, bool narrow, int64_t first, int64_t count) {
  if (!narrow) {
    memcpy(values, (const float *)moments + first, (size_t)count * sizeof(*values));
    return;
  }
  const bf16 *narrow_moments = (const bf16 *)moments + first;
  for (int64_t i = 0; i < count; i++) values[i] = bf16_to_float(narrow_moments[i]);
}

/* Adds 16 random bits below the last one kept, and cuts. Infinities and NaN are cut only. */
static bf16 round_at_random(float value, uint32_t random) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t finite = (bits & 0x7f800000u) != 0x7f800000u;
  return (bf16)((bits + finite * (random & 0xffffu)) >> 16);
}

void moments_store(void *moments, bool narrow, const float *values, int64_t first, int64_t count,
                   const uint32_t *bits, int shift) {
  if (!narrow) {
    memcpy((float *)moments + first, values, (size_t)count * sizeof(*values));
    return;
  }
  bf16 *narrow_moments = (bf16 *)moments + first;
  for (int64_t i = 0; i < count; i++)
    narrow_moments[i] = round_at_random(values[i], bits[i] >> shift);
}
