/* The encoded corpus: all parts in order, without duplicates, divided into a training and a
 * held-out side by the content of each document. What is known of it is the same on every rank.
 */
#ifndef STAGES_TOKENIZE_CORPUS_H
#define STAGES_TOKENIZE_CORPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "sharding/comm.h"
#include "stages/tokenize/encode_unit.h"
#include "stages/tokenize/parts.h"

enum corpus_side { CORPUS_TRAIN, CORPUS_HELD_OUT, CORPUS_SIDES };

struct corpus_part {
  int64_t unit, piece;
  int64_t input; /* the entry of the option `input` that it comes from */
};

struct corpus_counts {
  int64_t documents, bytes, tokens; /* of the documents that are kept */
};

struct corpus {
  const char *folder; /* borrowed */
  struct hash128 key;
  double held_out;
  int64_t units; /* of the input */
  int64_t width; /* bytes of a token in parts */
  int64_t part_count, buckets;
  struct corpus_part *parts; /* owned */
  struct tally tally;        /* of everything that was read */
  int64_t duplicates;        /* documents left out that equal an earlier one */
  int64_t near_duplicates;   /* documents left out that share a band with an earlier one */
  struct near_bands bands;
  struct corpus_counts counts[CORPUS_SIDES];
};

/* One part with the places of its duplicates. */
struct corpus_piece {
  struct part part;
  struct text duplicates; /* array of struct duplicate, sorted */
  size_t next;            /* of them */
  int64_t equal, near;    /* how many of them are duplicates, and near-duplicates only */
  int64_t token;          /* where the next document's tokens begin */
};

/* Makes the corpus of finished units: finds duplicates and counts. Collective. */
enum status corpus_open(struct corpus *corpus, const struct encode_unit *work, double held_out,
                        struct comm *comm);
void corpus_free(struct corpus *corpus);

/* Loads part number `index`, with its tokens or without. Local. DAMAGED. */
enum status corpus_load(const struct corpus *corpus, struct corpus_piece *piece, int64_t index,
                        bool with_tokens);
void corpus_piece_free(struct corpus_piece *piece);

/* The side a document's content puts it on: identical documents are always on the same one. `share`
 * is that of the held-out side. Local. */
enum corpus_side corpus_side_of(struct hash128 hash, double share);

/* A document of a piece that is kept. */
struct corpus_document {
  const struct part_document *about; /* borrowed from the piece */
  const void *ids; /* part.width bytes each, borrowed; NULL when loaded without tokens */
  enum corpus_side side;
};

/* Goes through the kept documents of a piece: call with place = 0, 1, ... below part_count(part),
 * in order; false for a duplicate. Local. */
bool corpus_document(struct corpus_document *document, const struct corpus *corpus,
                     struct corpus_piece *piece, int64_t place);

#endif
