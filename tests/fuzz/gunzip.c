/* gzip streams: the content does not depend on how the bytes arrive, and begins with what zlib's
 * own reader of files gives (which takes what follows zeros behind a member for no member). */
#include "tests/common/fuzz.h"

#include <string.h>
#include <zlib.h>

#include "stages/tokenize/gunzip.h"

enum { CONTENT_BYTES = 8 << 20 };

static void add(const char *content, int members) {
  struct text file = {0};
  unsigned char out[512];
  for (int i = 0; i < members; i++) {
    z_stream stream = {.next_in = (z_const Bytef *)content,
                       .avail_in = (uInt)strlen(content),
                       .next_out = out,
                       .avail_out = sizeof out};
    fuzz_require(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
                     deflate(&stream, Z_FINISH) == Z_STREAM_END,
                 "a seed can be made");
    fuzz_require(text_add_bytes(&file, out, stream.total_out) == STATUS_OK, "memory suffices");
    deflateEnd(&stream);
  }
  fuzz_seed(file.bytes, file.length);
  text_free(&file);
}

void fuzz_make_seeds(void) {
  add("one one one one one one", 1);
  add("two", 3);
  add("", 1);
}

struct feed {
  struct fuzz_input input;
  size_t step;
};

static enum status next(void *state, const char **bytes, size_t *count) {
  struct feed *feed = state;
  *bytes = (const char *)feed->input.bytes;
  *count = feed->input.count < feed->step ? feed->input.count : feed->step;
  feed->input.bytes += *count;
  feed->input.count -= *count;
  return STATUS_OK;
}

static enum status read_all(struct text *content, struct fuzz_input input, size_t step) {
  struct gunzip *gunzip;
  struct feed feed = {input, step};
  const char *bytes;
  size_t count = 1;
  TRY(gunzip_open(&gunzip, (struct gunzip_source){next, &feed}));
  enum status status = STATUS_OK;
  while (status == STATUS_OK && count && content->length < CONTENT_BYTES) {
    status = gunzip_next(gunzip, &bytes, &count);
    if (status == STATUS_OK) status = text_add_bytes(content, bytes, count);
  }
  gunzip_close(gunzip);
  return status;
}

/* Every member in turn, by zlib alone. */
static void read_members(struct text *content, struct fuzz_input input) {
  char piece[1 << 12];
  fuzz_require(text_add(content, "") == STATUS_OK, "memory suffices");
  gzFile file = gzopen(fuzz_file("x.gz", input.bytes, input.count), "rb");
  fuzz_require(file != NULL, "zlib opens the file");
  for (int got; content->length < CONTENT_BYTES && (got = gzread(file, piece, sizeof piece)) > 0;)
    fuzz_require(text_add_bytes(content, piece, (size_t)got) == STATUS_OK, "memory suffices");
  gzclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const struct fuzz_input input = {bytes, count};
  struct text whole = {0}, pieces = {0}, members = {0};
  if (!gunzip_is_gzip((const char *)bytes, count)) return 0;
  const enum status first = read_all(&whole, input, count);
  const enum status second = read_all(&pieces, input, 1 + count % 7);
  fuzz_require(first == second, "both are read, or both refused");
  if (first == STATUS_OK && whole.length < CONTENT_BYTES) {
    read_members(&members, input);
    fuzz_require(whole.length == pieces.length && whole.length >= members.length &&
                     !memcmp(whole.bytes, pieces.bytes, whole.length) &&
                     !memcmp(whole.bytes, members.bytes, members.length),
                 "the content is the same");
  }
  text_free(&whole);
  text_free(&pieces);
  text_free(&members);
  return 0;
}
