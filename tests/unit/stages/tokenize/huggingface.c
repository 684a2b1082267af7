/* R-TOK-1: tokenizer.json, vocab.json and merges.txt against known answers (whole texts against
 * Hugging Face's ids: golden/tokens); what is not covered is refused by its key; damage is noticed.
 */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/tokenizer_file.h"

static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}";
static const char llama3[] =
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
    "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", "
    "\"add_prefix_space\": false, \"use_regex\": false}]}";

static enum status open_text(struct tokenizer **tokenizer, const struct text *file) {
  assert_ok(file_write("x.json", file->bytes, file->length));
  return tokenizer_open(tokenizer, "huggingface:x.json");
}

static void assert_ids(struct tokenizer *tokenizer, const char *text, const int32_t *expected,
                       size_t count) {
  struct tokens ids = {0};
  assert_ok(tokenizer_encode(tokenizer, &ids, text, strlen(text)));
  assert_int_equal(ids.count, count);
  assert_memory_equal(ids.ids, expected, count * sizeof *expected);
  tokens_free(&ids);
}

static void assert_text(struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                        const char *expected) {
  struct text text = {0};
  assert_ok(tokenizer_decode(tokenizer, &text, ids, count));
  assert_string_equal(text.bytes, expected);
  text_free(&text);
}

static void check_bpe(const char *pre_tokenizer, bool pairs, const int32_t *number, size_t count) {
  static const int32_t hello[] = {260, 262, 'r', 'l', 'd', ' ', 'h', 'o'}, special[] = {257, 256};
  struct text file = {0};
  struct tokenizer *bpe;
  assert_ok(tokenizer_file_bpe(&file, pre_tokenizer, pairs));
  assert_ok(open_text(&bpe, &file));
  const struct tokenizer_facts *facts = tokenizer_facts_of(bpe);
  assert_int_equal(facts->vocabulary_size, 263);
  assert_int_equal(facts->eos, 256);
  assert_int_equal(facts->pad, 256);
  assert_true(facts->lossless);
  assert_ids(bpe, "hello world ho", hello, 8);
  assert_ids(bpe, "1234\n ", number, count);
  assert_text(bpe, hello, 8, "hello world ho");
  assert_text(bpe, special, 2, "he");
  tokenizer_close(bpe);
  text_free(&file);
}

static void byte_level_bpe(void **state) {
  (void)state;
  static const int32_t number[] = {'1', '2', '3', '4', '\n', ' '};
  check_bpe(byte_level, false, number, 6);
  check_bpe(byte_level, true, number, 6);
  check_bpe(llama3, true, number, 6);
}

/* Ids need not follow the order of the merges. */
static void ids_in_any_order(void **state) {
  (void)state;
  static const int32_t hello[] = {257, 262};
  struct text file = {0};
  struct tokenizer *bpe;
  assert_ok(tokenizer_file_bpe(&file, byte_level, false));
  memcpy(strstr(file.bytes, "\"he\": 257"), "\"he\": 260", 9);
  memcpy(strstr(file.bytes, "\"hello\": 260"), "\"hello\": 257", 12);
  assert_ok(open_text(&bpe, &file));
  assert_ids(bpe, "hello wo", hello, 2);
  assert_text(bpe, hello, 2, "hello wo");
  tokenizer_close(bpe);
  text_free(&file);
}

/* The vocabulary as GPT-2's two files, from a folder, by name, and again from a finished node's. */
static void two_files(void **state) {
  (void)state;
  static const int32_t hello[] = {260, 262};
  static const char *const specs[] = {"huggingface:files", "huggingface:files/vocab.json", "saved"};
  struct text file = {0}, vocabulary = {0};
  struct tokenizer *bpe;
  assert_ok(tokenizer_file_bpe(&file, byte_level, false));
  const char *begin = strstr(file.bytes, "\"vocab\": ") + 9, *end = strstr(begin, "}, \"merges\"");
  assert_ok(text_add_bytes(&vocabulary, begin, (size_t)(end - begin)));
  assert_ok(text_add(&vocabulary, ", \"<|endoftext|>\": 256}"));
  const char *merges = "#version: 0.2\nh e\nl l\r\nhe ll\nhell o\n\xc4\xa0 w\n\xc4\xa0w o\n";
  assert_ok(file_make_folder("files"));
  assert_ok(file_make_folder("saved"));
  assert_ok(file_write("files/vocab.json", vocabulary.bytes, vocabulary.length));
  assert_status(STATUS_MISMATCH, tokenizer_open(&bpe, "huggingface:files"));
  assert_non_null(strstr(error_message(), "merges.txt"));
  assert_ok(file_write("files/merges.txt", merges, strlen(merges)));
  for (int i = 0; i < 3; i++) {
    assert_ok(tokenizer_open(&bpe, specs[i]));
    assert_int_equal(tokenizer_facts_of(bpe)->eos, 256);
    assert_ids(bpe, "hello wo", hello, 2);
    if (i == 0) assert_ok(tokenizer_save(bpe, "saved"));
    tokenizer_close(bpe);
  }
  text_free(&file);
  text_free(&vocabulary);
}

static void unigram(void **state) {
  (void)state;
  static const int32_t the[] = {4, 3, 8, 5, 4, 2, 3, 2};
  struct text file = {0};
  struct tokenizer *own;
  assert_ok(tokenizer_file_unigram(&file, false));
  assert_ok(open_text(&own, &file));
  assert_int_equal(tokenizer_facts_of(own)->vocabulary_size, 9);
  assert_int_equal(tokenizer_facts_of(own)->pad, 0);
  assert_int_equal(tokenizer_facts_of(own)->eos, 1);
  assert_int_equal(tokenizer_facts_of(own)->unk, 2);
  assert_ids(own, "  the  het thexyz q ", the, 8);
  assert_text(own, the, 4, "the het");
  tokenizer_close(own);
  text_free(&file);
}

static void unigram_with_sentinels(void **state) {
  (void)state;
  static const int32_t filled[] = {4, 108, 4, 9};
  struct text file = {0};
  struct tokenizer *own;
  assert_ok(tokenizer_file_unigram(&file, true));
  assert_ok(open_text(&own, &file));
  assert_int_equal(tokenizer_facts_of(own)->vocabulary_size, 109);
  assert_ids(own, "the <extra_id_0> the<extra_id_99>", filled, 4);
  tokenizer_close(own);
  text_free(&file);
}

/* --- what is refused ----------------------------------------------------------------------------
 */

/* A change of a sound file, how it is refused, and what the message names. */
struct change {
  bool unigram;
  const char *from, *to; /* of the same length */
  enum status expected;
  const char *named;
};

static const struct change changes[] = {
    {false, "\"truncation\": null", "\"truncation\":    8", STATUS_MISMATCH, "truncation"},
    {false, "\"ByteLevel\", \"add", "\"BertLevel\", \"add", STATUS_MISMATCH, "pre_tokenizer"},
    {false, "\"add_prefix_space\": false", "\"add_prefix_space\": true ", STATUS_MISMATCH,
     "pre_tokenizer.add_prefix_space"},
    {false, "\"normalizer\": null", "\"normalizer\":   {}", STATUS_MISMATCH, "normalizer"},
    {false, "\"special\": true", "\"special\":false", STATUS_MISMATCH, "added_tokens[0]"},
    {false, "\"type\": \"BPE\"", "\"type\": \"WPE\"", STATUS_MISMATCH, "model.type"},
    {false, "\"unk_token\": null", "\"unk_token\": \"u\" ", STATUS_MISMATCH, "model.unk_token"},
    {false, "\"byte_fallback\": false", "\"byte_fallback\": true ", STATUS_MISMATCH,
     "model.byte_fallback"},
    {false, "\"he ll\"", "\"he lo\"", STATUS_DAMAGED, "model.merges[2]"},
    {false, "\"he ll\"", "\"he,ll\"", STATUS_DAMAGED, "model.merges[2]"},
    {false, "\"l l\", \"he ll\"", "\"he ll\", \"l l\"", STATUS_DAMAGED, "merged before"},
    {false, "\"hell\": 259", "\"hell\": 258", STATUS_DAMAGED, "twice"},
    {false, "\"hell\": 259", "\"hell\": \"a\"", STATUS_DAMAGED, "model.vocab.hell"},
    {false, "\"hell\": 259", "\"hell\": -59", STATUS_DAMAGED, "model.vocab.hell"},
    {false, "\"id\": 256", "\"id\": 9e9", STATUS_DAMAGED, "added_tokens[0].id"},
    {false, "\"id\": 256", "\"id\":  65", STATUS_DAMAGED, "has the id 65 of the added token"},
    {false, "\"z\": 122, ", "          ", STATUS_DAMAGED, "122"},
    {false, "<|endoftext|>", "<|somewhere|>", STATUS_MISMATCH, "ends a document"},
    {true, "\"Precompiled\"", "\"Predecessor\"", STATUS_MISMATCH, "normalizer.normalizers[0]"},
    {true, "\"BAAAAAAAAABhAA==\"", "\"BAAAAAAA!ABhAA==\"", STATUS_DAMAGED, "base64"},
    {true, "\"BAAAAAAAAABhAA==\"", "\"BAAAAAAAAABhYQ==\"", STATUS_DAMAGED, "table"},
    {true, "\"strip_right\": true", "\"strip_right\":false", STATUS_MISMATCH, "extra spaces"},
    {true, "\"Metaspace\"", "\"Metaplace\"", STATUS_MISMATCH, "pre_tokenizer"},
    {true, "\"always\"", "\"never\" ", STATUS_MISMATCH, "pre_tokenizer.prepend_scheme"},
    {true, "\"unk_id\": 2", "\"unk_id\":99", STATUS_DAMAGED, "model.unk_id"},
    {true, "[\"h\", -4.5]", "[\"h\", \"5\" ]", STATUS_DAMAGED, "model.vocab[6][1]"},
    {true, "[\"h\", -4.5]", "[\"h\",  4.5]", STATUS_MISMATCH, "above zero"},
    {true, "[\"h\", -4.5]", "[\"t\", -4.5]", STATUS_DAMAGED, "twice"},
    {true, "[\"</s>\", 0.0]", "[\"</x>\", 0.0]", STATUS_DAMAGED, "</s>"},
    {true, "\"byte_fallback\": false", "\"byte_fallback\": true ", STATUS_MISMATCH,
     "model.byte_fallback"},
};

static void check_change(const struct change *change) {
  struct text file = {0};
  struct tokenizer *tokenizer;
  assert_ok(change->unigram ? tokenizer_file_unigram(&file, false)
                            : tokenizer_file_bpe(&file, byte_level, false));
  char *place = strstr(file.bytes, change->from);
  assert_non_null(place);
  assert_int_equal(strlen(change->from), strlen(change->to));
  memcpy(place, change->to, strlen(change->to));
  const enum status status = open_text(&tokenizer, &file);
  if (status != change->expected || !strstr(error_message(), change->named))
    fail_msg("'%s' for '%s': status %d, '%s'", change->to, change->from, (int)status,
             error_message());
  text_free(&file);
}

static void refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) check_change(&changes[i]);
}

/* Cut anywhere, the file is refused. */
static void truncated(void **state) {
  (void)state;
  struct tokenizer *tokenizer;
  for (int kind = 0; kind < 2; kind++) {
    struct text file = {0};
    assert_ok(kind ? tokenizer_file_unigram(&file, true)
                   : tokenizer_file_bpe(&file, byte_level, true));
    for (size_t length = 0; length < file.length; length += 1 + length / 16) {
      struct text part = {.bytes = file.bytes, .length = length};
      assert_status(STATUS_DAMAGED, open_text(&tokenizer, &part));
    }
    text_free(&file);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(byte_level_bpe), cmocka_unit_test(ids_in_any_order),
      cmocka_unit_test(two_files),      cmocka_unit_test(unigram),
      cmocka_unit_test(refusals),       cmocka_unit_test(unigram_with_sentinels),
      cmocka_unit_test(truncated),
  };
  return cmocka_run_group_tests_name("huggingface", tests, NULL, NULL);
}
