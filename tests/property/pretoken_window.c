/* R-TOK-1: the boundaries that masks give are those of the pre-tokenisers one by one (which
 * property/bpe compares with PCRE2), for every instruction set of this CPU. */
#include "tests/common/tap.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/tokenize/pretoken.h"
#include "stages/tokenize/pretoken_window.h"
#include "tests/common/strings.h"

enum { STRINGS = 40000, SANITIZED_STRINGS = 4000 };

static const struct {
  const char *name;
  pretoken_function *one;
  pretoken_starts_function *many;
} families[] = {
    {"gpt2", pretoken_gpt2, pretoken_starts_gpt2},
    {"cl100k", pretoken_cl100k, pretoken_starts_cl100k},
    {"llama3", pretoken_llama3, pretoken_starts_llama3},
    {"o200k", pretoken_o200k, pretoken_starts_o200k},
};

/* What was compared: bytes, and those that masks decided. */
struct share {
  size_t bytes, decided;
};

/* Compares one window; returns where it stops deciding, or the end of the next pre-token. */
static size_t compare_window(int family, const struct pretoken_window *window, const char *bytes,
                             size_t count, struct share *share) {
  uint64_t starts = families[family].many(window, bytes, count);
  const size_t first = families[family].one(window->unicode, bytes, count);
  if (!starts) return first;
  size_t at = 0;
  for (; starts; starts &= starts - 1) {
    const size_t expected = at + families[family].one(window->unicode, bytes + at, count - at);
    const size_t found = (size_t)__builtin_ctzll(starts);
    if (found != expected)
      fail_msg("%s: '%.*s': a boundary at %zu, expected at %zu", families[family].name,
               (int)(count < 64 ? count : 64), bytes, found, expected);
    at = found;
  }
  share->decided += at;
  return at;
}

static void compare(int family, const struct pretoken_window *window, const struct text *text,
                    struct share *share) {
  for (size_t at = 0; at < text->length;)
    at += compare_window(family, window, text->bytes + at, text->length - at, share);
  share->bytes += text->length;
}

/* Few different characters, so that every short sequence of them comes up. */
static enum status make_dense(struct text *text, uint64_t index) {
  static const char *const symbols[] = {
      " ", " ", " ",  "a", "b",  "s",  "t", "l",        "L",        "B",        "S",
      "'", "'", "\n", "1", "2",  ".",  "/", "\xc3\xa4", "\xc3\x84", "\xcc\x81", "\xe4\xb8\x96",
      "(", "-", "\r", "r", "\t", "\v", "e", "D",        "\xff",     "\xc2\xa0", "\xe2\x80\x9c"};
  const struct random_stream draw = random_open(31, "dense", index, 0);
  const uint64_t length = 1 + random_below(draw, 0, 100);
  for (uint64_t i = 1; i <= length; i++)
    TRY(text_add(text, symbols[random_below(draw, i, sizeof symbols / sizeof *symbols)]));
  return STATUS_OK;
}

static void compare_strings(ascii_masks_function *masks) {
  const uint64_t strings = strcmp(BUILD_MODE, "asan") == 0 ? SANITIZED_STRINGS : STRINGS;
  struct unicode unicode;
  struct text text = {0};
  assert_ok(unicode_open(&unicode));
  const struct pretoken_window window = {&unicode, masks};
  for (int family = 0; family < 4; family++) {
    struct share general = {0}, dense = {0};
    for (uint64_t i = 0; i < strings; i++) {
      text_clear(&text);
      assert_ok(strings_make(&text, 41, i));
      compare(family, &window, &text, &general);
      text_clear(&text);
      assert_ok(make_dense(&text, i));
      compare(family, &window, &text, &dense);
    }
    assert_true(general.decided * 5 > general.bytes * 2);
    assert_true(dense.decided * 2 > dense.bytes);
  }
  unicode_close(&unicode);
  text_free(&text);
}

static void every_instruction_set(void **state) {
  (void)state;
  compare_strings(ascii_masks_plain);
  if (__builtin_cpu_supports("avx2")) compare_strings(ascii_masks_avx2);
  if (ascii_masks_best() == ascii_masks_avx512) compare_strings(ascii_masks_avx512);
}

/* English prose is cut by masks alone. */
static void prose(void **state) {
  (void)state;
  static const char text[] =
      "It's the 3rd of May, 1984; \"Don't\" said O'Brien -- he'd gone (by train).\n\n"
      "Four-and-twenty blackbirds,\nbaked in a pie: wasn't that a dainty dish?";
  struct unicode unicode;
  assert_ok(unicode_open(&unicode));
  const struct pretoken_window window = {&unicode, ascii_masks_best()};
  for (int family = 0; family < 4; family++)
    for (size_t at = 0; at < sizeof text - 1;) {
      struct share share = {0};
      at += compare_window(family, &window, text + at, sizeof text - 1 - at, &share);
      assert_true(share.decided > 0);
    }
  unicode_close(&unicode);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_instruction_set),
      cmocka_unit_test(prose),
  };
  return cmocka_run_group_tests_name("pretoken_window", tests, NULL, NULL);
}
