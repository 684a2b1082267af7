/* Reads a byte range of a plain text file. */
#ifndef STAGES_TOKENIZE_PLAIN_H
#define STAGES_TOKENIZE_PLAIN_H

#include "stages/tokenize/splitter.h"

/* Feeds the documents that begin in [begin, end) of the file; the last of them may reach beyond
 * `end`. Every document of a file belongs to exactly one range of a division. Local. MISMATCH when
 * the file does not exist, and as splitter_feed. */
enum status plain_read(const char *path, uint64_t begin, uint64_t end, struct splitter *splitter);

#endif
