/* The zstd seekable format: a file of independent frames and, in a skippable frame at its end, a
 * table of their sizes. `zstd -d` reads it as any other .zst file. (zstd, contrib/seekable_format,
 * version 0.1.0: frames of compressed and plain size, XXH64 checksum, footer magic 0x8F92EAB1.)
 *
 * We write frames of at most SEEKABLE_FRAME_BYTES with content size and checksum always on.
 */
#ifndef PIPELINE_ARTEFACT_SEEKABLE_H
#define PIPELINE_ARTEFACT_SEEKABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

enum { SEEKABLE_FRAME_BYTES = 1 << 20, SEEKABLE_MAX_FRAME_BYTES = 1 << 26 };

struct seekable_frame {
  uint64_t stored_at, content_at; /* first byte in the file, and in the content */
  uint32_t stored_bytes, content_bytes;
  uint32_t checksum; /* low 32 bits of the XXH64 of the content */
};

struct seekable_table {
  int64_t count;
  struct seekable_frame *frames; /* owned */
  uint64_t content_bytes;
  uint64_t table_at, table_bytes; /* the skippable frame that holds the table */
  bool checksums;                 /* the table carries checksums */
};

/* Whether a path names a seekable file: it ends with ".zst". Local. */
bool seekable_is_name(const char *path);

/* Reads and checks the seek table of an open file of `file_bytes` bytes. Local. DAMAGED, naming
 * `path` and the byte, when there is none or it does not add up to the file. */
enum status seekable_read_table(struct seekable_table *table, int fd, uint64_t file_bytes,
                                const char *path);
void seekable_free_table(struct seekable_table *table);

/* The frame that holds byte `offset` of the content; `offset` < content_bytes. Local. */
int64_t seekable_find(const struct seekable_table *table, uint64_t offset);

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

/* Decodes frame `index`, whose stored bytes are `stored`, into `content` (content_bytes of room).
 * Local. DAMAGED, naming `path` and the frame, for anything but that frame whole and unharmed. */
enum status seekable_decode(struct ZSTD_DCtx_s *context, const struct seekable_table *table,
                            int64_t index, const void *stored, void *content, const char *path);

/* Appends one frame made of `bytes` bytes of content to `out` and describes it in `frame`
 * (stored_at and content_at are left alone). `level` is zstd's. Local. */
enum status seekable_encode(struct ZSTD_CCtx_s *context, struct text *out,
                            struct seekable_frame *frame, const void *content, size_t bytes);

/* As seekable_encode without compression: a frame whose stored size depends on `bytes` only, so
 * that it can be written again in place when the content has changed. Local. */
enum status seekable_store(struct text *out, struct seekable_frame *frame, const void *content,
                           size_t bytes);

/* Appends the skippable frame with the seek table of `count` frames. Local. */
enum status seekable_add_table(struct text *out, const struct seekable_frame *frames,
                               int64_t count);

#endif
