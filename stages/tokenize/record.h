/* The text inside one record: a JSON line, or one stanza of a Debian package list. */
#ifndef STAGES_TOKENIZE_RECORD_H
#define STAGES_TOKENIZE_RECORD_H

#include "pipeline/base/text.h"

/* Appends the string under `key` ("a.b" descends) of a JSON object. `where` and `offset` are for
 * messages. Local. DAMAGED when it is not JSON, MISMATCH when it has no such string. */
enum status record_json(struct text *document, const char *bytes, size_t count, const char *key,
                        const char *where, uint64_t offset);

/* Appends the description of a stanza: synopsis, blank line, paragraphs, each one line; lines that
 * are indented (lists, code) stay lines. Of Description and Description-xx the longer one. Appends
 * nothing when the stanza has none. Local. Debian policy 5.6.13. */
enum status record_package(struct text *document, const char *bytes, size_t count);

#endif
