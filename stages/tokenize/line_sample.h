/* A bounded sample of sentences for training a vocabulary: of all lines offered, those with the
 * smallest hashes, up to the first that does not fit into the bound. The sample does not depend on
 * the order in which lines are offered, or to whom: samples of parts, merged under the smallest of
 * their bars, are the sample of the whole.
 */
#ifndef STAGES_TOKENIZE_LINE_SAMPLE_H
#define STAGES_TOKENIZE_LINE_SAMPLE_H

#include <stdint.h>

#include "pipeline/base/text.h"
#include "stages/tokenize/sentencepiece.h"

enum { LINE_SAMPLE_LINE_BYTES = 4096 }; /* longer lines are cut between words, or left out */

struct line_sample_line {
  int64_t hash; /* not negative */
  uint32_t count;
  char *bytes; /* owned */
};

struct line_sample {
  uint64_t limit_bytes;
  int64_t bar; /* lines with this hash or a larger one are left out */
  uint64_t bytes;
  struct line_sample_line *lines; /* owned; a heap, largest hash first */
  size_t count, capacity;
};

static inline struct line_sample line_sample_begin(uint64_t limit_bytes) {
  return (struct line_sample){.limit_bytes = limit_bytes, .bar = INT64_MAX};
}

/* Lowers the bar: drops what is at or above it. Local. */
void line_sample_lower(struct line_sample *sample, int64_t bar);

/* Offers one line; offers every line of a text. Local. ENVIRONMENT when memory is out. */
enum status line_sample_offer(struct line_sample *sample, const char *bytes, size_t count);
enum status line_sample_offer_text(struct line_sample *sample, const char *bytes, size_t count);

/* Appends the sample as lines, each ended by a line break; no line holds one. Local. */
enum status line_sample_write(struct text *text, const struct line_sample *sample);

/* Sorts the lines by hash, after which line_sample_sentences gives them in that order; nothing may
 * be offered any more. Local. */
void line_sample_sort(struct line_sample *sample);

struct line_sample_reader {
  const struct line_sample *sample; /* borrowed, sorted */
  size_t next;
};
struct sentences line_sample_sentences(struct line_sample_reader *reader);

void line_sample_free(struct line_sample *sample);

#endif
