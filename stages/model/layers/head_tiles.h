/* What the vocabulary heads share, part two: the tiles of a slice, their logits, and sums over
 * slices in the order of the tree.
 *
 * Tiles are cut from the beginning of a canonical slice on, so their borders are the same for every
 * group size.
 */
#ifndef STAGES_MODEL_LAYERS_HEAD_TILES_H
#define STAGES_MODEL_LAYERS_HEAD_TILES_H

#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/tape.h"

/* Rows [first, first + rows) of the whole table; rows == 0 past the end of the slice. */
struct head_tile {
  int64_t first, rows;
  int64_t end;  /* of the slice */
  int64_t size; /* of all tiles but the last of a slice */
};

/* The first tile of local slice `slice`, and the next one. Local. */
struct head_tile head_tiles_first(const struct head_tokens *tokens, int64_t slice);
struct head_tile head_tiles_next(struct head_tile tile);

/* The chunks of a tile, which are tiles themselves: first, next. Local. */
struct head_tile head_tiles_first_chunk(struct head_tile tile);

/* Asserts that a table of this width, and its bias (may be NULL), are cut as the vocabulary. */
void head_tiles_check(const struct vocab *vocab, const struct param *w, const struct param *b,
                      int64_t c);

/* The place of the tile's rows in a table of this rank [rows, c]. Local. */
const void *head_tiles_rows(const struct tape *tape, const struct param *w, struct head_tile tile);

/* logits[count, tile.rows] (sum type) of `count` rows x [count, c]; b may be NULL. Local. */
void head_tiles_logits(struct tape *tape, void *logits, const void *x, const struct param *w,
                       const struct param *b, struct head_tile tile, int64_t count);

/* Sums [rows, c] made slice by slice and added along the tree over slices (sharding/tree.h). */
struct head_stack {
  int64_t rows, c, slices;
  void *levels, *leaf; /* of the tape; level 0 is the sum of all slices in the end */
};

/* Takes the memory: depth of the tree + 1 arrays of [rows, c]. Local. */
void head_stack_open(struct tape *tape, struct head_stack *stack, const struct vocab *vocab,
                     int64_t rows, int64_t c);

/* Where to add the share of local slice `slice` of rows [first, first + count); zeroed. Every slice
 * of each row is begun and ended once, in order, also empty slices. Local. */
void *head_stack_begin(struct tape *tape, const struct head_stack *stack, int64_t slice,
                       int64_t first, int64_t count);
void head_stack_end(struct tape *tape, const struct head_stack *stack, int64_t slice, int64_t first,
                    int64_t count);

#endif
