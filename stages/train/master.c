#include "stages/train/master.h"

#include <string.h>

void master_load(float *values, const void *weights, const int16_t *low, int64_t first,
                 int64_t count) {
  if (!low) {
    memcpy(values, (const float *)weights + first, (size_t)count * sizeof(*values));
    return;
  }
  const uint16_t *high = (const uint16_t *)weights + first;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t bits = ((uint32_t)high[i] << 16) + (uint32_t)(int32_t)low[first + i];
    memcpy(values + i, &bits, sizeof bits);
  }
}

void master_store(void *weights, int16_t *low, const float *values, int64_t first, int64_t count) {
  if (!low) {
    memcpy((float *)weights + first, values, (size_t)count * sizeof(*values));
    return;
  }
  uint16_t *high = (uint16_t *)weights + first;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    high[i] = (uint16_t)((bits + 0x8000u) >> 16);
    low[first + i] = (int16_t)(uint16_t)bits;
  }
}
