/* blocks.h: hashing and checking files as a whole. */
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/artefact/blocks.h"
#include "pipeline/artefact/seekable.h"
#include "pipeline/base/descriptor.h"

struct walk {
  int fd;
  const char *path;
  struct blocks *made;          /* NULL: check instead */
  const struct blocks *checked; /* the expected hashes */
  unsigned char *buffer;
  uint64_t capacity;
};

static enum status visit(struct walk *walk, int64_t index, uint64_t offset, uint64_t bytes) {
  if (bytes > walk->capacity) {
    free(walk->buffer);
    walk->buffer = malloc(bytes);
    walk->capacity = walk->buffer ? bytes : 0;
    CHECK(walk->buffer, STATUS_ENVIRONMENT, "out of memory: a block of %llu bytes of '%s'",
          (unsigned long long)bytes, walk->path);
  }
  TRY(descriptor_read(walk->fd, walk->buffer, offset, bytes, walk->path));
  if (walk->made) return blocks_add(walk->made, walk->buffer, bytes);
  return blocks_check(walk->checked, index, walk->buffer, bytes, walk->path);
}

static enum status visit_frames(struct walk *walk, const struct seekable_table *table) {
  for (int64_t i = 0; i < table->count; i++)
    TRY(visit(walk, i, table->frames[i].stored_at, table->frames[i].stored_bytes));
  return visit(walk, table->count, table->table_at, table->table_bytes);
}

static enum status visit_all(struct walk *walk, const struct blocks *shape) {
  if (shape->first_bytes) {
    for (int64_t i = 0; i < blocks_expected(shape); i++) {
      const struct blocks_range range = blocks_range(shape, i);
      TRY(visit(walk, i, range.offset, range.bytes));
    }
    return STATUS_OK;
  }
  struct seekable_table table = {0};
  TRY(seekable_read_table(&table, walk->fd, shape->file_bytes, walk->path));
  const enum status status = visit_frames(walk, &table);
  seekable_free_table(&table);
  return status;
}

static enum status walk_file(struct walk *walk, struct blocks *shape) {
  TRY(descriptor_open(&walk->fd, walk->path));
  uint64_t bytes = 0;
  enum status status = descriptor_size(&bytes, walk->fd, walk->path);
  if (status == STATUS_OK && walk->checked && bytes != walk->checked->file_bytes)
    status = error_raise(STATUS_DAMAGED, __FILE__, __LINE__, __func__,
                         "'%s' has %llu bytes, the manifest says %llu", walk->path,
                         (unsigned long long)bytes, (unsigned long long)walk->checked->file_bytes);
  shape->file_bytes = bytes;
  if (status == STATUS_OK) status = visit_all(walk, shape);
  close(walk->fd);
  free(walk->buffer);
  return status;
}

enum status blocks_of_file(struct blocks *blocks, const char *path) {
  const uint64_t usual = seekable_is_name(path) ? 0 : BLOCKS_BYTES;
  struct blocks made = {.first_bytes = usual, .block_bytes = BLOCKS_BYTES};
  struct walk walk = {.path = path, .made = &made};
  const enum status status = walk_file(&walk, &made);
  if (status != STATUS_OK) blocks_free(&made);
  TRY(status);
  *blocks = made;
  return STATUS_OK;
}

enum status blocks_verify_file(const struct blocks *blocks, const char *path) {
  struct blocks shape = *blocks;
  struct walk walk = {.path = path, .checked = blocks};
  return walk_file(&walk, &shape);
}
