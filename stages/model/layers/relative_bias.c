#include "stages/model/layers/relative_bias.h"

#include <assert.h>
#include <math.h>

#include "stages/model/tape/array.h"

struct relative_bias_record {
  struct record record;
  struct value *y;
  struct param *table;
  const int32_t *buckets;
};

static void relative_bias_backward(struct tape *tape, const struct record *record) {
  const struct relative_bias_record *kept = (const struct relative_bias_record *)record;
  if (!kept->y->reached || !kept->table->gradient) return;
  tape->kernels->relative_bias_backward(kept->table->gradient, kept->y->gradient, kept->buckets,
                                        kept->table->cols, kept->y->cols);
}

static const struct record_kind relative_bias_kind = {"relative_bias", relative_bias_backward,
                                                      NULL};

/* The bucket of a distance >= 0: exact for the first half, then logarithmic. In single precision,
 * like the published models, which decides ties at the borders. */
static int64_t bucket_of_distance(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  if (distance < exact) return distance;
  const float whole = (float)log((double)max_distance / (double)exact);
  const float part = logf((float)distance / (float)exact) / whole;
  const int64_t bucket = exact + (int64_t)(part * (float)(buckets - exact));
  return bucket < buckets ? bucket : buckets - 1;
}

/* `offset` is key - query. */
static int64_t bucket_of(int64_t offset, int64_t buckets, int64_t max_distance,
                         bool bidirectional) {
  if (!bidirectional) return bucket_of_distance(offset < 0 ? -offset : 0, buckets, max_distance);
  const int64_t half = buckets / 2;
  const int64_t bucket = bucket_of_distance(offset < 0 ? -offset : offset, half, max_distance);
  return offset > 0 ? half + bucket : bucket;
}

struct value *relative_bias_forward(struct tape *tape, struct param *table, int64_t queries,
                                    int64_t keys, int64_t max_distance, bool bidirectional) {
  const int64_t count = queries + keys - 1, heads = table->cols;
  struct value *y = tape_value(tape, heads, count);
  int32_t *buckets = tape_save(tape, (size_t)count * sizeof(*buckets));
  for (int64_t o = 0; buckets && o < count; o++)
    buckets[o] = (int32_t)bucket_of(o - queries + 1, table->rows, max_distance, bidirectional);
  tape->kernels->relative_bias_forward(y->data, table->data, buckets, heads, count);
  struct relative_bias_record *kept =
      tape_record(tape, &relative_bias_kind, sizeof(*kept), (struct param *const[]){table}, 1);
  if (!kept) return y;
  kept->y = y;
  kept->table = table;
  kept->buckets = buckets;
  return y;
}
