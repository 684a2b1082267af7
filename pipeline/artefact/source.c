#include "pipeline/artefact/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "pipeline/base/descriptor.h"

static enum status check_size(const struct source *source) {
  const struct blocks *blocks = &source->blocks;
  CHECK(!blocks->count || blocks->file_bytes == source->file_bytes, STATUS_DAMAGED,
        "'%s' has %llu bytes, the manifest says %llu", source->path,
        (unsigned long long)source->file_bytes, (unsigned long long)blocks->file_bytes);
  return STATUS_OK;
}

/* The table covers the file, so a sound hash of it makes every later place trustworthy. */
static enum status check_table(const struct source *source) {
  const struct seekable_table *table = &source->table;
  if (!source->blocks.count) return STATUS_OK;
  CHECK(source->blocks.count == table->count + 1, STATUS_DAMAGED,
        "'%s' has %lld frames, the manifest lists %lld blocks", source->path,
        (long long)table->count, (long long)source->blocks.count);
  unsigned char *bytes = malloc(table->table_bytes);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: the seek table of '%s'", source->path);
  enum status status =
      descriptor_read(source->fd, bytes, table->table_at, table->table_bytes, source->path);
  if (status == STATUS_OK)
    status = blocks_check(&source->blocks, table->count, bytes, table->table_bytes, source->path);
  free(bytes);
  return status;
}

static enum status prepare(struct source *source, const struct blocks *blocks) {
  if (blocks) TRY(blocks_copy(&source->blocks, blocks));
  TRY(descriptor_open(&source->fd, source->path));
  TRY(descriptor_size(&source->file_bytes, source->fd, source->path));
  TRY(check_size(source));
  source->content_bytes = source->file_bytes;
  if (!source->seekable) return STATUS_OK;
  TRY(seekable_read_table(&source->table, source->fd, source->file_bytes, source->path));
  source->content_bytes = source->table.content_bytes;
  return check_table(source);
}

enum status source_open(struct source *source, const char *path, const struct blocks *blocks) {
  *source = (struct source){.fd = -1, .path = strdup(path), .seekable = seekable_is_name(path)};
  CHECK(source->path, STATUS_ENVIRONMENT, "out of memory");
  const enum status status = prepare(source, blocks);
  if (status != STATUS_OK) source_close(source);
  return status;
}

void source_close(struct source *source) {
  if (source->path && source->fd >= 0) close(source->fd);
  free(source->path);
  seekable_free_table(&source->table);
  blocks_free(&source->blocks);
  *source = (struct source){.fd = -1};
}

static enum status reserve(unsigned char **buffer, uint64_t *capacity, uint64_t bytes) {
  if (bytes <= *capacity) return STATUS_OK;
  unsigned char *larger = realloc(*buffer, bytes);
  CHECK(larger, STATUS_ENVIRONMENT, "out of memory: a block of %llu bytes",
        (unsigned long long)bytes);
  *buffer = larger;
  *capacity = bytes;
  return STATUS_OK;
}

static enum status load_frame(const struct source *source, struct source_cache *cache,
                              struct source_slot *slot, int64_t index) {
  const struct seekable_frame *frame = &source->table.frames[index];
  if (!cache->context) cache->context = ZSTD_createDCtx();
  CHECK(cache->context, STATUS_ENVIRONMENT, "out of memory: a zstd decoder");
  TRY(reserve(&cache->stored, &cache->stored_capacity, frame->stored_bytes));
  TRY(reserve(&slot->content, &slot->capacity, frame->content_bytes));
  TRY(descriptor_read(source->fd, cache->stored, frame->stored_at, frame->stored_bytes,
                      source->path));
  if (source->blocks.count)
    TRY(blocks_check(&source->blocks, index, cache->stored, frame->stored_bytes, source->path));
  slot->bytes = frame->content_bytes;
  return seekable_decode(cache->context, &source->table, index, cache->stored, slot->content,
                         source->path);
}

static enum status load_block(const struct source *source, struct source_slot *slot,
                              int64_t index) {
  const struct blocks_range range = blocks_range(&source->blocks, index);
  TRY(reserve(&slot->content, &slot->capacity, range.bytes));
  TRY(descriptor_read(source->fd, slot->content, range.offset, range.bytes, source->path));
  slot->bytes = range.bytes;
  return blocks_check(&source->blocks, index, slot->content, range.bytes, source->path);
}

static struct source_slot *find_slot(struct source_cache *cache, const struct source *source,
                                     int64_t block) {
  struct source_slot *oldest = &cache->slots[0];
  for (int i = 0; i < SOURCE_CACHE_SLOTS; i++) {
    struct source_slot *slot = &cache->slots[i];
    if (slot->source == source && slot->block == block) return slot;
    if (slot->used < oldest->used) oldest = slot;
  }
  return oldest;
}

/* Sets *slot to the one that holds block `index`, decoded and checked. */
static enum status hold(const struct source *source, struct source_cache *cache, int64_t index,
                        struct source_slot **slot) {
  struct source_slot *found = find_slot(cache, source, index);
  found->used = ++cache->clock;
  *slot = found;
  if (found->source == source && found->block == index) return STATUS_OK;
  found->source = NULL; /* whatever it held is gone, also when loading fails */
  if (source->seekable)
    TRY(load_frame(source, cache, found, index));
  else
    TRY(load_block(source, found, index));
  found->source = source;
  found->block = index;
  return STATUS_OK;
}

static int64_t block_at(const struct source *source, uint64_t offset, uint64_t *begin) {
  if (source->seekable) {
    const int64_t index = seekable_find(&source->table, offset);
    *begin = source->table.frames[index].content_at;
    return index;
  }
  const struct blocks *blocks = &source->blocks;
  const int64_t index = offset < blocks->first_bytes
                            ? 0
                            : 1 + (int64_t)((offset - blocks->first_bytes) / blocks->block_bytes);
  *begin = blocks_range(blocks, index).offset;
  return index;
}

struct blocks_range source_block(const struct source *source, uint64_t offset) {
  struct blocks_range range;
  const int64_t index = block_at(source, offset, &range.offset);
  range.bytes = source->seekable ? source->table.frames[index].content_bytes
                                 : blocks_range(&source->blocks, index).bytes;
  return range;
}

enum status source_read(const struct source *source, struct source_cache *cache, void *out,
                        uint64_t offset, uint64_t bytes) {
  CHECK(offset <= source->content_bytes && bytes <= source->content_bytes - offset, STATUS_DAMAGED,
        "'%s' is truncated: bytes %llu to %llu were expected, its content ends at %llu",
        source->path, (unsigned long long)offset, (unsigned long long)(offset + bytes),
        (unsigned long long)source->content_bytes);
  if (!source->seekable && !source->blocks.count)
    return descriptor_read(source->fd, out, offset, bytes, source->path);
  unsigned char *to = out;
  while (bytes) {
    uint64_t begin;
    struct source_slot *slot;
    const int64_t index = block_at(source, offset, &begin);
    TRY(hold(source, cache, index, &slot));
    const uint64_t left = begin + slot->bytes - offset;
    const uint64_t take = bytes < left ? bytes : left;
    memcpy(to, slot->content + (offset - begin), take);
    to += take;
    offset += take;
    bytes -= take;
  }
  return STATUS_OK;
}

void source_cache_free(struct source_cache *cache) {
  for (int i = 0; i < SOURCE_CACHE_SLOTS; i++) free(cache->slots[i].content);
  free(cache->stored);
  ZSTD_freeDCtx(cache->context);
  *cache = (struct source_cache){0};
}
