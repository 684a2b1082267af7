/* R-TOK-1: our own unigram path gives the ids of libsentencepiece, for a model trained here and for
 * T5's (when its file is there), on generated strings and on long documents. R-TOK-3: linear time.
 */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "stages/tokenize/sentencepiece.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/strings.h"

enum { STRINGS = 20000, SANITIZED_STRINGS = 2000, TRAINING_STRINGS = 600 };

/* Sanitizers are slow. */
static uint64_t usual_strings(void) {
  return strcmp(BUILD_MODE, "asan") == 0 ? SANITIZED_STRINGS : STRINGS;
}

struct pair {
  struct tokenizer *own, *library;
  struct tokens a, b;
};

static void open_pair(struct pair *pair, const char *path) {
  char spec[1200];
  *pair = (struct pair){0};
  snprintf(spec, sizeof spec, "unigram:%s", path);
  assert_ok(tokenizer_open(&pair->own, spec));
  assert_null(tokenizer_facts_of(pair->own)->fallback);
  snprintf(spec, sizeof spec, "sentencepiece:%s", path);
  assert_ok(tokenizer_open(&pair->library, spec));
  assert_memory_equal(&tokenizer_facts_of(pair->own)->hash,
                      &tokenizer_facts_of(pair->library)->hash, sizeof(struct hash128));
}

static void close_pair(struct pair *pair) {
  tokenizer_close(pair->own);
  tokenizer_close(pair->library);
  tokens_free(&pair->a);
  tokens_free(&pair->b);
}

static bool agree(struct pair *pair, const char *bytes, size_t count) {
  pair->a.count = pair->b.count = 0;
  assert_ok(tokenizer_encode(pair->own, &pair->a, bytes, count));
  assert_ok(tokenizer_encode(pair->library, &pair->b, bytes, count));
  return pair->a.count == pair->b.count &&
         (!pair->a.count || memcmp(pair->a.ids, pair->b.ids, pair->a.count * sizeof(int32_t)) == 0);
}

/* Decoding gives the library's text, for the ids of a text and for any others. */
static bool decode_alike(struct pair *pair, const int32_t *ids, size_t count) {
  struct text own = {0}, library = {0};
  assert_ok(tokenizer_decode(pair->own, &own, ids, count));
  assert_ok(tokenizer_decode(pair->library, &library, ids, count));
  const bool alike =
      own.length == library.length && memcmp(own.bytes, library.bytes, own.length) == 0;
  text_free(&own);
  text_free(&library);
  return alike;
}

static void compare_decoding(struct pair *pair) {
  int32_t ids[24];
  for (uint64_t i = 0; i < 4000; i++) {
    const struct random_stream draw = random_open(8, "ids", i, 0);
    for (uint64_t j = 0; j < 24; j++)
      ids[j] = (int32_t)random_below(
          draw, j, j % 3 ? (uint64_t)tokenizer_facts_of(pair->own)->vocabulary_size : 8);
    assert_true(decode_alike(pair, ids, i % 25));
  }
}

static void show(const struct text *text, uint64_t index) {
  print_message("# string %llu:", (unsigned long long)index);
  for (size_t i = 0; i < text->length && i < 200; i++)
    print_message(" %02x", (unsigned char)text->bytes[i]);
  print_message("\n");
}

static void compare_strings(struct pair *pair, uint64_t seed, uint64_t count) {
  struct text text = {0};
  for (uint64_t i = 0; i < count; i++) {
    text_clear(&text);
    assert_ok(strings_make(&text, seed, i));
    if (agree(pair, text.bytes, text.length) && decode_alike(pair, pair->a.ids, pair->a.count))
      continue;
    show(&text, i);
    fail();
  }
  text_free(&text);
}

/* One document of many strings: the running sum of scores grows large, and rounding decides. */
static void compare_long(struct pair *pair, const char *joint) {
  struct text text = {0};
  for (uint64_t i = 0; i < usual_strings() / 5; i++) {
    assert_ok(strings_make(&text, 77, i));
    assert_ok(text_add(&text, joint));
  }
  assert_true(agree(pair, text.bytes, text.length));
  text_free(&text);
}

static void compare_all(struct pair *pair, uint64_t strings) {
  assert_true(agree(pair, "", 0));
  assert_true(agree(pair, " \n\t ", 4));
  assert_true(agree(pair, "\xe2\x96\x81", 3));
  assert_true(agree(pair, "a \xe2\x96\x81\xe2\x96\x81 b \xe2\x96\x81", 15));
  assert_true(agree(pair, "a\0b \0", 5));
  compare_strings(pair, 5, strings);
  compare_strings(pair, 5, 500); /* again, from the cache */
  compare_decoding(pair);
  compare_long(pair, " ");
  compare_long(pair, "");
}

static bool next_string(void *state, const char **bytes, size_t *count) {
  static struct text text;
  uint64_t *index = state;
  text_clear(&text);
  if (*index == TRAINING_STRINGS || strings_make(&text, 3, (*index)++) != STATUS_OK) {
    text_free(&text);
    return false;
  }
  *bytes = text.bytes;
  *count = text.length;
  return true;
}

static void trained_model(void **state) {
  (void)state;
  struct text model = {0};
  uint64_t index = 0;
  struct pair pair;
  assert_ok(sentencepiece_train(&model, (struct sentences){next_string, &index}, 4500));
  assert_ok(file_write("trained.model", model.bytes, model.length));
  open_pair(&pair, "trained.model");
  compare_all(&pair, usual_strings());
  close_pair(&pair);
  text_free(&model);
}

/* Models of other types are left to the library, and the facts say so. */
static void other_types(void **state) {
  (void)state;
  static const char *const types[] = {"\x12\x02\x18\x02", "\x12\x02\x18\x03", "\x12\x02\x18\x04"};
  struct text model = {0};
  struct tokenizer *library;
  assert_ok(file_read(&model, "trained.model"));
  for (int type = 0; type < 3; type++) {
    struct tokens ids = {0};
    assert_ok(text_add(&model, types[type])); /* model_type of the trainer: BPE, word, character */
    assert_ok(file_write("other.model", model.bytes, model.length));
    assert_ok(tokenizer_open(&library, "unigram:other.model"));
    assert_string_equal(tokenizer_facts_of(library)->fallback, "it is not a unigram model");
    assert_ok(tokenizer_encode(library, &ids, "the words", 9));
    assert_true(ids.count > 0);
    tokens_free(&ids);
    tokenizer_close(library);
  }
  text_free(&model);
}

static void t5_model(void **state) {
  (void)state;
  char path[1024];
  struct pair pair;
  const char *root = getenv("ROOT"), *strings = getenv("STRINGS");
  snprintf(path, sizeof path, "%s/../shared/data/tokenizers/t5-spiece.model", root ? root : ".");
  if (!file_exists(path)) skip();
  open_pair(&pair, path);
  compare_all(&pair, strings ? (uint64_t)strtoull(strings, NULL, 10) : usual_strings());
  close_pair(&pair);
}

static double seconds(struct tokenizer *tokenizer, struct tokens *ids, const struct text *text) {
  struct timespec begin, end;
  ids->count = 0;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  assert_ok(tokenizer_encode(tokenizer, ids, text->bytes, text->length));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static void make_worst(struct text *text, int kind, size_t count) {
  static const char *const units[] = {" ", "x", "ab", "\xe4\xb8\x96", "\xff", "a\xcc\x81"};
  text_clear(text);
  while (text->length < count) assert_ok(text_add(text, units[kind]));
}

/* The best of three runs, after one that is not counted. */
static double best_seconds(struct tokenizer *tokenizer, struct tokens *ids,
                           const struct text *text) {
  seconds(tokenizer, ids, text);
  double best = seconds(tokenizer, ids, text);
  for (int i = 0; i < 2; i++) {
    const double again = seconds(tokenizer, ids, text);
    best = again < best ? again : best;
  }
  return best;
}

/* Eight times the text takes about eight times as long, not 64. */
static void worst_cases(void **state) {
  (void)state;
  struct tokenizer *own;
  struct tokens ids = {0};
  struct text text = {0};
  assert_ok(tokenizer_open(&own, "unigram:trained.model"));
  for (int kind = 0; kind < 6; kind++) {
    make_worst(&text, kind, 100000);
    const double small = best_seconds(own, &ids, &text);
    make_worst(&text, kind, 800000);
    const double large = best_seconds(own, &ids, &text);
    if (large > 25 * small + 0.02) fail_msg("case %d: %g s, then %g s", kind, small, large);
  }
  tokenizer_close(own);
  tokens_free(&ids);
  text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trained_model),
      cmocka_unit_test(other_types),
      cmocka_unit_test(t5_model),
      cmocka_unit_test(worst_cases),
  };
  return cmocka_run_group_tests_name("unigram", tests, NULL, NULL);
}
