/* The end of a zip file: how many entries its directory lists. libarchive passes over what it
 * cannot make sense of in a directory, and over entries that share their data; the number tells. */
#ifndef STAGES_TOKENIZE_ZIP_DIRECTORY_H
#define STAGES_TOKENIZE_ZIP_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZIP_DIRECTORY_TAIL = (64 << 10) + 128 }; /* the longest comment, and the records before it */

/* Finds the number in the last bytes of a file: modulo 65536 where the writer knew no larger ones.
 * False when there is none to be found. Local.
 * Format: PKWARE APPNOTE 6.3.10, 4.3.14 and 4.3.16. */
bool zip_directory_entries(uint64_t *entries, const unsigned char *tail, size_t count);

#endif
