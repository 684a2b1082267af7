/* The seekable container and its checked random access (R-ZST-1). */
#include "tests/common/tap.h"

#include "tests/common/put_file.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/sink.h"
#include "pipeline/artefact/source.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "pipeline/base/text.h"

/* Bytes that compress a little. */
static void fill(unsigned char *bytes, size_t count) {
  const struct random_stream stream = random_open(1, "test", 0, 0);
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(random_bits(stream, i) & 0x1f);
}

static void write_file(const char *path, const unsigned char *bytes, size_t count,
                       struct blocks *blocks) {
  struct sink sink;
  const struct sink_options options = {.frame_bytes = count % 2 ? 1 << 17 : 0};
  assert_ok(sink_open(&sink, path, options, "head....", 8));
  for (size_t at = 0; at < count;) {
    const size_t take = count - at < 700001 ? count - at : 700001;
    assert_ok(sink_write(&sink, bytes + at, take));
    at += take;
  }
  assert_ok(sink_flush(&sink));
  assert_ok(sink_rewrite_head(&sink, "HEAD++++", 8));
  assert_ok(sink_close(&sink, blocks));
}

/* Reads the whole content and pieces of it. */
static enum status read_all(const char *path, const struct blocks *blocks,
                            const unsigned char *expected, size_t count) {
  struct source source;
  struct source_cache cache = {0};
  TRY(source_open(&source, path, blocks));
  unsigned char *bytes = malloc(count + 8);
  enum status status = source.content_bytes == count + 8 ? STATUS_OK : STATUS_DAMAGED;
  if (status == STATUS_OK) status = source_read(&source, &cache, bytes, 0, count + 8);
  if (status == STATUS_OK &&
      (memcmp(bytes, "HEAD++++", 8) != 0 || (count && memcmp(bytes + 8, expected, count) != 0)))
    status = STATUS_INTERNAL; /* wrong bytes given as right ones */
  free(bytes);
  source_cache_free(&cache);
  source_close(&source);
  return status;
}

static void content_comes_back(void **state) {
  (void)state;
  const size_t sizes[] = {0, 1, 1000, 1 << 20, (1 << 20) + 1, 3500000};
  const char *const paths[] = {"a.bin", "a.zst"};
  unsigned char *bytes = malloc(3500000);
  fill(bytes, 3500000);
  for (size_t i = 0; i < 6; i++) {
    for (int p = 0; p < 2; p++) {
      struct blocks blocks, again;
      write_file(paths[p], bytes, sizes[i], &blocks);
      assert_ok(read_all(paths[p], &blocks, bytes, sizes[i]));
      assert_ok(read_all(paths[p], NULL, bytes, sizes[i]));
      assert_ok(blocks_verify_file(&blocks, paths[p]));
      assert_ok(blocks_of_file(&again, paths[p]));
      assert_ok(blocks_verify_file(&again, paths[p]));
      if (p == 1) assert_int_equal(blocks_digest(&blocks), blocks_digest(&again));
      blocks_free(&blocks);
      blocks_free(&again);
    }
  }
  free(bytes);
}

static void any_place_can_be_read(void **state) {
  (void)state;
  enum { COUNT = 2500000, LONGEST = 1500000 };
  unsigned char *bytes = malloc(COUNT), *got = malloc(LONGEST);
  struct blocks blocks;
  struct source source;
  struct source_cache cache = {0};
  fill(bytes, COUNT);
  write_file("a.zst", bytes, COUNT, &blocks);
  assert_ok(source_open(&source, "a.zst", &blocks));
  const struct random_stream stream = random_open(2, "test", 0, 0);
  for (uint64_t i = 0; i < 60; i++) {
    const uint64_t at = random_below(stream, 2 * i, COUNT);
    uint64_t length = random_below(stream, 2 * i + 1, i % 7 ? 1000 : LONGEST);
    if (length > COUNT - at) length = COUNT - at;
    assert_ok(source_read(&source, &cache, got, at + 8, length));
    assert_memory_equal(got, bytes + at, length);
  }
  assert_status(STATUS_DAMAGED, source_read(&source, &cache, got, COUNT, 9));
  source_cache_free(&cache);
  source_close(&source);
  blocks_free(&blocks);
  free(bytes);
  free(got);
}

static void zstd_reads_what_we_write(void **state) {
  (void)state;
  enum { COUNT = 1200000 };
  if (system("zstd --version >/dev/null 2>&1") != 0) skip();
  unsigned char *bytes = malloc(COUNT);
  struct text plain = {0};
  fill(bytes, COUNT);
  write_file("a.zst", bytes, COUNT, NULL);
  assert_int_equal(system("zstd -q -d -f a.zst -o a.plain && zstd -q -t a.zst"), 0);
  assert_ok(file_read(&plain, "a.plain"));
  assert_int_equal(plain.length, COUNT + 8);
  assert_memory_equal(plain.bytes + 8, bytes, COUNT);
  text_free(&plain);
  free(bytes);
}

/* Every prefix, and the file with each byte flipped: refused, or (a flip without a hash list that
 * changes no content) read right; never read wrong. */
static void damage_is_found(void **state) {
  (void)state;
  enum { COUNT = 300 };
  unsigned char bytes[COUNT];
  struct text file = {0};
  struct blocks blocks;
  fill(bytes, COUNT);
  write_file("a.zst", bytes, COUNT, &blocks);
  assert_ok(file_read(&file, "a.zst"));
  for (size_t length = 0; length < file.length; length++) {
    put_file("b.zst", file.bytes, length);
    assert_status(STATUS_DAMAGED, read_all("b.zst", NULL, bytes, COUNT));
    assert_status(STATUS_DAMAGED, read_all("b.zst", &blocks, bytes, COUNT));
  }
  for (size_t at = 0; at < file.length; at++) {
    file.bytes[at] ^= (char)(1 << at % 8);
    put_file("b.zst", file.bytes, file.length);
    assert_status(STATUS_DAMAGED, read_all("b.zst", &blocks, bytes, COUNT));
    assert_int_not_equal(STATUS_INTERNAL, read_all("b.zst", NULL, bytes, COUNT));
    file.bytes[at] ^= (char)(1 << at % 8);
  }
  text_free(&file);
  blocks_free(&blocks);
}

static void damage_names_the_block(void **state) {
  (void)state;
  enum { COUNT = 3 << 20 };
  unsigned char *bytes = malloc(COUNT);
  struct text file = {0};
  struct blocks blocks;
  fill(bytes, COUNT);
  write_file("a.bin", bytes, COUNT, &blocks);
  assert_ok(file_read(&file, "a.bin"));
  file.bytes[8 + (2 << 20) + 5] ^= 1;
  put_file("a.bin", file.bytes, file.length);
  assert_status(STATUS_DAMAGED, blocks_verify_file(&blocks, "a.bin"));
  assert_non_null(strstr(error_message(), "'a.bin' is damaged in block 3"));
  assert_status(STATUS_DAMAGED, read_all("a.bin", &blocks, bytes, COUNT));
  assert_non_null(strstr(error_message(), "block 3"));
  text_free(&file);
  blocks_free(&blocks);
  free(bytes);
}

static void put_table(struct text *file, const uint32_t *entries, uint32_t count, int width,
                      unsigned char flags) {
  const uint32_t head[2] = {0x184D2A5Eu, count * (uint32_t)width * 4 + 9}, magic = 0x8F92EAB1u;
  assert_ok(text_add_bytes(file, head, sizeof head));
  assert_ok(text_add_bytes(file, entries, (size_t)count * (size_t)width * 4));
  assert_ok(text_add_bytes(file, &count, 4));
  assert_ok(text_add_bytes(file, &flags, 1));
  assert_ok(text_add_bytes(file, &magic, 4));
}

static enum status open_file(const struct text *file, struct source *source) {
  put_file("f.zst", file->bytes, file->length);
  return source_open(source, "f.zst", NULL);
}

/* Files of other writers: tables without sums are taken; what does not add up is refused by name.
 */
static void foreign_files(void **state) {
  (void)state;
  struct seekable_frame frames[2] = {{0}};
  struct text body = {0}, file = {0};
  struct source source;
  struct source_cache cache = {0};
  char content[9] = "";
  assert_ok(seekable_store(&body, &frames[0], "abcd", 4));
  assert_ok(seekable_store(&body, &frames[1], "efgh", 4));
  const struct {
    uint32_t entries[4];
    unsigned char flags;
    const char *reason; /* NULL: it is read */
  } tables[] = {{{20, 4, 20, 4}, 0, NULL},
                {{20, 4, 20, 4}, 4, "footer is damaged"},
                {{20, 4, 21, 4}, 0, "end at byte 41"},
                {{20, 4, 20, 0x7fffffff}, 0, "frame 1 holds 2147483647 bytes, the limit is"},
                {{40, 4, 0, 4}, 0, NULL}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    text_clear(&file);
    assert_ok(text_add_bytes(&file, body.bytes, body.length));
    put_table(&file, tables[i].entries, 2, 2, tables[i].flags);
    const enum status status = open_file(&file, &source);
    assert_int_equal(status, tables[i].reason ? STATUS_DAMAGED : STATUS_OK);
    if (status != STATUS_OK) assert_non_null(strstr(error_message(), tables[i].reason));
    if (status != STATUS_OK) continue;
    const enum status read = source_read(&source, &cache, content, 0, 8);
    assert_int_equal(read, i ? STATUS_DAMAGED : STATUS_OK); /* the last table lies about frames */
    if (!i) assert_string_equal(content, "abcdefgh");
    source_cache_free(&cache);
    source_close(&source);
  }
  assert_status(STATUS_DAMAGED, open_file(&body, &source));
  assert_non_null(strstr(error_message(), "does not end with a zstd seek table"));
  text_free(&body);
  text_free(&file);
}

static void dictionaries_are_named(void **state) {
  (void)state;
  static const uint32_t full[2] = {10, 5};
  struct text file = {0};
  struct source source;
  struct source_cache cache = {0};
  char content[5];
  assert_ok(text_add_bytes(&file, "\x28\xb5\x2f\xfd\x01\x00\x07\x01\x00\x00", 10));
  put_table(&file, full, 1, 2, 0);
  assert_ok(open_file(&file, &source));
  assert_status(STATUS_MISMATCH, source_read(&source, &cache, content, 0, 5));
  assert_non_null(strstr(error_message(), "frame 0 needs the zstd dictionary 7"));
  source_cache_free(&cache);
  source_close(&source);
  text_free(&file);
}

/* A table that calls a frame empty which is not would hide its content (found by tests/fuzz). */
static void frames_called_empty_are_empty(void **state) {
  (void)state;
  struct seekable_frame frames[2] = {{0}};
  struct text file = {0};
  struct source source;
  for (int lie = 0; lie < 2; lie++) {
    text_clear(&file);
    assert_ok(seekable_store(&file, &frames[0], "head", 4));
    assert_ok(seekable_store(&file, &frames[1], "tail", lie ? 4 : 0));
    frames[1].content_bytes = 0;
    assert_ok(seekable_add_table(&file, frames, 2));
    put_file("a.zst", file.bytes, file.length);
    assert_status(lie ? STATUS_DAMAGED : STATUS_OK, source_open(&source, "a.zst", NULL));
    if (lie) assert_non_null(strstr(error_message(), "frame 1 (byte 20) is not empty"));
    if (!lie) source_close(&source);
  }
  text_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(content_comes_back),
      cmocka_unit_test(any_place_can_be_read),
      cmocka_unit_test(zstd_reads_what_we_write),
      cmocka_unit_test(damage_is_found),
      cmocka_unit_test(damage_names_the_block),
      cmocka_unit_test(frames_called_empty_are_empty),
      cmocka_unit_test(foreign_files),
      cmocka_unit_test(dictionaries_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
