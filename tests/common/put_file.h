/* Writes a file without flushing it to storage: for tests that write hundreds. */
#ifndef TESTS_COMMON_PUT_FILE_H
#define TESTS_COMMON_PUT_FILE_H

#include <stdio.h>

static inline void put_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
    fail_msg("cannot write '%s'", path);
}

#endif
