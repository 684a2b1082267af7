/* Files between two passes of a shuffle: the documents of some parts, divided by the bucket of the
 * new order that each falls into.
 *
 * One file holds a segment for every bucket, so that there are few files (R-FS-5), and each segment
 * has its own hash, so that a bucket reads no more than its own. FOLDER/parts/scatter-GGGGGGGG:
 * header; {documents, token bytes, hash} of each bucket; the segments: records, then ids. Private,
 * of the same machine kind.
 */
#ifndef STAGES_TOKENIZE_SCATTER_H
#define STAGES_TOKENIZE_SCATTER_H

#include <stdbool.h>

#include "stages/tokenize/parts.h"

struct scatter_record {
  int64_t position; /* in the new order */
  int64_t token;    /* where its ids begin in the text of tokens, in bytes */
  struct part_document about;
};

/* Documents in any order, or (once sorted) in the new one. Zero-initialise the rest. */
struct scatter {
  int64_t width;       /* bytes of a token */
  struct text records; /* array of struct scatter_record, owned */
  struct text tokens;  /* owned */
};

struct scatter_place {
  const char *folder; /* of the node; borrowed */
  struct hash128 key; /* of what decides the content */
  int64_t group;      /* of parts: which file */
  int64_t buckets;    /* segments of the file */
};

/* Number of documents, and the i-th, borrowed. Local. */
int64_t scatter_count(const struct scatter *scatter);
const struct scatter_record *scatter_at(const struct scatter *scatter, int64_t i);

/* Adds a document and its ids. Local. ENVIRONMENT when memory is out. */
enum status scatter_add(struct scatter *scatter, int64_t position,
                        const struct part_document *about, const void *ids);

/* The ids of the i-th document and their bytes, borrowed. Local. */
const void *scatter_ids(const struct scatter *scatter, int64_t i, size_t *bytes);

/* Puts records in the new order; tokens stay where they are. Local. */
void scatter_sort(struct scatter *scatter);

/* Writes sorted documents: those of bucket b end before ends[b]. In one move. Local. WRITE. */
enum status scatter_write(const struct scatter *scatter, const struct scatter_place *place,
                          const int64_t *ends);

/* Whether the file is there, of this key, and sound to its last byte. Local. */
bool scatter_exists(const struct scatter_place *place);

/* Appends the segment of a bucket. Local. DAMAGED names the file and what to do. */
enum status scatter_read(struct scatter *scatter, const struct scatter_place *place,
                         int64_t bucket);

/* Empties; frees. Local. */
void scatter_clear(struct scatter *scatter);
void scatter_free(struct scatter *scatter);

#endif
