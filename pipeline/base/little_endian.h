/* Little-endian numbers in files. Files hold arrays as they are in memory, so the host must be
 * little-endian as well.
 */
#ifndef PIPELINE_BASE_LITTLE_ENDIAN_H
#define PIPELINE_BASE_LITTLE_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Millrace keeps arrays in files as in memory: it needs a little-endian host"
#endif

static inline uint32_t little_endian_get32(const void *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static inline uint64_t little_endian_get64(const void *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

#endif
