#include "pipeline/artefact/zstd_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "pipeline/base/descriptor.h"

enum { INPUT_BYTES = 1 << 17, HEADER_BYTES = 18 /* the largest frame header */ };

static enum status prepare(struct zstd_stream *stream) {
  stream->context = ZSTD_createDCtx();
  stream->input = malloc(INPUT_BYTES);
  CHECK(stream->path && stream->context && stream->input, STATUS_ENVIRONMENT,
        "out of memory: a zstd decoder");
  ZSTD_DCtx_setParameter(stream->context, ZSTD_d_windowLogMax, ZSTD_STREAM_WINDOW_LOG);
  return descriptor_open(&stream->fd, stream->path);
}

enum status zstd_stream_open(struct zstd_stream *stream, const char *path) {
  *stream = (struct zstd_stream){.fd = -1, .path = strdup(path)};
  const enum status status = prepare(stream);
  if (status != STATUS_OK) zstd_stream_close(stream);
  return status;
}

void zstd_stream_close(struct zstd_stream *stream) {
  if (stream->path && stream->fd >= 0) close(stream->fd);
  ZSTD_freeDCtx(stream->context);
  free(stream->input);
  free(stream->path);
  *stream = (struct zstd_stream){.fd = -1};
}

static unsigned long long position(const struct zstd_stream *stream) {
  return (unsigned long long)stream->consumed + stream->input_at;
}

/* Reads on until the buffer holds at least `wanted` bytes or the file ends. */
static enum status refill(struct zstd_stream *stream, size_t wanted) {
  if (stream->input_end - stream->input_at >= wanted || stream->file_ended) return STATUS_OK;
  memmove(stream->input, stream->input + stream->input_at, stream->input_end - stream->input_at);
  stream->input_end -= stream->input_at;
  stream->consumed += stream->input_at;
  stream->input_at = 0;
  while (stream->input_end < wanted && !stream->file_ended) {
    const ssize_t got =
        read(stream->fd, stream->input + stream->input_end, INPUT_BYTES - stream->input_end);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, STATUS_ENVIRONMENT, "cannot read '%s' at byte %llu: %s", stream->path,
          position(stream) + stream->input_end, strerror(errno));
    stream->file_ended = got == 0;
    stream->input_end += (size_t)got;
  }
  return STATUS_OK;
}

/* Looks at the head of the next frame. */
static enum status begin_frame(struct zstd_stream *stream) {
  TRY(refill(stream, HEADER_BYTES));
  const size_t have = stream->input_end - stream->input_at;
  CHECK(have || stream->consumed + stream->input_at, STATUS_DAMAGED,
        "'%s' is empty: truncated at byte 0", stream->path);
  if (!have) return STATUS_OK;
  const unsigned dictionary = ZSTD_getDictID_fromFrame(stream->input + stream->input_at, have);
  CHECK(dictionary == 0, STATUS_MISMATCH, "'%s': the frame at byte %llu needs the dictionary %u",
        stream->path, position(stream), dictionary);
  return STATUS_OK;
}

static enum status complain(const struct zstd_stream *stream, size_t code) {
  CHECK(ZSTD_getErrorCode(code) != ZSTD_error_frameParameter_windowTooLarge, STATUS_MISMATCH,
        "'%s': the frame at byte %llu needs a window above the limit of 2^%d bytes", stream->path,
        position(stream), ZSTD_STREAM_WINDOW_LOG);
  FAIL(STATUS_DAMAGED, "'%s' is damaged at byte %llu: %s", stream->path, position(stream),
       ZSTD_getErrorName(code));
}

/* One call of the decoder. */
static enum status advance(struct zstd_stream *stream, ZSTD_outBuffer *output) {
  const size_t before = output->pos;
  TRY(refill(stream, 1));
  ZSTD_inBuffer input = {.src = stream->input, .size = stream->input_end, .pos = stream->input_at};
  const size_t left = ZSTD_decompressStream(stream->context, output, &input);
  const bool moved = input.pos != stream->input_at || output->pos != before;
  stream->input_at = input.pos;
  if (ZSTD_isError(left)) return complain(stream, left);
  stream->inside_frame = left != 0;
  const bool starved = stream->file_ended && stream->input_at == stream->input_end;
  CHECK(moved || !starved, STATUS_DAMAGED, "'%s' is truncated at byte %llu, inside a frame",
        stream->path, position(stream));
  CHECK(moved || output->pos == output->size, STATUS_DAMAGED,
        "'%s' is damaged at byte %llu: the decoder makes no progress", stream->path,
        position(stream));
  return STATUS_OK;
}

enum status zstd_stream_read(struct zstd_stream *stream, void *out, size_t bytes, size_t *got) {
  ZSTD_outBuffer output = {.dst = out, .size = bytes};
  while (output.pos < bytes) {
    if (!stream->inside_frame) {
      TRY(begin_frame(stream));
      if (stream->input_at == stream->input_end) break; /* the real end */
    }
    TRY(advance(stream, &output));
  }
  stream->produced += output.pos;
  *got = output.pos;
  return STATUS_OK;
}
