/* Unigram tokenizers from models that were read, and the sentinels of T5 behind their pieces. */
#ifndef STAGES_TOKENIZE_UNIGRAM_H
#define STAGES_TOKENIZE_UNIGRAM_H

#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/unigram_model.h"

enum { T5_SENTINELS = 100 };

/* Sets methods and state of `tokenizer` for a model that unigram_model_uncovered finds nothing
 * wrong with, which is moved into it. Local. DAMAGED for pieces or a normaliser that make no sense,
 * ENVIRONMENT when memory is out. */
enum status unigram_open_model(struct tokenizer *tokenizer, struct unigram_model *model);

/* Opens `tokenizer` as one whose text between sentinels is encoded by another one: `open` opens
 * that with `context`, and its ids come before those of the sentinels. Local. As `open`. */
enum status t5_open_around(struct tokenizer *tokenizer,
                           enum status (*open)(struct tokenizer *inner, void *context),
                           void *context);

#endif
