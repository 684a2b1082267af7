/* The order of samples: a pure function of (seed, epoch, position), with O(1) access to any place
 * and no state.
 *
 * Global sample index g = step * batch + slot. The rows of the data follow one another epoch by
 * epoch: epoch = g / rows, row = permutation of that epoch at g mod rows. Declared rule for the end
 * of an epoch: nothing is dropped and nothing repeated; a batch may hold the last rows of one epoch
 * and the first of the next. For a single pass (validation), slots beyond the last row are empty.
 *
 * Mixed corpora: each block of ORDER_BLOCK samples holds exactly the share of each corpus, in an
 * order of the block's own. The samples of one corpus are numbered through its blocks; that number
 * takes the place of the sample index above, so that each corpus has epochs of its own, in which
 * each of its rows comes once.
 *
 * The permutation is a keyed bijection: a balanced Feistel network on the smallest even number of
 * bits that holds the rows, walked along its cycle until it falls inside.
 */
#ifndef SHARDING_ORDER_H
#define SHARDING_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"

enum { ORDER_BLOCK = 1000, ORDER_CORPORA = 64 };

/* Corpora that lie one after another in the rows, and their shares of each block. */
struct order_mix {
  int64_t count;                    /* 0: one corpus */
  int64_t first[ORDER_CORPORA + 1]; /* corpus i has the rows [first[i], first[i + 1]) */
  int64_t shares[ORDER_CORPORA];    /* samples of each block; their sum is ORDER_BLOCK */
};

/* Makes a mix from weights of any scale: shares are rounded to thousandths by largest remainders.
 * rows[i] of corpus i. Local. MISMATCH for weights of no sum, a weight that rounds to nothing, and
 * a corpus that has a weight but no rows. */
enum status order_mix_make(struct order_mix *mix, const double *weights, const int64_t *rows,
                           int64_t count);

struct order {
  uint64_t seed;
  int64_t rows;
  int64_t batch;        /* global batch */
  bool sequential;      /* rows in their stored order */
  bool single_pass;     /* one epoch; later slots are empty */
  struct order_mix mix; /* not with sequential or single_pass */
};

struct order_sample {
  int64_t index; /* global sample index: key of all random draws */
  int64_t epoch; /* of the row's corpus */
  int64_t row;   /* -1: empty slot */
};

/* The sample at (step, slot). rows >= 1, 0 <= slot < batch. Local. */
struct order_sample order_at(const struct order *order, int64_t step, int64_t slot);

/* The row at `position` in [0, rows) of an epoch. A bijection for each (seed, epoch). Local. */
int64_t order_permute(const struct order *order, int64_t epoch, int64_t position);

/* The place of `position` in [0, size), a bijection for each (seed, purpose, id). Local. */
int64_t order_place(uint64_t seed, const char *purpose, uint64_t id, int64_t size,
                    int64_t position);

/* Steps of one pass: rows / batch, rounded up. Equal on all ranks. Local. */
int64_t order_steps(const struct order *order);

/* Hash of one consumed sample (0 for an empty slot), and of a whole step: the sum (mod 2^64) over
 * its slots, so that ranks may add up their parts in any order. Local. */
uint64_t order_sample_hash(struct order_sample sample);
uint64_t order_step_hash(const struct order *order, int64_t step);

/* Fingerprint of what decides every sample: hash of the data (store.hash), tokenizer hash, seed,
 * batch, row length. Local. */
struct order_fingerprint {
  const char *data_hash, *tokenizer_hash; /* borrowed */
  int64_t row_length;
};
void order_fingerprint(char hex[HASH_HEX_BYTES], const struct order *order,
                       const struct order_fingerprint *parts);

#endif
