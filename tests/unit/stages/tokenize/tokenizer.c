/* R-TOK-1, R-TOK-5: tokenizers against known answers, and their names and hashes. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/tokenizer.h"

static struct tokenizer *open_t5(void) {
  char spec[1024];
  const char *root = getenv("ROOT");
  snprintf(spec, sizeof spec, "t5:%s/../shared/data/tokenizers/t5-spiece.model", root ? root : ".");
  if (!file_exists(spec + 3)) skip();
  struct tokenizer *t5;
  assert_ok(tokenizer_open(&t5, spec));
  return t5;
}

static void assert_ids(struct tokenizer *tokenizer, const char *text, const int32_t *expected,
                       size_t count) {
  struct tokens ids = {0};
  assert_ok(tokenizer_encode(tokenizer, &ids, text, strlen(text)));
  assert_int_equal(ids.count, count);
  assert_memory_equal(ids.ids, expected, count * sizeof *expected);
  tokens_free(&ids);
}

static void t5_known_answer(void **state) {
  (void)state;
  static const int32_t expected[] = {8774, 296, 6, 48, 19, 3, 9, 794, 5, 644, 4598, 229, 19250, 5};
  struct tokenizer *t5 = open_t5();
  assert_int_equal(tokenizer_facts_of(t5)->vocabulary_size, 32100);
  assert_int_equal(tokenizer_facts_of(t5)->pad, 0);
  assert_int_equal(tokenizer_facts_of(t5)->eos, 1);
  assert_int_equal(tokenizer_facts_of(t5)->unk, 2);
  assert_ids(t5, "Hello world, this is a test. Das Haus ist wunderbar.", expected,
             sizeof expected / sizeof *expected);
  tokenizer_close(t5);
}

static void t5_sentinels(void **state) {
  (void)state;
  struct tokenizer *t5 = open_t5();
  static const int32_t expected[] = {8774, 32099, 296, 32000};
  assert_ids(t5, "Hello <extra_id_0> world<extra_id_99>", expected, 4);
  struct text text = {0};
  assert_ok(tokenizer_decode(t5, &text, expected, 4));
  assert_string_equal(text.bytes, "Hello<extra_id_0>world<extra_id_99>");
  text_free(&text);
  static const char *const plain[] = {"<extra_id_>", "<extra_id_100>", "<extra_id_07>",
                                      "<extra_id_7", "<extra_id_0 >"};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    struct tokens ids = {0};
    assert_ok(tokenizer_encode(t5, &ids, plain[i], strlen(plain[i])));
    for (size_t j = 0; j < ids.count; j++) assert_true(ids.ids[j] < 32000);
    tokens_free(&ids);
  }
  tokenizer_close(t5);
}

static void byte_round_trip(void **state) {
  (void)state;
  struct tokenizer *byte;
  assert_ok(tokenizer_open(&byte, "byte"));
  char bytes[512];
  for (int i = 0; i < 512; i++) bytes[i] = (char)(i * 7);
  struct tokens ids = {0};
  assert_ok(tokenizer_encode(byte, &ids, bytes, sizeof bytes));
  const int32_t eos = tokenizer_facts_of(byte)->eos;
  assert_ok(tokens_add(&ids, &eos, 1));
  struct text text = {0};
  assert_ok(tokenizer_decode(byte, &text, ids.ids, ids.count));
  assert_int_equal(text.length, sizeof bytes);
  assert_memory_equal(text.bytes, bytes, sizeof bytes);
  static const int32_t outside = 258;
  assert_status(STATUS_MISMATCH, tokenizer_decode(byte, &text, &outside, 1));
  text_free(&text);
  tokens_free(&ids);
  tokenizer_close(byte);
}

static void text8_rules(void **state) {
  (void)state;
  struct tokenizer *text8;
  struct tokens ids = {0};
  struct text text = {0};
  static const char original[] = " The 42nd,  Stra\xc3\x9f"
                                 "e!";
  assert_ok(tokenizer_open(&text8, "text8"));
  assert_int_equal(tokenizer_facts_of(text8)->vocabulary_size, 35);
  assert_ok(tokenizer_encode(text8, &ids, original, sizeof original - 1));
  assert_ok(tokenizer_decode(text8, &text, ids.ids, ids.count));
  assert_string_equal(text.bytes, "the four two nd stra e");
  text_free(&text);
  tokens_free(&ids);
  tokenizer_close(text8);
}

static void folder_round_trip(void **state) {
  (void)state;
  struct tokenizer *byte, *again;
  assert_ok(tokenizer_open(&byte, "byte"));
  assert_ok(file_make_folder("saved"));
  assert_ok(tokenizer_save(byte, "saved"));
  assert_ok(tokenizer_open(&again, "saved"));
  assert_memory_equal(&tokenizer_facts_of(byte)->hash, &tokenizer_facts_of(again)->hash,
                      sizeof(struct hash128));
  tokenizer_close(again);
  tokenizer_close(byte);
  assert_ok(file_write("saved/tokenizer.model", "x", 1)); /* another model under the same name */
  const char *damaged = "{\"kind\": \"byte\", \"file\": \"tokenizer.model\", \"hash\": \"00\"}";
  assert_ok(file_write("saved/tokenizer.json", damaged, strlen(damaged)));
  assert_status(STATUS_DAMAGED, tokenizer_open(&again, "saved"));
}

static void bad_specifications(void **state) {
  (void)state;
  struct tokenizer *tokenizer;
  assert_status(STATUS_MISMATCH, tokenizer_open(&tokenizer, "wordpiece:x"));
  assert_non_null(strstr(error_message(), "byte"));
  assert_status(STATUS_MISMATCH, tokenizer_open(&tokenizer, "t5:missing.model"));
  assert_status(STATUS_MISMATCH, tokenizer_open(&tokenizer, "t5"));
  assert_ok(file_write("bad.model", "not a model", 11));
  assert_status(STATUS_DAMAGED, tokenizer_open(&tokenizer, "t5:bad.model"));
  assert_status(STATUS_DAMAGED, tokenizer_open(&tokenizer, "sentencepiece:bad.model"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(t5_known_answer),   cmocka_unit_test(t5_sentinels),
      cmocka_unit_test(byte_round_trip),   cmocka_unit_test(text8_rules),
      cmocka_unit_test(folder_round_trip), cmocka_unit_test(bad_specifications),
  };
  return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
