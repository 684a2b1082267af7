#include "pipeline/artefact/sink.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "pipeline/base/descriptor.h"

enum { BLOCK = SEEKABLE_FRAME_BYTES };

static enum status put(struct sink *sink, const void *bytes, uint64_t count) {
  TRY(descriptor_write(sink->fd, bytes, sink->written, count, sink->path));
  sink->written += count;
  return STATUS_OK;
}

/* Writes the encoded frame in sink->encoded, which `frame` describes. */
static enum status put_frame(struct sink *sink, struct seekable_frame *frame) {
  frame->stored_at = sink->written;
  TRY(text_add_bytes(&sink->frames, frame, sizeof *frame));
  TRY(blocks_add(&sink->blocks, sink->encoded.bytes, sink->encoded.length));
  return put(sink, sink->encoded.bytes, sink->encoded.length);
}

static enum status put_block(struct sink *sink, const void *bytes, uint64_t count) {
  const uint64_t hash = hash_bytes(bytes, count);
  TRY(text_add_bytes(&sink->hashes, &hash, sizeof hash));
  if (!sink->seekable) {
    TRY(blocks_add_hash(&sink->blocks, hash));
    return put(sink, bytes, count);
  }
  const unsigned char *from = bytes;
  for (uint64_t at = 0; at < count; at += sink->frame_bytes) {
    struct seekable_frame frame = {0};
    const uint64_t left = count - at;
    text_clear(&sink->encoded);
    TRY(seekable_encode(sink->context, &sink->encoded, &frame, from + at,
                        left < sink->frame_bytes ? left : sink->frame_bytes));
    TRY(put_frame(sink, &frame));
  }
  return STATUS_OK;
}

static enum status put_head(struct sink *sink, const void *head, uint64_t bytes) {
  sink->head_bytes = bytes;
  if (!sink->seekable) {
    sink->blocks = (struct blocks){.first_bytes = bytes, .block_bytes = BLOCK};
    TRY(blocks_add(&sink->blocks, head, bytes));
    return put(sink, head, bytes);
  }
  struct seekable_frame frame = {0};
  sink->blocks = (struct blocks){.block_bytes = BLOCK};
  TRY(seekable_store(&sink->encoded, &frame, head, bytes));
  return put_frame(sink, &frame);
}

/* Below level 0 zstd would store literals as they are; token ids are little else, so they are given
 * to its entropy coder all the same. A library without the setting compresses less. */
static enum status make_context(struct sink *sink, int level) {
  enum { LITERALS_COMPRESSED = 1 }; /* ZSTD_lcm_huffman */
  sink->context = ZSTD_createCCtx();
  CHECK(sink->context, STATUS_ENVIRONMENT, "out of memory: a zstd encoder");
  ZSTD_CCtx_setParameter(sink->context, ZSTD_c_compressionLevel, level);
  if (level < 0)
    ZSTD_CCtx_setParameter(sink->context, ZSTD_c_experimentalParam5, LITERALS_COMPRESSED);
  return STATUS_OK;
}

static enum status prepare(struct sink *sink, struct sink_options options, const void *head,
                           uint64_t bytes) {
  const int level = options.level ? options.level : SINK_LEVEL;
  sink->frame_bytes = options.frame_bytes ? options.frame_bytes : BLOCK;
  CHECK(BLOCK % sink->frame_bytes == 0, STATUS_INTERNAL, "frames of %llu bytes do not divide 1 MiB",
        (unsigned long long)sink->frame_bytes);
  CHECK(sink->path, STATUS_ENVIRONMENT, "out of memory");
  CHECK(bytes && (!sink->seekable || bytes <= SEEKABLE_MAX_FRAME_BYTES), STATUS_MISMATCH,
        "'%s': a head of %llu bytes cannot be written", sink->path, (unsigned long long)bytes);
  TRY(make_context(sink, level));
  TRY(descriptor_create(&sink->fd, sink->path));
  return put_head(sink, head, bytes);
}

enum status sink_open(struct sink *sink, const char *path, struct sink_options options,
                      const void *head, uint64_t bytes) {
  *sink = (struct sink){.fd = -1, .path = strdup(path), .seekable = seekable_is_name(path)};
  const enum status status = prepare(sink, options, head, bytes);
  if (status != STATUS_OK) sink_abandon(sink);
  return status;
}

enum status sink_write(struct sink *sink, const void *bytes, uint64_t count) {
  const unsigned char *from = bytes;
  while (count) {
    const uint64_t room = BLOCK - sink->pending.length;
    const uint64_t take = count < room ? count : room;
    if (take == BLOCK) {
      TRY(put_block(sink, from, BLOCK)); /* a whole block need not be gathered */
    } else {
      TRY(text_add_bytes(&sink->pending, from, take));
      if (sink->pending.length == BLOCK) TRY(sink_flush(sink));
    }
    from += take;
    count -= take;
  }
  return STATUS_OK;
}

enum status sink_flush(struct sink *sink) {
  if (!sink->pending.length) return STATUS_OK;
  TRY(put_block(sink, sink->pending.bytes, sink->pending.length));
  text_clear(&sink->pending);
  return STATUS_OK;
}

struct hash128 sink_data_hash(const struct sink *sink) {
  return hash_bytes128(sink->hashes.bytes ? sink->hashes.bytes : "", sink->hashes.length);
}

enum status sink_rewrite_head(struct sink *sink, const void *head, uint64_t bytes) {
  CHECK(bytes == sink->head_bytes, STATUS_INTERNAL, "'%s': a head of %llu bytes for one of %llu",
        sink->path, (unsigned long long)bytes, (unsigned long long)sink->head_bytes);
  if (!sink->seekable) {
    sink->blocks.hashes[0] = hash_bytes(head, bytes);
    return descriptor_write(sink->fd, head, 0, bytes, sink->path);
  }
  struct seekable_frame *frame = (struct seekable_frame *)sink->frames.bytes;
  text_clear(&sink->encoded);
  TRY(seekable_store(&sink->encoded, frame, head, bytes));
  sink->blocks.hashes[0] = hash_bytes(sink->encoded.bytes, sink->encoded.length);
  return descriptor_write(sink->fd, sink->encoded.bytes, 0, sink->encoded.length, sink->path);
}

static enum status finish(struct sink *sink) {
  TRY(sink_flush(sink));
  if (sink->seekable) {
    const struct seekable_frame *frames = (const struct seekable_frame *)sink->frames.bytes;
    text_clear(&sink->encoded);
    TRY(seekable_add_table(&sink->encoded, frames,
                           (int64_t)(sink->frames.length / sizeof *frames)));
    TRY(blocks_add(&sink->blocks, sink->encoded.bytes, sink->encoded.length));
    TRY(put(sink, sink->encoded.bytes, sink->encoded.length));
  }
  sink->blocks.file_bytes = sink->written;
  return descriptor_finish(&sink->fd, sink->path);
}

enum status sink_close(struct sink *sink, struct blocks *blocks) {
  const enum status status = finish(sink);
  if (status == STATUS_OK && blocks) {
    *blocks = sink->blocks;
    sink->blocks = (struct blocks){0};
  }
  sink_abandon(sink);
  return status;
}

void sink_abandon(struct sink *sink) {
  if (sink->path && sink->fd >= 0) close(sink->fd);
  free(sink->path);
  text_free(&sink->pending);
  text_free(&sink->encoded);
  text_free(&sink->frames);
  text_free(&sink->hashes);
  blocks_free(&sink->blocks);
  ZSTD_freeCCtx(sink->context);
  *sink = (struct sink){.fd = -1};
}
