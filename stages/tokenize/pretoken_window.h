/* Cuts many pre-tokens at a time: the boundaries inside 64 bytes by arithmetic on masks, one bit a
 * byte. The cuts are those of pretoken.h; where a window has something that masks cannot decide,
 * that function is asked.
 */
#ifndef STAGES_TOKENIZE_PRETOKEN_WINDOW_H
#define STAGES_TOKENIZE_PRETOKEN_WINDOW_H

#include "stages/tokenize/ascii_masks.h"
#include "stages/tokenize/unicode.h"

struct pretoken_window {
  const struct unicode *unicode; /* borrowed */
  ascii_masks_function *masks;
};

/* Starts of pre-tokens in the first 64 of the `count` bytes, where a pre-token begins at the first
 * byte: bits from 1 on, all of them up to the last one; bit `count` for the end of the text. 0: not
 * decided. Local. */
typedef uint64_t pretoken_starts_function(const struct pretoken_window *window, const char *bytes,
                                          size_t count);

pretoken_starts_function pretoken_starts_gpt2, pretoken_starts_cl100k, pretoken_starts_llama3,
    pretoken_starts_o200k;

#endif
