/* Reads the rows of one step into a batch: the part of the loader that has no thread. */
#ifndef SHARDING_LOADER_FILL_H
#define SHARDING_LOADER_FILL_H

#include "sharding/loader.h"

/* What one reading thread owns. Zero-initialise. */
struct loader_fill {
  struct source_cache cache;
  void *row; /* owned; the longest row of any field */
};

/* Checks the options and makes the row buffer. Local. MISMATCH, ENVIRONMENT. */
enum status loader_fill_init(struct loader_fill *fill, const struct loader_options *options);
void loader_fill_free(struct loader_fill *fill);

/* Makes the arrays of a batch; frees them. Local. ENVIRONMENT when memory is out. */
enum status loader_fill_allocate(struct loader_batch *batch, const struct loader_options *options);
void loader_fill_release(struct loader_batch *batch);

/* Fills a batch with `step`. Local. DAMAGED as store_read. */
enum status loader_fill_step(struct loader_fill *fill, struct loader_batch *batch,
                             const struct loader_options *options, int64_t step);

#endif
