/* Base64 (RFC 4648), with or without padding at the end. */
#ifndef STAGES_TOKENIZE_BASE64_H
#define STAGES_TOKENIZE_BASE64_H

#include "pipeline/base/text.h"

/* Appends the bytes that `count` digits stand for. Local. DAMAGED with the place of a byte that is
 * no digit. */
enum status base64_decode(struct text *text, const char *digits, size_t count);

#endif
