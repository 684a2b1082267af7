/* seekable.h: making frames and the table. */
#include <xxhash.h>
#include <zstd.h>

#include "pipeline/artefact/seekable.h"

enum {
  RAW_DESCRIPTOR = 0xa4, /* content size in 4 bytes, single segment, checksum (RFC 8878, 3.1.1) */
  RAW_BLOCK_BYTES = 1 << 17,
  ENTRY_BYTES = 12,
  CHECKSUM_FLAG = 0x80
};

static enum status add_number(struct text *out, uint64_t value, size_t bytes) {
  unsigned char little[8];
  for (size_t i = 0; i < sizeof little; i++) little[i] = (unsigned char)(value >> (8 * i));
  return text_add_bytes(out, little, bytes);
}

/* The checksum at the end of a frame is the low half of the content's XXH64. */
static uint32_t checksum_of(const struct text *out) {
  uint32_t checksum = 0;
  const unsigned char *end = (const unsigned char *)out->bytes + out->length;
  for (int i = 0; i < 4; i++) checksum |= (uint32_t)end[i - 4] << (8 * i);
  return checksum;
}

enum status seekable_encode(ZSTD_CCtx *context, struct text *out, struct seekable_frame *frame,
                            const void *content, size_t bytes) {
  const size_t before = out->length;
  TRY(text_reserve(out, ZSTD_compressBound(bytes)));
  ZSTD_CCtx_reset(context, ZSTD_reset_session_only);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const size_t stored =
      ZSTD_compress2(context, out->bytes + before, out->capacity - before - 1, content, bytes);
  CHECK(!ZSTD_isError(stored), STATUS_INTERNAL, "zstd cannot compress %zu bytes: %s", bytes,
        ZSTD_getErrorName(stored));
  out->length = before + stored;
  out->bytes[out->length] = '\0';
  frame->stored_bytes = (uint32_t)stored;
  frame->content_bytes = (uint32_t)bytes;
  frame->checksum = checksum_of(out);
  return STATUS_OK;
}

enum status seekable_store(struct text *out, struct seekable_frame *frame, const void *content,
                           size_t bytes) {
  const size_t before = out->length;
  frame->content_bytes = (uint32_t)bytes;
  frame->checksum = (uint32_t)XXH64(content, bytes, 0);
  TRY(add_number(out, ZSTD_MAGICNUMBER, 4));
  TRY(add_number(out, RAW_DESCRIPTOR, 1));
  TRY(add_number(out, bytes, 4));
  const unsigned char *from = content;
  do {
    const size_t block = bytes < RAW_BLOCK_BYTES ? bytes : RAW_BLOCK_BYTES;
    const bool last = block == bytes;
    TRY(add_number(out, (uint64_t)block << 3 | last, 3));
    TRY(text_add_bytes(out, from, block));
    from += block;
    bytes -= block;
  } while (bytes);
  TRY(add_number(out, frame->checksum, 4));
  frame->stored_bytes = (uint32_t)(out->length - before);
  return STATUS_OK;
}

enum status seekable_add_table(struct text *out, const struct seekable_frame *frames,
                               int64_t count) {
  TRY(add_number(out, 0x184D2A5Eu, 4));
  TRY(add_number(out, (uint64_t)count * ENTRY_BYTES + 9, 4));
  for (int64_t i = 0; i < count; i++) {
    TRY(add_number(out, frames[i].stored_bytes, 4));
    TRY(add_number(out, frames[i].content_bytes, 4));
    TRY(add_number(out, frames[i].checksum, 4));
  }
  TRY(add_number(out, (uint64_t)count, 4));
  TRY(add_number(out, CHECKSUM_FLAG, 1));
  return add_number(out, 0x8F92EAB1u, 4);
}
