/* The most likely segmentation of one word under a unigram model, with the arithmetic of
 * libsentencepiece (EncodeOptimized in unigram_model.cc), so that ids are equal to the last bit.
 *
 * The library adds scores along the whole text in single precision: which of two nearly equal
 * segmentations wins depends on the sum before the word. A result therefore says up to which sum it
 * holds.
 */
#ifndef STAGES_TOKENIZE_UNIGRAM_VITERBI_H
#define STAGES_TOKENIZE_UNIGRAM_VITERBI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/tokenize/piece_trie.h"
#include "stages/tokenize/tokenizer.h"

enum { VITERBI_JUDGED_BYTES = 64 }; /* longer words get no limit */

struct viterbi_step {
  double score; /* of the best path that ends here, with the sum before the word */
  int32_t id;
  int32_t length; /* places of the last piece; 0: no path ends here */
};

/* Of one place: the best and second best score without the sum before, in double precision. */
struct viterbi_judgement {
  double best, second;
};

struct viterbi {
  const struct piece_trie *trie; /* borrowed */
  int32_t space;                 /* node behind the space in the trie, where a piece ends */
  size_t longest;                /* bytes of the longest piece */
  int32_t unknown;
  double unknown_score;
  const double *exact; /* [pieces], borrowed: scores of sums that are not rounded; NULL: as the
                          library has it, in single precision */
  struct viterbi_step *steps; /* owned; a part of the places of a word */
  size_t capacity;
  size_t base; /* place of the first step */
  struct viterbi_judgement judged[VITERBI_JUDGED_BYTES + 2];
};

struct viterbi_result {
  size_t count; /* of pieces, unknown characters one by one */
  float sum;    /* of the scores, with the sum before the word */
  bool unknown; /* one of the pieces is the unknown one */
  double limit; /* every sum before the word above -limit gives the same pieces; < 0: not known */
};

/* Segments a space and `count` bytes of normalised UTF-8 that come behind the sum `before`, and
 * appends the pieces to `ids`. Memory is bounded unless paths never meet. Local. ENVIRONMENT when
 * memory is out. */
enum status viterbi_run(struct viterbi *viterbi, const char *bytes, size_t count, float before,
                        struct tokens *ids, struct viterbi_result *result);

void viterbi_free(struct viterbi *viterbi);

#endif
