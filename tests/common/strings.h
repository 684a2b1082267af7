/* Generated strings that tokenizers find hard. */
#ifndef TESTS_COMMON_STRINGS_H
#define TESTS_COMMON_STRINGS_H

#include <stdint.h>

#include "pipeline/base/text.h"

/* Appends string number `index`: runs of characters from all planes and scripts, white space of
 * every kind, combining and unassigned characters, ASCII words, digits, contractions in both cases,
 * sentinels, invalid UTF-8, and now and then one long run. The same for each (seed, index). */
enum status strings_make(struct text *text, uint64_t seed, uint64_t index);

/* Appends a code point as UTF-8. */
enum status strings_add(struct text *text, uint32_t code_point);

#endif
