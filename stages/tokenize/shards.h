/* Rows of tokens, packed from the corpus and written as shards.
 *
 * Rows hold text of one entry of the option `input` only, and those of an entry lie side by side.
 * The rows of a side are numbered from 0; a shard holds a fixed range of them, so that shards can
 * be made by any rank, in any order, with the same bytes. Column "tokens": [rows, length] when
 * wrapped, else ragged; of pairs also column "source_length", I32 [rows]. Metadata: tokenizer,
 * kind, packing, length, side.
 */
#ifndef STAGES_TOKENIZE_SHARDS_H
#define STAGES_TOKENIZE_SHARDS_H

#include "stages/tokenize/corpus.h"
#include "stages/tokenize/packer.h"

enum { SHARDS_TAG_BYTES = 13, SHARDS_TEXT_BYTES = 24 };

struct shards_side {
  const char *name; /* "train", "held_out" */
  int64_t *before;  /* [parts + 1], owned: rows, or (wrapped) tokens of the stream, that come before
                       each part */
  int64_t cut_pairs, left_out_pairs;
  int64_t rows;    /* of all shards */
  int64_t dropped; /* tokens of the stream that fill no row */
  int64_t shards, rows_of_shard;
};

struct shards {
  const struct corpus *corpus; /* borrowed */
  const struct tokenizer_facts *facts;
  const struct options *options;
  const char *folder;
  char tokenizer[HASH_HEX_BYTES];
  char tag[SHARDS_TAG_BYTES]; /* first digits of the hash of tokenizer and rules */
  char length[SHARDS_TEXT_BYTES];
  struct shards_side sides[CORPUS_SIDES];
};

/* What a shard's rows tell. */
struct shards_counts {
  int64_t *histogram; /* [vocabulary], borrowed; counts of most rows are added */
  double entropy;     /* sum over `measured` rows of the entropy of the row's own tokens, nats */
  int64_t measured;   /* all held-out rows, some of the others */
  int64_t tokens;     /* of the rows */
  int64_t rows;
};

/* Lays out the rows of both sides. Collective. MISMATCH when a side that must have rows has none.
 */
enum status shards_plan(struct shards *shards, const struct corpus *corpus,
                        const struct tokenizer *tokenizer, const struct options *options,
                        struct comm *comm);
void shards_free(struct shards *shards);

/* Whether part `index` begins another entry of `input` than the part before it. Local. */
bool shards_begins_input(const struct shards *shards, int64_t index);

/* Appends the rows of each entry of `input`, "1200 0 35", those of none being 0. Local. */
enum status shards_rows_of_inputs(const struct shards *shards, enum corpus_side side,
                                  struct text *text);

/* Adds a document to a packer. Local. As packer_add. */
enum status shards_pack(struct packer *packer, const struct corpus_document *document);

/* What makes one shard after another, in the same memory; opaque. */
struct shards_maker;

/* Makes a maker; frees it (accepts NULL). Local. ENVIRONMENT when memory is out. */
enum status shards_maker_open(struct shards_maker **maker, const struct shards *shards);
void shards_maker_close(struct shards_maker *maker);

/* Packs shard number `index` of a side, counts its rows, and writes it unless it is there already.
 * Local. WRITE; DAMAGED. */
enum status shards_make(struct shards_maker *maker, enum corpus_side side, int64_t index,
                        struct shards_counts *counts);

#endif
