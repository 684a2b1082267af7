/* A SentencePiece unigram model as its file holds it: pieces and the rules of its normaliser.
 * Format: sentencepiece_model.proto of github.com/google/sentencepiece (protocol buffers, proto2).
 */
#ifndef STAGES_TOKENIZE_UNIGRAM_MODEL_H
#define STAGES_TOKENIZE_UNIGRAM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/text.h"

enum unigram_type {
  UNIGRAM_NORMAL = 1,
  UNIGRAM_UNKNOWN,
  UNIGRAM_CONTROL,
  UNIGRAM_USER_DEFINED,
  UNIGRAM_UNUSED,
  UNIGRAM_BYTE
};

struct unigram_piece {
  const char *bytes; /* borrowed from the model's bytes, or from `storage` */
  size_t count;
  double score;
  enum unigram_type type;
};

struct unigram_model {
  struct unigram_piece *pieces; /* owned */
  int32_t piece_count;
  int32_t unknown;      /* id of the piece for what no piece covers; -1: none */
  double unknown_score; /* of one character under it */
  const char *charsmap; /* the normaliser's table; borrowed */
  size_t charsmap_bytes;
  const char *unknown_text; /* what decoding writes for the unknown piece; borrowed */
  size_t unknown_text_bytes;
  int64_t model_type; /* 1 = unigram */
  bool byte_fallback, space_as_suffix, denormalizes;
  bool words_alone;    /* each word in double precision, as Hugging Face's tokenizers */
  struct text storage; /* owned */
  bool dummy_prefix, remove_extra_spaces, escape_spaces;
};

/* Parses a model. `bytes` must outlive it. Local. DAMAGED with the byte where it stops making
 * sense. On failure there is nothing to free. */
enum status unigram_model_parse(struct unigram_model *model, const char *bytes, size_t count);
void unigram_model_free(struct unigram_model *model);

/* Finds the unknown piece and the score of a character under it. Local. */
void unigram_model_find_unknown(struct unigram_model *model);

/* Why our own path does not cover this model, or NULL when it does. Borrowed. Local. */
const char *unigram_model_uncovered(const struct unigram_model *model);

#endif
