/* safetensors files: round trip, strictness, size (R-SFT-1, R-DAT-3). */
#define _XOPEN_SOURCE 700
#include "tests/common/tap.h"

#include "tests/common/put_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

static struct safetensors_pair pairs[] = {{"format", "test"}, {"quote", "a \"b\" \n"}};

static void write_example(const char *path, struct blocks *blocks) {
  struct safetensors_tensor tensors[] = {
      {.name = "scalar", .dtype = DTYPE_F64},
      {.name = "weights", .dtype = DTYPE_F32, .dimensions = 2, .shape = {3, 5}},
      {.name = "empty", .dtype = DTYPE_F32, .dimensions = 2, .shape = {0, 5}},
      {.name = "half", .dtype = DTYPE_BF16, .dimensions = 1, .shape = {4}},
      {.name = "bytes", .dtype = DTYPE_U8, .dimensions = 1, .shape = {3}}};
  const struct safetensors_layout layout = {
      .path = path, .tensors = tensors, .count = 5, .pairs = pairs, .pair_count = 2};
  struct safetensors_writer writer;
  const double scalar = 0.1;
  float weights[15];
  const bf16 half[4] = {0x3f80, 0xbf80, 0x4000, 0x0001};
  for (int i = 0; i < 15; i++) weights[i] = (float)i / 3.0f;
  assert_ok(safetensors_writer_open(&writer, &layout));
  assert_ok(safetensors_writer_append(&writer, &scalar, sizeof scalar));
  assert_ok(safetensors_writer_append(&writer, weights, 7));
  assert_ok(safetensors_writer_append(&writer, (char *)weights + 7, sizeof weights - 7));
  assert_ok(safetensors_writer_append(&writer, half, sizeof half));
  assert_ok(safetensors_writer_append(&writer, "xyz", 3));
  assert_status(STATUS_INTERNAL, safetensors_writer_append(&writer, "xyz", 1));
  assert_ok(safetensors_writer_close(&writer, blocks));
}

static void check_example(const char *path, const struct blocks *blocks) {
  struct safetensors file;
  struct source_cache cache = {0};
  float row[5], half[4];
  assert_ok(safetensors_open(&file, path, blocks));
  assert_int_equal(file.count, 5);
  assert_int_equal(file.header_bytes % 8, 0);
  assert_string_equal(safetensors_value(&file, "quote"), "a \"b\" \n");
  assert_null(safetensors_value(&file, "other"));
  const struct safetensors_tensor *weights = safetensors_find(&file, "weights");
  assert_int_equal(safetensors_row_bytes(weights), 20);
  assert_ok(safetensors_read(&file, &cache, weights, row,
                             (struct blocks_range){.offset = 40, .bytes = 20}));
  assert_true(row[4] == 14.0f / 3.0f);
  assert_ok(safetensors_read_floats(&file, &cache, safetensors_find(&file, "half"), half));
  assert_true(half[0] == 1.0f && half[1] == -1.0f && half[2] == 2.0f);
  assert_int_equal(safetensors_elements(safetensors_find(&file, "scalar")), 1);
  assert_int_equal(safetensors_elements(safetensors_find(&file, "empty")), 0);
  assert_ok(safetensors_verify(&file));
  source_cache_free(&cache);
  safetensors_close(&file);
}

static void tensors_come_back(void **state) {
  (void)state;
  struct blocks blocks;
  const char *const paths[] = {"a.safetensors", "a.safetensors.zst"};
  for (int i = 0; i < 2; i++) {
    write_example(paths[i], &blocks);
    check_example(paths[i], NULL);
    check_example(paths[i], &blocks);
    blocks_free(&blocks);
  }
}

static void wrong_requests_are_explained(void **state) {
  (void)state;
  struct safetensors file;
  const struct safetensors_tensor *found;
  struct safetensors_tensor wanted = {.name = "weight", .dtype = DTYPE_F32, .dimensions = 2};
  write_example("a.safetensors", NULL);
  assert_ok(safetensors_open(&file, "a.safetensors", NULL));
  assert_status(STATUS_MISMATCH, safetensors_require(&file, &found, &wanted));
  assert_non_null(strstr(error_message(), "nearest name is 'weights'"));
  wanted.name = "weights";
  wanted.shape[0] = -1;
  wanted.shape[1] = 6;
  assert_status(STATUS_MISMATCH, safetensors_require(&file, &found, &wanted));
  assert_non_null(strstr(error_message(), "is F32 [3, 5], expected F32 [-1, 6]"));
  wanted.shape[1] = 5;
  assert_ok(safetensors_require(&file, &found, &wanted));
  safetensors_close(&file);
  assert_status(STATUS_MISMATCH, safetensors_open(&file, "none.safetensors", NULL));
}

/* Writes a file of a given header and `data` zero bytes, and opens it. */
static enum status open_header(const char *header, size_t data) {
  struct text bytes = {0};
  struct safetensors file;
  const uint64_t length = strlen(header);
  char zeros[256] = {0};
  assert_ok(text_add_bytes(&bytes, &length, 8));
  assert_ok(text_add(&bytes, header));
  assert_ok(text_add_bytes(&bytes, zeros, data));
  put_file("h.safetensors", bytes.bytes, bytes.length);
  text_free(&bytes);
  const enum status status = safetensors_open(&file, "h.safetensors", NULL);
  if (status == STATUS_OK) safetensors_close(&file);
  return status;
}

#define T(name, shape, offsets)                                                                    \
  "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void sound_headers_are_taken(void **state) {
  (void)state;
  assert_ok(open_header("{}", 0));
  assert_ok(open_header("{}      ", 0));
  assert_ok(open_header("{" T("b", "[2]", "[4,6]") "," T("a", "[4]", "[0,4]") "}", 6));
  assert_ok(open_header("{" T("a", "[]", "[0,1]") "}", 1));
  assert_ok(open_header("{" T("a", "[0]", "[0,0]") "," T("b", "[1]", "[0,1]") "}", 1));
  assert_ok(open_header("{\"__metadata__\":{\"k\":\"v\"}}", 0));
}

static void unsound_headers_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *header, *message;
    size_t data;
  } cases[] = {
      {" {}", "does not begin with '{'", 0},
      {"{} x", "not sound JSON", 0},
      {"{", "not sound JSON", 0},
      {"{" T("a", "[1]", "[0,1]") "," T("a", "[1]", "[1,2]") "}", "duplicate", 2},
      {"{" T("a", "[4]", "[0,4]") "}", "truncated download", 3},
      {"{" T("a", "[4]", "[0,4]") "}", "after its last tensor", 5},
      {"{" T("a", "[4]", "[0,5]") "}", "type and shape need 4", 5},
      {"{" T("a", "[4]", "[1,5]") "}", "leaving a hole", 5},
      {"{" T("a", "[4]", "[0,4]") "," T("b", "[4]", "[3,7]") "}", "overlapping", 7},
      {"{" T("a", "[4]", "[4,0]") "}", "are not a range", 4},
      {"{" T("a", "[4]", "[-4,0]") "}", "are not a range", 4},
      {"{" T("a", "[-4]", "[0,4]") "}", "no size", 4},
      {"{" T("a", "[4.0]", "[0,4]") "}", "no size", 4},
      {"{" T("a", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", "9 dimensions", 1},
      {"{" T("a", "[4294967296,4294967296]", "[0,0]") "}", "overflows", 0},
      {"{" T("a", "[99999999999999999999]", "[0,0]") "}", "not sound JSON", 0},
      {"{\"a\":{\"dtype\":\"F7\",\"shape\":[],\"data_offsets\":[0,1]}}", "unknown type 'F7'", 1},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", "not an object of dtype", 0},
      {"{\"a\":{\"dtype\":8,\"shape\":[],\"data_offsets\":[0,1]}}", "no string 'dtype'", 1},
      {"{\"a\":[]}", "not an object of dtype", 0},
      {"{\"__metadata__\":{\"k\":1}}", "not a string", 0},
      {"{\"__metadata__\":[]}", "not an object", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (open_header(cases[i].header, cases[i].data) != STATUS_DAMAGED ||
        !strstr(error_message(), cases[i].message))
      fail_msg("case %zu '%s' gave: %s", i, cases[i].header, error_message());
  }
}

static void other_files_are_recognised(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:1", "LFS pointer"},
      {"<!DOCTYPE html><html>not found</html>", "HTML"},
      {"<html><body>not found</body></html>", "HTML"},
      {"abc", "truncated download"},
      {"\x40\0\0\0\0\0\0\0{\"a\":", "truncated download"}};
  struct safetensors file;
  for (size_t i = 0; i < 5; i++) {
    put_file("o.safetensors", cases[i][0], i == 4 ? 13 : strlen(cases[i][0]));
    assert_status(STATUS_DAMAGED, safetensors_open(&file, "o.safetensors", NULL));
    assert_non_null(strstr(error_message(), cases[i][1]));
  }
}

static void damaged_files_are_refused(void **state) {
  (void)state;
  struct text bytes = {0};
  struct blocks blocks;
  struct safetensors file;
  write_example("a.safetensors", &blocks);
  assert_ok(file_read(&bytes, "a.safetensors"));
  for (size_t at = 0; at < bytes.length; at++) {
    put_file("d.safetensors", bytes.bytes, at);
    assert_status(STATUS_DAMAGED, safetensors_open(&file, "d.safetensors", NULL));
    bytes.bytes[at] ^= 4;
    put_file("d.safetensors", bytes.bytes, bytes.length);
    assert_status(STATUS_DAMAGED, blocks_verify_file(&blocks, "d.safetensors"));
    if (at >= blocks.first_bytes) { /* the data hash finds it without a manifest */
      assert_ok(safetensors_open(&file, "d.safetensors", NULL));
      assert_status(STATUS_DAMAGED, safetensors_verify(&file));
      safetensors_close(&file);
    } else {
      assert_status(STATUS_DAMAGED, safetensors_open(&file, "d.safetensors", &blocks));
    }
    bytes.bytes[at] ^= 4;
  }
  blocks_free(&blocks);
  text_free(&bytes);
}

static enum status compose(struct safetensors_tensor *tensors, int64_t count) {
  struct text header = {0};
  size_t at;
  const struct safetensors_layout layout = {.path = "x", .tensors = tensors, .count = count};
  const enum status status = safetensors_writer_compose(&header, &at, &layout);
  text_free(&header);
  return status;
}

static void the_writer_refuses_what_the_reader_would(void **state) {
  (void)state;
  struct safetensors_tensor twins[] = {{.name = "a", .dtype = DTYPE_U8},
                                       {.name = "a", .dtype = DTYPE_U8}};
  struct safetensors_tensor crooked[] = {{.name = "a", .dtype = DTYPE_U8},
                                         {.name = "b", .dtype = DTYPE_F32}};
  struct safetensors_tensor huge[] = {
      {.name = "a", .dtype = DTYPE_F32, .dimensions = 2, .shape = {INT64_MAX / 8, 4}}};
  struct safetensors_tensor invalid[] = {{.name = "\xff", .dtype = DTYPE_U8}};
  struct safetensors_tensor reserved[] = {{.name = "__metadata__", .dtype = DTYPE_U8}};
  assert_status(STATUS_MISMATCH, compose(twins, 2));
  assert_status(STATUS_MISMATCH, compose(crooked, 2));
  assert_status(STATUS_MISMATCH, compose(huge, 1));
  assert_status(STATUS_MISMATCH, compose(invalid, 1));
  assert_status(STATUS_MISMATCH, compose(reserved, 1));
}

/* A sparse file of 6 GiB: rows beyond 4 GiB are read at their place. */
static void large_files_use_64_bits(void **state) {
  (void)state;
  enum { ROW_BYTES = 4096 };
  const int64_t rows = 3LL << 19;
  struct safetensors_tensor tensor = {
      .name = "big", .dtype = DTYPE_F32, .dimensions = 2, .shape = {rows, ROW_BYTES / 4}};
  const struct safetensors_layout layout = {.path = "big", .tensors = &tensor, .count = 1};
  struct text header = {0};
  size_t hash_at;
  struct safetensors file;
  float value = 7.0f, row[ROW_BYTES / 4];
  assert_ok(safetensors_writer_compose(&header, &hash_at, &layout));
  const int fd = open("big", O_RDWR | O_CREAT, 0666);
  assert_int_equal(pwrite(fd, header.bytes, header.length, 0), (ssize_t)header.length);
  const off_t end = (off_t)header.length + rows * ROW_BYTES;
  assert_int_equal(pwrite(fd, &value, 4, end - 4), 4);
  close(fd);
  assert_ok(safetensors_open(&file, "big", NULL));
  const struct blocks_range last = {.offset = (uint64_t)(rows - 1) * ROW_BYTES, .bytes = ROW_BYTES};
  assert_ok(safetensors_read(&file, NULL, &file.tensors[0], row, last));
  assert_true(row[ROW_BYTES / 4 - 1] == 7.0f && row[0] == 0.0f);
  safetensors_close(&file);
  text_free(&header);
  unlink("big");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_come_back),
      cmocka_unit_test(wrong_requests_are_explained),
      cmocka_unit_test(sound_headers_are_taken),
      cmocka_unit_test(unsound_headers_are_refused),
      cmocka_unit_test(other_files_are_recognised),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(the_writer_refuses_what_the_reader_would),
      cmocka_unit_test(large_files_use_64_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
