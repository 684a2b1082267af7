/* The identity of files and folders that a run reads from outside: a hash of their content.
 *
 * A file's identity is the hash of its bytes. Hashes are remembered in a text file by path, size
 * and time of change, so that a look at an unchanged corpus costs one stat. A folder's identity is
 * that of the names and identities of the files below it, sorted by name.
 */
#ifndef PIPELINE_DRIVER_CONTENT_H
#define PIPELINE_DRIVER_CONTENT_H

#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

/* Zero-initialise. */
struct content_cache {
  struct text lines; /* "hash size seconds nanoseconds path" each */
  bool changed;
};

/* Reads the remembered hashes from a file; one that is missing or odd gives an empty cache. Local.
 */
void content_cache_read(struct content_cache *cache, const char *file);

/* Writes the cache when it changed, and frees it. Failure to write is not an error: the next look
 * hashes again. Local. */
void content_cache_close(struct content_cache *cache, const char *file);

/* The identity of what is at `path`. `cache` may be NULL. Local. MISMATCH when nothing is there,
 * ENVIRONMENT when it cannot be read. */
enum status content_identity(char hex[HASH_HEX_BYTES], const char *path,
                             struct content_cache *cache);

#endif
