#define _GNU_SOURCE
#include "stages/model/kernels/processor.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bits of EDX, of XCR0, and what Linux is asked for the use of tiles. */
enum {
  FEATURES_LEAF = 7,
  FEATURES_FP16 = 1 << 23,
  FEATURES_TILES = 1 << 24 | 1 << 22,
  STATE_LEAF = 1,
  STATE_OSXSAVE = 1 << 27,
  STATE_TILES = 1 << 17 | 1 << 18,
  REQUEST_PERMISSION = 0x1023,
  TILE_DATA = 18
};

enum processor_level processor_level(void) {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return PROCESSOR_AVX512BF16;
  if (avx512) return PROCESSOR_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return PROCESSOR_AVX2;
  return PROCESSOR_PLAIN;
}

static unsigned features(void) {
  unsigned a, b, c, d = 0;
  return __get_cpuid_count(FEATURES_LEAF, 0, &a, &b, &c, &d) ? d : 0;
}

/* Whether the system saves the tiles of a thread that it interrupts. */
static bool system_keeps_tiles(void) {
  unsigned a, b, c = 0, d;
  if (!__get_cpuid(STATE_LEAF, &a, &b, &c, &d) || !(c & STATE_OSXSAVE)) return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & STATE_TILES) == STATE_TILES;
}

bool processor_has_tiles(void) {
  static int known = -1;
  if (known < 0)
    known = processor_level() == PROCESSOR_AVX512BF16 &&
            (features() & FEATURES_TILES) == FEATURES_TILES && system_keeps_tiles() &&
            syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
  return known;
}

/* Sapphire Rapids brought vectors of half precision. */
static bool is_intel_with_tiles(void) {
  return __builtin_cpu_is("intel") && (features() & FEATURES_FP16);
}

bool processor_has_fast_pairs(void) {
  return processor_level() == PROCESSOR_AVX512BF16 && !is_intel_with_tiles();
}
