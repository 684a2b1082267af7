/* zstd files (R-ZST-1): by the seek table and from start to end, which must give the same content.
 */
#include "tests/common/fuzz.h"

#include <string.h>
#include <zstd.h>

#include "pipeline/artefact/blocks.h"
#include "pipeline/artefact/seekable.h"
#include "pipeline/artefact/source.h"
#include "pipeline/artefact/zstd_stream.h"

enum { CONTENT_BYTES = 1 << 20 }; /* compared */

static void add_file(const char *const *contents, int count, bool table) {
  struct seekable_frame frames[4] = {{0}};
  struct text file = {0};
  ZSTD_CCtx *context = ZSTD_createCCtx();
  enum status status = seekable_store(&file, &frames[0], contents[0], strlen(contents[0]));
  for (int i = 1; i < count && status == STATUS_OK; i++)
    status = seekable_encode(context, &file, &frames[i], contents[i], strlen(contents[i]));
  if (status == STATUS_OK && table) status = seekable_add_table(&file, frames, count);
  fuzz_require(status == STATUS_OK, "a seed can be made");
  fuzz_seed(file.bytes, file.length);
  ZSTD_freeCCtx(context);
  text_free(&file);
}

void fuzz_make_seeds(void) {
  static const char *const contents[] = {"the head", "one one one one one one one one one", "",
                                         "the last one, the last one"};
  add_file(contents, 4, true);
  add_file(contents, 2, true);
  add_file(contents, 3, false);
  fuzz_seed("\x50\x2a\x4d\x18\3\0\0\0abc\x28\xb5\x2f\xfd\x20\3\x19\0\0abc", 23);
  fuzz_seed("\x28\xb5\x2f\xfd\x01\x00\x07\x01\x00\x00", 10); /* wants a dictionary */
}

/* The first bytes of the content; false when it cannot be read to CONTENT_BYTES or its end. */
static bool read_stream(struct text *content, const char *path) {
  struct zstd_stream stream;
  char piece[1 << 12];
  size_t got = 1;
  enum status status = zstd_stream_open(&stream, path);
  if (status != STATUS_OK) return false;
  while (status == STATUS_OK && got && content->length < CONTENT_BYTES) {
    status = zstd_stream_read(&stream, piece, sizeof piece, &got);
    if (status == STATUS_OK) status = text_add_bytes(content, piece, got);
  }
  zstd_stream_close(&stream);
  return status == STATUS_OK;
}

static bool read_source(struct text *content, const struct source *source) {
  struct source_cache cache = {0};
  char piece[1 << 12];
  enum status status = STATUS_OK;
  uint64_t at = 0;
  while (status == STATUS_OK && at < source->content_bytes && at < CONTENT_BYTES) {
    const uint64_t left = source->content_bytes - at;
    const uint64_t take = left < sizeof piece ? left : sizeof piece;
    status = source_read(source, &cache, piece, at, take);
    if (status == STATUS_OK) status = text_add_bytes(content, piece, take);
    at += take;
  }
  source_cache_free(&cache);
  return status == STATUS_OK;
}

static void compare(const char *path, const struct source *source) {
  struct text whole = {0}, pieces = {0};
  if (read_stream(&whole, path) && read_source(&pieces, source)) {
    const size_t shared = whole.length < pieces.length ? whole.length : pieces.length;
    fuzz_require(whole.length == pieces.length || shared >= CONTENT_BYTES,
                 "both ways give as much content");
    fuzz_require(!shared || !memcmp(whole.bytes, pieces.bytes, shared),
                 "both ways give the same content");
  }
  text_free(&whole);
  text_free(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const char *path = fuzz_file("x.zst", bytes, count);
  struct source source;
  struct blocks blocks = {0};
  struct text content = {0};
  if (source_open(&source, path, NULL) != STATUS_OK) {
    (void)read_stream(&content, path);
    text_free(&content);
    return 0;
  }
  compare(path, &source);
  fuzz_require(blocks_of_file(&blocks, path) == STATUS_OK, "a file that opens has blocks");
  fuzz_require(blocks_verify_file(&blocks, path) == STATUS_OK, "a file has its own hashes");
  blocks_free(&blocks);
  source_close(&source);
  return 0;
}
