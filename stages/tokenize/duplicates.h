/* Exact duplicates among the documents of all parts: of documents with the same bytes the first one
 * (by part, then place) is kept. Memory is bounded by DUPLICATES_ENTRIES hashes whatever the number
 * of documents: they are divided into buckets by their hash, and one bucket is in memory at a time.
 */
#ifndef STAGES_TOKENIZE_DUPLICATES_H
#define STAGES_TOKENIZE_DUPLICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

enum { DUPLICATES_ENTRIES = 4 << 20 };

/* Hashes seen so far. Zero-initialise; give `mask` a power of two minus one by duplicates_init. */
struct duplicates {
  struct hash128 *slots; /* owned; zero: empty */
  uint64_t mask;
};

/* Makes room for `entries` different hashes. Local. ENVIRONMENT when memory is out. */
enum status duplicates_init(struct duplicates *seen, int64_t entries);
void duplicates_free(struct duplicates *seen);

/* Whether the hash was seen before; from now on it is. Local. */
bool duplicates_seen(struct duplicates *seen, struct hash128 hash);

/* Number of buckets for so many documents, and the bucket of a hash. Local. */
int64_t duplicates_buckets(int64_t documents);
int64_t duplicates_bucket(struct hash128 hash, int64_t buckets);

/* One duplicate: the document at `place` of part number `part`. Lists are sorted by both. */
struct duplicate {
  int64_t part, place;
};

/* Orders duplicates for qsort. Local. */
int duplicates_compare(const void *a, const void *b);

/* Writes and reads the sorted list of a bucket, FOLDER/parts/duplicates-BBBBBBBB. Reading appends
 * the duplicates of one part, without reading those of others. Local. WRITE; DAMAGED. */
enum status duplicates_write(const struct text *list, const char *folder, int64_t bucket);
enum status duplicates_read(struct text *list, const char *folder, int64_t bucket, int64_t part);

#endif
