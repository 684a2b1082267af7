#include "pipeline/config/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct piece {
  struct piece *next;
  max_align_t bytes[];
};

struct pool {
  struct piece *pieces;
};

enum status pool_init(struct pool **pool) {
  *pool = calloc(1, sizeof **pool);
  CHECK(*pool, STATUS_ENVIRONMENT, "out of memory: a pool of texts");
  return STATUS_OK;
}

void pool_free(struct pool *pool) {
  if (!pool) return;
  for (struct piece *piece = pool->pieces; piece;) {
    struct piece *next = piece->next;
    free(piece);
    piece = next;
  }
  free(pool);
}

enum status pool_take(void **piece, struct pool *pool, size_t bytes) {
  struct piece *made = calloc(1, sizeof *made + bytes);
  CHECK(made, STATUS_ENVIRONMENT, "out of memory: a piece of %zu bytes", bytes);
  made->next = pool->pieces;
  pool->pieces = made;
  *piece = made->bytes;
  return STATUS_OK;
}

enum status pool_bytes(const char **copy, struct pool *pool, const void *bytes, size_t length) {
  void *piece = NULL;
  TRY(pool_take(&piece, pool, length + 1));
  if (length) memcpy(piece, bytes, length);
  *copy = piece;
  return STATUS_OK;
}

enum status pool_text(const char **copy, struct pool *pool, const char *text) {
  return pool_bytes(copy, pool, text, strlen(text));
}

enum status pool_format(const char **copy, struct pool *pool, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  void *piece = NULL;
  TRY(pool_take(&piece, pool, (size_t)length + 1));
  va_start(arguments, format);
  vsnprintf(piece, (size_t)length + 1, format, arguments);
  va_end(arguments);
  *copy = piece;
  return STATUS_OK;
}
