#define _XOPEN_SOURCE 700
#include "tests/common/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"

static char folder[64];

void fuzz_require(bool holds, const char *law) {
  if (holds) return;
  fprintf(stderr, "broken law: %s\nlast error: %s\n%s", law, error_message(), error_trace());
  abort();
}

static void remove_folder(void) {
  file_remove(folder);
}

const char *fuzz_folder(void) {
  if (folder[0]) return folder;
  const bool memory = access("/dev/shm", W_OK) == 0;
  snprintf(folder, sizeof folder, "%s/millrace-fuzz-XXXXXX", memory ? "/dev/shm" : "/tmp");
  fuzz_require(mkdtemp(folder) != NULL, "a folder can be made");
  atexit(remove_folder);
  return folder;
}

const char *fuzz_file(const char *name, const void *bytes, size_t count) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  fuzz_require(file >= 0 && write(file, bytes, count) == (ssize_t)count && close(file) == 0,
               "a file can be written");
  return path;
}

void fuzz_seed_text(const char *text) {
  fuzz_seed(text, strlen(text));
}

uint64_t fuzz_take(struct fuzz_input *input, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes && input->count; i++) {
    value |= (uint64_t)*input->bytes++ << (8 * i);
    input->count--;
  }
  return value;
}

void fuzz_take_line(struct text *line, struct fuzz_input *input) {
  const uint8_t *stop = input->count ? memchr(input->bytes, '\n', input->count) : NULL;
  const size_t count = stop ? (size_t)(stop - input->bytes) : input->count;
  text_clear(line);
  fuzz_require(text_add_bytes(line, input->bytes, count) == STATUS_OK, "memory suffices");
  input->bytes += count + (stop != NULL);
  input->count -= count + (stop != NULL);
}
