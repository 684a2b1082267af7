#include "stages/tokenize/zip_directory.h"

#include <string.h>

#include "pipeline/base/little_endian.h"

enum { END_BYTES = 22, END_ENTRIES = 10, LOCATOR_BYTES = 20, END64_BYTES = 56, END64_ENTRIES = 32 };
enum { SEE_ZIP64 = 0xffff };

/* The record of a large file stands right before its locator and the end. */
static void find_large(uint64_t *entries, const unsigned char *tail, size_t end) {
  if (end < LOCATOR_BYTES + END64_BYTES) return;
  const unsigned char *record = tail + end - LOCATOR_BYTES - END64_BYTES;
  if (memcmp(record, "PK\6\6", 4) == 0) *entries = little_endian_get64(record + END64_ENTRIES);
}

bool zip_directory_entries(uint64_t *entries, const unsigned char *tail, size_t count) {
  if (count < END_BYTES) return false;
  for (size_t end = count - END_BYTES + 1; end-- > 0;) {
    if (memcmp(tail + end, "PK\5\6", 4) != 0) continue;
    *entries = little_endian_get32(tail + end + END_ENTRIES) & 0xffff;
    if (*entries == SEE_ZIP64) find_large(entries, tail, end);
    return true;
  }
  return false;
}
