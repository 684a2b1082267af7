/* Any zstd stream read from start to end: frames and skippable frames one after another, whoever
 * wrote them, until the real end of the file. Memory is bounded by ZSTD_STREAM_WINDOW_LOG.
 */
#ifndef PIPELINE_ARTEFACT_ZSTD_STREAM_H
#define PIPELINE_ARTEFACT_ZSTD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum { ZSTD_STREAM_WINDOW_LOG = 27 }; /* windows up to 128 MiB are decoded */

struct ZSTD_DCtx_s;

struct zstd_stream {
  char *path; /* owned */
  int fd;
  struct ZSTD_DCtx_s *context;
  unsigned char *input; /* owned */
  size_t input_at, input_end;
  uint64_t consumed; /* bytes of the file before `input_at` */
  uint64_t produced; /* bytes of content so far */
  bool inside_frame, file_ended;
};

/* Opens a file. Local. MISMATCH when it does not exist, ENVIRONMENT when it cannot be read. */
enum status zstd_stream_open(struct zstd_stream *stream, const char *path);

/* Reads up to `bytes` bytes of content; *got = 0 only at the end. Local. DAMAGED with path and
 * byte: a frame that ends early, a failed checksum, bytes that are no frame; MISMATCH for a
 * dictionary or a window above the limit, which are named. */
enum status zstd_stream_read(struct zstd_stream *stream, void *out, size_t bytes, size_t *got);

void zstd_stream_close(struct zstd_stream *stream);

#endif
