/* Pre-tokenisers of byte-level BPE: where a text is cut before bytes are merged. Written by hand
 * after the regular expressions of tiktoken (tiktoken_ext/openai_public.py), which stand beside
 * each function; tests compare them with PCRE2 running these expressions.
 *
 * Each function returns the length of the first pre-token of `bytes` (not empty): at least 1.
 */
#ifndef STAGES_TOKENIZE_PRETOKEN_H
#define STAGES_TOKENIZE_PRETOKEN_H

#include <stdbool.h>

#include "stages/tokenize/unicode.h"

typedef size_t pretoken_function(const struct unicode *unicode, const char *bytes, size_t count);

pretoken_function pretoken_gpt2, pretoken_cl100k, pretoken_llama3, pretoken_o200k;

/* Length of '(?:[sdmt]|ll|ve|re) at the start of `bytes`, or of '(?i:...); 0: there is none. Local.
 */
size_t pretoken_contraction(const char *bytes, size_t count, bool any_case);

#endif
