/* The processor's tiles (AMX): eight of 16 rows by 16 words, where a word is one sum, or two bf16
 * terms of a product. Only files named *_amx.c include this, and are called where
 * processor_has_tiles().
 */
#ifndef STAGES_MODEL_KERNELS_TILES_H
#define STAGES_MODEL_KERNELS_TILES_H

#include <immintrin.h>
#include <stdint.h>

enum { TILE_SIDE = 16, TILE_PAIR = 2 * TILE_SIDE };

/* What ldtilecfg reads: all eight tiles at their full size. Constant, since compilers may not know
 * that the instruction reads it whole. */
static const struct {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} TILES_WHOLE = {.palette = 1,
                 .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                 .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* Other code of this thread may leave other tiles behind: what uses them begins with this, and ends
 * with _tile_release. */
static inline void tiles_configure(void) {
  _tile_loadconfig(&TILES_WHOLE);
}

#endif
