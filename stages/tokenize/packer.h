/* Packs documents into rows of at most `length` tokens.
 *
 *   wrapped    one stream: (bos) tokens eos, document after document, cut into rows of exactly
 *              `length`. What is left of the stream at its very end is dropped.
 *   paragraph  documents are appended until the next one does not fit, then the row gets one eos;
 *              there is no mark between documents. A document over length - 1 tokens gives full
 *              rows without eos, and its rest begins a row. Rows are shorter than `length` as a
 *              rule (the packing of ELF's training data).
 *   pairs      a source's tokens, then its target's, in a row of their own, without marks. A source
 *              is cut to `source_length` and a row to `length`, or (`drops`) what is longer is
 *              left out; so is a pair with a side of no tokens.
 */
#ifndef STAGES_TOKENIZE_PACKER_H
#define STAGES_TOKENIZE_PACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/config/options.h"
#include "stages/tokenize/tokenizer.h"

struct packer {
  /* set by the caller */
  enum packing_choice packing;
  int64_t length;
  size_t width;          /* bytes of a token: 2 or 4, little-endian */
  int32_t bos, eos;      /* bos may be TOKEN_NONE */
  int64_t source_length; /* of pairs: the longest source */
  bool drops;            /* pairs that are too long, instead of cutting them */
  void *row;             /* [length], borrowed */
  enum status (*take)(void *state, const void *ids, int64_t count);
  void *state;
  /* kept by the packer */
  int64_t filled;
  int64_t rows;          /* given so far */
  int64_t stream;        /* tokens taken so far, marks included */
  int64_t source;        /* of the pair that is given: tokens of its source */
  int64_t cut, left_out; /* pairs */
};

/* A packer as a node's options say; row, take and state are left to the caller. Local. */
struct packer packer_for(const struct options *options, const struct tokenizer_facts *facts);

/* Adds a document. Without `ids` rows are counted only, and `take` is not called. Local. Passes on
 * the status of `take`. */
enum status packer_add(struct packer *packer, const void *ids, int64_t count);

/* Adds a pair of source and target tokens, as packer_add. Local. */
enum status packer_add_pair(struct packer *packer, const void *ids, int64_t source, int64_t target);

/* Ends the last paragraph row; the rows that follow depend on nothing before. Local. */
enum status packer_break(struct packer *packer);

#endif
