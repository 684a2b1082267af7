/* The words of a document under a unigram model: segmented, remembered, and their ids appended with
 * the sum of scores that libsentencepiece would have at each word (unigram_viterbi.h).
 */
#ifndef STAGES_TOKENIZE_UNIGRAM_WORDS_H
#define STAGES_TOKENIZE_UNIGRAM_WORDS_H

#include "stages/tokenize/tokenizer.h"
#include "stages/tokenize/unigram_model.h"
#include "stages/tokenize/unigram_viterbi.h"
#include "stages/tokenize/word_batch.h"
#include "stages/tokenize/word_cache.h"

#define UNIGRAM_SPACE "\xe2\x96\x81" /* U+2581, which stands for the space before a word */
enum { UNIGRAM_SPACE_BYTES = 3 };

struct unigram_words {
  struct piece_trie trie;
  struct viterbi viterbi;
  struct word_cache cache;
  float *scores;                    /* [pieces], owned; as segmentation uses them */
  double *exact;                    /* [pieces], owned; for words that stand alone, else NULL */
  float worst;                      /* the largest magnitude among them */
  int32_t pieces[WORD_LONG_PIECES]; /* of the word segmented last */
  struct word_batch batch;          /* words found and not yet looked up */
  /* of the present document */
  struct tokens *ids; /* borrowed */
  size_t first;       /* place of its first id */
  size_t summed;      /* ids before this place are in `sum` */
  float sum;          /* of the scores of all pieces, as the library rounds it */
  size_t empty;       /* words of nothing but a space that may turn out to end the document */
  bool unknown;       /* the last piece was the unknown one */
};

/* Makes the tables of a model that unigram_model_uncovered finds nothing wrong with. Local.
 * ENVIRONMENT when memory is out, DAMAGED when a piece is there twice. */
enum status unigram_words_open(struct unigram_words *words, const struct unigram_model *model);
void unigram_words_close(struct unigram_words *words);

/* Begins a document whose ids are appended to `ids`. Local. */
void unigram_words_begin(struct unigram_words *words, struct tokens *ids);

/* Adds the words of the batch, in order, and empties it. Bytes before `end` may be read. Local.
 * ENVIRONMENT when memory is out. */
enum status unigram_words_flush(struct unigram_words *words, const char *end);

/* Adds a word of normalised text without its space, when the batch is empty. Local. ENVIRONMENT
 * when memory is out. */
enum status unigram_words_add(struct unigram_words *words, const char *word, size_t count);

#endif
