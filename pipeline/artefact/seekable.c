#include "pipeline/artefact/seekable.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "pipeline/base/descriptor.h"
#include "pipeline/base/little_endian.h"

/* zstd, zstd_seekable_compression_format.md 0.1.0 */
enum {
  HEADER_BYTES = 8, /* of the skippable frame */
  FOOTER_BYTES = 9,
  ENTRY_BYTES = 8, /* 12 with checksums */
  CHECKSUM_BYTES = 4,
  MAX_FRAMES = 0x8000000,
  CHECKSUM_FLAG = 0x80,
  RESERVED_FLAGS = 0x7c
};
static const uint32_t SKIPPABLE_MAGIC = 0x184D2A5Eu, TABLE_MAGIC = 0x8F92EAB1u;

bool seekable_is_name(const char *path) {
  const size_t length = strlen(path);
  return length >= 4 && strcmp(path + length - 4, ".zst") == 0;
}

/* Finds the table from the footer at the end of the file. */
static enum status locate(struct seekable_table *table, int fd, uint64_t file_bytes,
                          const char *path) {
  unsigned char footer[FOOTER_BYTES];
  CHECK(file_bytes >= HEADER_BYTES + FOOTER_BYTES, STATUS_DAMAGED,
        "'%s' is truncated: %llu bytes cannot hold a seek table", path,
        (unsigned long long)file_bytes);
  TRY(descriptor_read(fd, footer, file_bytes - FOOTER_BYTES, FOOTER_BYTES, path));
  CHECK(little_endian_get32(footer + 5) == TABLE_MAGIC, STATUS_DAMAGED,
        "'%s' does not end with a zstd seek table (byte %llu): truncated, or not seekable", path,
        (unsigned long long)file_bytes - 4);
  const uint32_t count = little_endian_get32(footer);
  CHECK(count <= MAX_FRAMES && !(footer[4] & RESERVED_FLAGS), STATUS_DAMAGED,
        "'%s': the seek table's footer is damaged (%u frames, flags %02x)", path, count, footer[4]);
  table->count = count;
  table->checksums = footer[4] & CHECKSUM_FLAG;
  const uint64_t entry = ENTRY_BYTES + (table->checksums ? CHECKSUM_BYTES : 0);
  table->table_bytes = HEADER_BYTES + count * entry + FOOTER_BYTES;
  CHECK(table->table_bytes <= file_bytes, STATUS_DAMAGED,
        "'%s': a seek table of %u frames is larger than the file", path, count);
  table->table_at = file_bytes - table->table_bytes;
  return STATUS_OK;
}

/* Fills the frames from the table's bytes and proves that they add up to the file. */
static enum status fill(struct seekable_table *table, const unsigned char *bytes,
                        const char *path) {
  CHECK(little_endian_get32(bytes) == SKIPPABLE_MAGIC &&
            little_endian_get32(bytes + 4) == table->table_bytes - HEADER_BYTES,
        STATUS_DAMAGED, "'%s': the seek table at byte %llu has a wrong head", path,
        (unsigned long long)table->table_at);
  const unsigned char *entry = bytes + HEADER_BYTES;
  uint64_t stored = 0;
  for (int64_t i = 0; i < table->count; i++) {
    struct seekable_frame *frame = &table->frames[i];
    *frame = (struct seekable_frame){.stored_at = stored,
                                     .content_at = table->content_bytes,
                                     .stored_bytes = little_endian_get32(entry),
                                     .content_bytes = little_endian_get32(entry + 4)};
    if (table->checksums) frame->checksum = little_endian_get32(entry + ENTRY_BYTES);
    entry += ENTRY_BYTES + (table->checksums ? CHECKSUM_BYTES : 0);
    stored += frame->stored_bytes;
    table->content_bytes += frame->content_bytes;
    CHECK(frame->content_bytes <= SEEKABLE_MAX_FRAME_BYTES, STATUS_DAMAGED,
          "'%s': frame %lld holds %u bytes, the limit is %d", path, (long long)i,
          frame->content_bytes, SEEKABLE_MAX_FRAME_BYTES);
  }
  CHECK(stored == table->table_at, STATUS_DAMAGED,
        "'%s': the frames of the seek table end at byte %llu, the table begins at %llu", path,
        (unsigned long long)stored, (unsigned long long)table->table_at);
  return STATUS_OK;
}

/* A frame that the table calls empty is never read for its content, so it is proved to have none:
 * otherwise a damaged table would hide content. */
static enum status check_empty(const struct seekable_table *table, int64_t index, int fd,
                               const char *path) {
  const struct seekable_frame *frame = &table->frames[index];
  if (frame->content_bytes || !frame->stored_bytes) return STATUS_OK;
  CHECK(frame->stored_bytes <= SEEKABLE_MAX_FRAME_BYTES, STATUS_DAMAGED,
        "'%s': frame %lld is empty, the seek table says, but has %u bytes", path, (long long)index,
        frame->stored_bytes);
  unsigned char *stored = malloc(frame->stored_bytes);
  CHECK(stored, STATUS_ENVIRONMENT, "out of memory: a frame of '%s'", path);
  enum status status = descriptor_read(fd, stored, frame->stored_at, frame->stored_bytes, path);
  const size_t got =
      status == STATUS_OK ? ZSTD_decompress(NULL, 0, stored, frame->stored_bytes) : 0;
  free(stored);
  TRY(status);
  CHECK(got == 0, STATUS_DAMAGED,
        "'%s': frame %lld (byte %llu) is not empty as the seek table says: %s", path,
        (long long)index, (unsigned long long)frame->stored_at, ZSTD_getErrorName(got));
  return STATUS_OK;
}

static enum status check_empty_frames(const struct seekable_table *table, int fd,
                                      const char *path) {
  for (int64_t i = 0; i < table->count; i++) TRY(check_empty(table, i, fd, path));
  return STATUS_OK;
}

enum status seekable_read_table(struct seekable_table *table, int fd, uint64_t file_bytes,
                                const char *path) {
  struct seekable_table made = {0};
  TRY(locate(&made, fd, file_bytes, path));
  unsigned char *bytes = malloc(made.table_bytes);
  made.frames = calloc((size_t)made.count + 1, sizeof *made.frames);
  enum status status = STATUS_OK;
  if (!bytes || !made.frames)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: the seek table of '%s'", path);
  if (status == STATUS_OK)
    status = descriptor_read(fd, bytes, made.table_at, made.table_bytes, path);
  if (status == STATUS_OK) status = fill(&made, bytes, path);
  if (status == STATUS_OK) status = check_empty_frames(&made, fd, path);
  free(bytes);
  if (status != STATUS_OK) seekable_free_table(&made);
  TRY(status);
  *table = made;
  return STATUS_OK;
}

void seekable_free_table(struct seekable_table *table) {
  free(table->frames);
  *table = (struct seekable_table){0};
}

int64_t seekable_find(const struct seekable_table *table, uint64_t offset) {
  int64_t low = 0, high = table->count - 1; /* the last frame that begins at or before `offset` */
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (table->frames[middle].content_at <= offset)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

enum status seekable_decode(ZSTD_DCtx *context, const struct seekable_table *table, int64_t index,
                            const void *stored, void *content, const char *path) {
  const struct seekable_frame *frame = &table->frames[index];
  const unsigned dictionary = ZSTD_getDictID_fromFrame(stored, frame->stored_bytes);
  CHECK(dictionary == 0, STATUS_MISMATCH, "'%s': frame %lld needs the zstd dictionary %u", path,
        (long long)index, dictionary);
  const size_t got =
      ZSTD_decompressDCtx(context, content, frame->content_bytes, stored, frame->stored_bytes);
  CHECK(!ZSTD_isError(got), STATUS_DAMAGED, "'%s': frame %lld (byte %llu) is damaged: %s", path,
        (long long)index, (unsigned long long)frame->stored_at, ZSTD_getErrorName(got));
  CHECK(got == frame->content_bytes, STATUS_DAMAGED,
        "'%s': frame %lld (byte %llu) holds %zu bytes, the seek table says %u", path,
        (long long)index, (unsigned long long)frame->stored_at, got, frame->content_bytes);
  CHECK(!table->checksums || (uint32_t)XXH64(content, got, 0) == frame->checksum, STATUS_DAMAGED,
        "'%s': frame %lld (byte %llu) does not have the checksum of the seek table", path,
        (long long)index, (unsigned long long)frame->stored_at);
  return STATUS_OK;
}
