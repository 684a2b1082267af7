/* Errors, arenas, bf16, text and files. */
#include "tests/common/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/dtype.h"
#include "pipeline/base/file.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

static enum status fails_inside(int value) {
  CHECK(value > 0, STATUS_DAMAGED, "value %d of 'x' is not above 0", value);
  return STATUS_OK;
}

static enum status passes_on(int value) {
  TRY(fails_inside(value));
  return STATUS_OK;
}

static void errors_carry_message_and_path(void **state) {
  (void)state;
  assert_status(STATUS_OK, passes_on(1));
  assert_status(STATUS_DAMAGED, passes_on(-3));
  assert_string_equal(error_message(), "value -3 of 'x' is not above 0");
  assert_non_null(strstr(error_trace(), "fails_inside"));
  assert_non_null(strstr(error_trace(), "passes_on"));
  assert_int_equal(error_exit_code(STATUS_DAMAGED), 65);
  assert_int_equal(error_status_of_exit(75), STATUS_STOPPED);
  error_clear();
  assert_string_equal(error_message(), "");
}

static size_t use(struct arena *arena) {
  arena_take(arena, 100);
  const size_t mark = arena_mark(arena);
  arena_take_zeroed(arena, 1000);
  arena_reset(arena, mark);
  arena_take(arena, 10);
  return arena->peak;
}

static void measured_and_real_arena_agree(void **state) {
  (void)state;
  struct arena measured, real;
  arena_measure(&measured, "step");
  const size_t peak = use(&measured);
  assert_null(arena_take(&measured, 1));
  assert_ok(arena_init(&real, "step", peak));
  assert_int_equal(use(&real), peak);
  assert_int_equal((uintptr_t)arena_take(&real, 1) % ARENA_ALIGNMENT, 0);
  arena_free(&real);
}

static void bf16_rounds_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const float value = bf16_to_float((bf16)bits);
    if (!isnan(value)) assert_int_equal(bf16_from_float(value), bits);
  }
  assert_true(bf16_to_float(bf16_from_float(1.00390625f)) == 1.0f); /* tie: to even */
  assert_true(bf16_to_float(bf16_from_float(1.01171875f)) == 1.015625f);
  assert_true(isnan(bf16_to_float(bf16_from_float(NAN))));
  assert_true(isinf(bf16_to_float(bf16_from_float(3.4e38f))));
}

static void names_and_sizes(void **state) {
  (void)state;
  const char *const names[] = {"steps", "batch", "learning_rate"};
  char out[24];
  assert_string_equal(text_nearest("stps", names, 3), "steps");
  assert_string_equal(text_nearest("learning-rate", names, 3), "learning_rate");
  assert_null(text_nearest("zzzzzz", names, 3));
  assert_string_equal(text_size(out, 1536), "1.50 KiB");
  assert_int_equal(text_valid_utf8("gr\xc3\xbc\xc3\x9f", 6), 6);
  assert_int_equal(text_valid_utf8("a\xed\xa0\x80", 4), 1); /* a surrogate */
  assert_int_equal(text_valid_utf8("a\xc0\x80", 3), 1);     /* overlong */
}

static void files_are_written_whole(void **state) {
  (void)state;
  struct text text = {0};
  assert_ok(file_make_folder("one/two"));
  assert_ok(file_make_folder("one/two"));
  assert_ok(file_write("one/two/three", "content", 7));
  assert_ok(file_read(&text, "one/two/three"));
  assert_string_equal(text.bytes, "content");
  assert_status(STATUS_MISMATCH, file_read(&text, "one/missing"));
  assert_status(STATUS_WRITE, file_make_folder("one/two/three/four"));
  assert_ok(file_remove("one"));
  assert_ok(file_remove("one"));
  assert_false(file_exists("one"));
  text_free(&text);
}

/* R-CKP-7: what a killed file_write leaves. */
static void temporary_files_are_swept(void **state) {
  (void)state;
  const char *const gone[] = {"swept/a.done.123.tmp", "swept/below/b.4.tmp"};
  const char *const stay[] = {"swept/a.done", "swept/a.tmp", "swept/below/7.tmp", "swept/a.1x.tmp",
                              "swept/a.1.tmp.zst"};
  assert_ok(file_sweep("swept"));
  assert_ok(file_make_folder("swept/below"));
  for (int i = 0; i < 2; i++) assert_ok(file_write(gone[i], "x", 1));
  for (int i = 0; i < 5; i++) assert_ok(file_write(stay[i], "x", 1));
  assert_ok(file_sweep("swept"));
  for (int i = 0; i < 2; i++) assert_false(file_exists(gone[i]));
  for (int i = 0; i < 5; i++) assert_true(file_exists(stay[i]));
}

static void streamed_hash_equals_whole(void **state) {
  (void)state;
  struct hash_stream *stream = hash_open();
  char a[HASH_HEX_BYTES], b[HASH_HEX_BYTES];
  hash_add(stream, "mill", 4);
  hash_add(stream, "race", 4);
  hash_to_hex(a, hash_result(stream));
  hash_to_hex(b, hash_bytes128("millrace", 8));
  assert_string_equal(a, b);
  hash_close(stream);
}

static void what_is_not_utf8_is_shown_as_replaced(void **state) {
  (void)state;
  struct text text = {0};
  assert_ok(text_add_readable(&text, "a\xff\xc3(\0z\xe2\x82", 8));
  assert_string_equal(text.bytes, "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbdz"
                                  "\xef\xbf\xbd\xef\xbf\xbd");
  text_clear(&text);
  assert_ok(text_add_readable(&text, "gr\xc3\xbc\xc3\x9f", 6));
  assert_string_equal(text.bytes, "gr\xc3\xbc\xc3\x9f");
  text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_carry_message_and_path),
      cmocka_unit_test(measured_and_real_arena_agree),
      cmocka_unit_test(bf16_rounds_to_nearest_even),
      cmocka_unit_test(names_and_sizes),
      cmocka_unit_test(files_are_written_whole),
      cmocka_unit_test(temporary_files_are_swept),
      cmocka_unit_test(streamed_hash_equals_whole),
      cmocka_unit_test(what_is_not_utf8_is_shown_as_replaced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
