/* Gives a rank its slots of each step, read ahead by one thread.
 *
 * What a step holds depends on the order alone: never on the depth of the read-ahead, on threads or
 * on which step was asked before. Steps asked in sequence are read ahead; any other step is read at
 * once. The thread blocks all signals.
 */
#ifndef SHARDING_LOADER_H
#define SHARDING_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"
#include "sharding/order.h"
#include "sharding/store.h"

enum { LOADER_FIELDS = 8, LOADER_WAITS = 1024, LOADER_DEPTH = 2 };

/* One array of a batch; a field without a column stays NULL. Rows shorter than `elements` are
 * filled with `pad`; longer ones are cut. */
struct loader_field {
  const struct store_column *column; /* borrowed */
  enum dtype dtype;                  /* DTYPE_I32, DTYPE_F32 or DTYPE_BF16 */
  int64_t elements;                  /* per slot */
  int32_t pad;
};

struct loader_options {
  struct order order;
  int64_t first_slot, slots; /* of this rank, within the global batch */
  const struct loader_field *fields;
  int64_t field_count;
  int64_t depth; /* steps read ahead; 0 .. 64; -1: LOADER_DEPTH */
};

struct loader_batch {
  int64_t step;
  struct order_sample *samples;    /* [slots] */
  uint64_t hash;                   /* sum of order_sample_hash over the slots */
  void *fields[LOADER_FIELDS];     /* [slots, elements] of the field's dtype */
  int64_t *lengths[LOADER_FIELDS]; /* [slots]; elements present before padding; 0: empty slot */
};

struct loader_waits {
  int64_t count; /* steps handed out */
  double total_seconds;
  double mean_seconds, p99_seconds; /* of the last LOADER_WAITS steps */
};

struct loader; /* opaque: it holds a thread */

/* Makes a loader; the fields' columns and stores must outlive it. Local. ENVIRONMENT when memory or
 * threads are out, MISMATCH for slots outside the batch. */
enum status loader_open(struct loader **loader, const struct loader_options *options);
void loader_close(struct loader *loader);

/* The batch of `step`, valid until the next call. Local. DAMAGED names shard, block and row. */
enum status loader_get(struct loader *loader, int64_t step, const struct loader_batch **batch);

/* How long loader_get made its caller wait. Local. */
struct loader_waits loader_waits(const struct loader *loader);

#endif
