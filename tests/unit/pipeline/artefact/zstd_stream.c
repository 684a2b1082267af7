/* Streams of frames and skippable frames, read to their real end (R-ZST-1). */
#include "tests/common/tap.h"

#include "tests/common/put_file.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "pipeline/artefact/zstd_stream.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

static void add_frame(struct text *out, const char *content) {
  char frame[4096];
  ZSTD_CCtx *context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const size_t size = ZSTD_compress2(context, frame, sizeof frame, content, strlen(content));
  ZSTD_freeCCtx(context);
  assert_false(ZSTD_isError(size));
  assert_ok(text_add_bytes(out, frame, size));
}

static void add_skippable(struct text *out, const char *content) {
  const uint32_t head[2] = {0x184D2A53u, (uint32_t)strlen(content)};
  assert_ok(text_add_bytes(out, head, sizeof head));
  assert_ok(text_add(out, content));
}

/* Reads a stream in pieces of `step` bytes. */
static enum status read_stream(struct text *out, const struct text *file, size_t step) {
  struct zstd_stream stream;
  char piece[4096];
  size_t got = 0;
  text_clear(out);
  put_file("s.zst", file->bytes, file->length);
  TRY(zstd_stream_open(&stream, "s.zst"));
  enum status status = zstd_stream_read(&stream, piece, step, &got);
  while (status == STATUS_OK && got) {
    assert_ok(text_add_bytes(out, piece, got));
    status = zstd_stream_read(&stream, piece, step, &got);
  }
  zstd_stream_close(&stream);
  return status;
}

static void make(struct text *file) {
  add_skippable(file, "notes");
  add_frame(file, "one, ");
  add_frame(file, "");
  add_skippable(file, "");
  add_frame(file, "two two two two two two two, ");
  add_frame(file, "three");
}

static void frames_follow_one_another(void **state) {
  (void)state;
  struct text file = {0}, out = {0};
  make(&file);
  for (size_t step = 1; step < 40; step++) {
    assert_ok(read_stream(&out, &file, step));
    assert_string_equal(out.bytes, "one, two two two two two two two, three");
  }
  text_clear(&file);
  add_frame(&file, "");
  assert_ok(read_stream(&out, &file, 10));
  assert_int_equal(out.length, 0);
  text_free(&file);
  text_free(&out);
}

/* A prefix is refused, unless it ends at the border of a frame: then it is a whole, shorter
 * stream, which only an expected size from elsewhere can tell. */
static void prefixes_are_refused(void **state) {
  (void)state;
  struct text file = {0}, out = {0}, prefix = {0}, part = {0};
  make(&file);
  size_t whole = 0;
  for (size_t length = 0; length < file.length; length++) {
    text_clear(&prefix);
    assert_ok(text_add_bytes(&prefix, file.bytes, length));
    const enum status status = read_stream(&out, &prefix, 100);
    if (status == STATUS_OK) {
      whole++;
      continue;
    }
    assert_int_equal(status, STATUS_DAMAGED);
    text_clear(&part);
    assert_ok(text_format(&part, "truncated at byte %zu", length));
    assert_non_null(strstr(error_message(), part.bytes));
  }
  assert_int_equal(whole, 5); /* after each part but the last */
  text_free(&file);
  text_free(&prefix);
  text_free(&out);
  text_free(&part);
}

static void flipped_bytes_never_give_wrong_content(void **state) {
  (void)state;
  struct text file = {0}, out = {0};
  make(&file);
  for (size_t at = 0; at < file.length; at++) {
    for (int bit = 0; bit < 8; bit++) {
      file.bytes[at] ^= (char)(1 << bit);
      const enum status status = read_stream(&out, &file, 100);
      if (status == STATUS_OK) {
        const bool same =
            out.length && !strcmp(out.bytes, "one, two two two two two two two, three");
        const bool frame_lost = at < 13 + 4; /* the magic of a skippable frame has 16 forms */
        if (!same && !frame_lost) fail_msg("bit %d of byte %zu changes the content", bit, at);
      }
      file.bytes[at] ^= (char)(1 << bit);
    }
  }
  text_free(&file);
  text_free(&out);
}

static void dictionaries_and_windows_are_named(void **state) {
  (void)state;
  struct text file = {0}, out = {0};
  /* magic, descriptor: dictionary id of 1 byte, window 2^10, id 7, an empty raw block */
  assert_ok(text_add_bytes(&file, "\x28\xb5\x2f\xfd\x01\x00\x07\x01\x00\x00", 10));
  assert_status(STATUS_MISMATCH, read_stream(&out, &file, 10));
  assert_non_null(strstr(error_message(), "dictionary 7"));
  text_clear(&file);
  assert_ok(text_add_bytes(&file, "\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9)); /* window 2^30 */
  assert_status(STATUS_MISMATCH, read_stream(&out, &file, 10));
  assert_non_null(strstr(error_message(), "window"));
  text_free(&file);
  text_free(&out);
}

static void pzstd_and_cut_borders(void **state) {
  (void)state;
  struct text file = {0}, out = {0};
  if (system("zstd --version >/dev/null 2>&1") != 0) skip();
  assert_int_equal(system("seq 1 200000 >numbers && zstd -q -T2 -f numbers -o numbers.zst && "
                          "cat numbers.zst numbers.zst >twice.zst"),
                   0);
  assert_ok(file_read(&file, "twice.zst"));
  assert_ok(read_stream(&out, &file, 4096));
  assert_int_equal(out.length, 2 * 1288895);
  if (system("pzstd -q -p 2 -f numbers -o parallel.zst 2>/dev/null") == 0) { /* skippable frames */
    text_clear(&file);
    assert_ok(file_read(&file, "parallel.zst"));
    assert_ok(read_stream(&out, &file, 4096));
    assert_int_equal(out.length, 1288895);
  }
  text_free(&file);
  text_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frames_follow_one_another),
      cmocka_unit_test(prefixes_are_refused),
      cmocka_unit_test(flipped_bytes_never_give_wrong_content),
      cmocka_unit_test(dictionaries_and_windows_are_named),
      cmocka_unit_test(pzstd_and_cut_borders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
