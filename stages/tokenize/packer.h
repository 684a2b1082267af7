/* Packs documents into rows of at most `length` tokens.
 *
 *   wrapped    one stream: (bos) tokens eos, document after document, cut into rows of exactly
 *              `length`. What is left of the stream at its very end is dropped.
 *   paragraph  documents are appended until the next one does not fit, then the row gets one eos;
 *              there is no mark between documents. A document over length - 1 tokens gives full
 *              rows without eos, and its rest begins a row. Rows are shorter than `length` as a
 *              rule (the packing of ELF's training data).
 */
#ifndef STAGES_TOKENIZE_PACKER_H
#define STAGES_TOKENIZE_PACKER_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/config/options.h"

struct packer {
  /* set by the caller */
  enum packing_choice packing;
  int64_t length;
  int32_t bos, eos; /* bos may be TOKEN_NONE */
  int32_t *row;     /* [length], borrowed */
  enum status (*take)(void *state, const int32_t *ids, int64_t count);
  void *state;
  /* kept by the packer */
  int64_t filled;
  int64_t rows;   /* given so far */
  int64_t stream; /* tokens taken so far, marks included */
};

/* Adds a document. Without `ids` rows are counted only, and `take` is not called. Local. Passes on
 * the status of `take`. */
enum status packer_add(struct packer *packer, const int32_t *ids, int64_t count);

/* Ends the last paragraph row; the rows that follow depend on nothing before. Local. */
enum status packer_break(struct packer *packer);

#endif
