/* libsentencepiece behind functions that C can call: the reference of our own unigram path, the
 * fallback for models it does not cover, and the trainer of vocabularies.
 */
#ifndef STAGES_TOKENIZE_SENTENCEPIECE_H
#define STAGES_TOKENIZE_SENTENCEPIECE_H

#include "stages/tokenize/tokenizer.h"

/* Where the trainer gets its sentences from: sets the next one and returns true, or returns false
 * at the end. The bytes are borrowed until the next call. */
struct sentences {
  bool (*next)(void *state, const char **bytes, size_t *count);
  void *state;
};

/* Trains a unigram model with exactly `vocabulary_size` pieces (pad 0, eos 1, unk 2, then pieces),
 * normalisation nmt_nfkc; `model` becomes the bytes of a .model file. One thread and no random
 * draw: the same sentences in the same order give the same bytes. Local. MISMATCH when the text
 * cannot give that many pieces. */
enum status sentencepiece_train(struct text *model, struct sentences sentences,
                                int32_t vocabulary_size);

/* The version of the library, such as "libsentencepiece 0.1.97". Borrowed. Local. */
const char *sentencepiece_version(void);

#endif
