#include "pipeline/artefact/convert.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/bf16.h"

static float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const float mantissa = (float)(half & 0x3ff);
  float value;
  if (exponent == 0x1f)
    value = half & 0x3ff ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexpf(mantissa, -24);
  else
    value = ldexpf(mantissa + 1024.0f, exponent - 25);
  return half & 0x8000 ? -value : value;
}

/* The element at `at` as a value of `type`. */
#define LOAD(type, in, at)                                                                         \
  type value;                                                                                      \
  memcpy(&value, (const unsigned char *)(in) + (size_t)(at) * sizeof value, sizeof value)

enum status convert_to_float(float *out, const void *in, enum dtype dtype, int64_t count) {
  if (dtype == DTYPE_F32) {
    memcpy(out, in, (size_t)count * sizeof *out);
    return STATUS_OK;
  }
  CHECK(dtype == DTYPE_F64 || dtype == DTYPE_F16 || dtype == DTYPE_BF16, STATUS_MISMATCH,
        "elements of type %s cannot be read as real numbers", dtype_name(dtype));
  for (int64_t i = 0; i < count; i++) {
    if (dtype == DTYPE_F64) {
      LOAD(double, in, i);
      out[i] = (float)value;
    } else {
      LOAD(uint16_t, in, i);
      out[i] = dtype == DTYPE_BF16 ? bf16_to_float(value) : half_to_float(value);
    }
  }
  return STATUS_OK;
}

/* Unsigned values beyond int64 come back as -1 with *fits false. */
static int64_t load_integer(const void *in, enum dtype dtype, int64_t at, bool *fits) {
  *fits = true;
  switch (dtype) {
#define CASE(name, type)                                                                           \
  case DTYPE_##name: {                                                                             \
    LOAD(type, in, at);                                                                            \
    return (int64_t)value;                                                                         \
  }
    CASE(U8, uint8_t)
    CASE(I8, int8_t)
    CASE(U16, uint16_t)
    CASE(I16, int16_t)
    CASE(U32, uint32_t)
    CASE(I32, int32_t)
    CASE(I64, int64_t)
#undef CASE
  default: {
    LOAD(uint64_t, in, at);
    *fits = value <= INT64_MAX;
    return *fits ? (int64_t)value : -1;
  }
  }
}

static bool is_integer(enum dtype dtype) {
  return dtype != DTYPE_BOOL && dtype != DTYPE_F16 && dtype != DTYPE_BF16 && dtype != DTYPE_F32 &&
         dtype != DTYPE_F64;
}

static void widen_u16(int32_t *out, const unsigned char *in, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    LOAD(uint16_t, in, i);
    out[i] = value;
  }
}

enum status convert_to_int32(int32_t *out, const void *in, enum dtype dtype, int64_t count) {
  CHECK(is_integer(dtype), STATUS_MISMATCH, "elements of type %s cannot be read as integers",
        dtype_name(dtype));
  if (dtype == DTYPE_U16) {
    widen_u16(out, in, count); /* token ids, nearly always */
    return STATUS_OK;
  }
  for (int64_t i = 0; i < count; i++) {
    bool fits;
    const int64_t value = load_integer(in, dtype, i, &fits);
    CHECK(fits && value >= INT32_MIN && value <= INT32_MAX, STATUS_DAMAGED,
          "element %lld does not fit in 32 bits", (long long)i);
    out[i] = (int32_t)value;
  }
  return STATUS_OK;
}
