/* R-TOK-1: ids of whole texts equal those of tiktoken, and of Hugging Face's tokenizers for T5's
 * tokenizer.json (digests made by tokens.py). */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/inputs.h"
#include "stages/tokenize/tokenizer.h"

struct golden {
  const char *kind, *model, *text;
  size_t count;
  uint64_t digest;
};

static const struct golden goldens[] = {
#define TOKENS(kind, model, text, ids, digest) {kind, model, text, ids, digest},
#include "tests/golden/tokens.inc"
#undef TOKENS
};

static enum status take(void *state, const char *bytes, size_t count) {
  return text_add_bytes(state, bytes, count);
}

/* The whole file, unpacked, as one document. */
static void read_text(struct text *text, const char *path) {
  struct inputs inputs;
  struct splitter splitter = {.boundary = BOUNDARY_FILE, .sink = {.add = take, .state = text}};
  const struct option_texts paths = {.count = 1, .values = {path}};
  assert_ok(inputs_list(&inputs, &(struct inputs_request){.paths = &paths,
                                                          .boundary = BOUNDARY_FILE,
                                                          .unit_bytes = UNIT_BYTES}));
  assert_ok(inputs_read(&inputs, &inputs.units[0], &splitter));
  splitter_free(&splitter);
  inputs_free(&inputs);
}

static void check(const struct golden *golden, const char *data) {
  char spec[1200], path[1200];
  struct tokenizer *tokenizer;
  struct tokens ids = {0};
  struct text text = {0}, again = {0};
  snprintf(spec, sizeof spec, "%s:%s/tokenizers/%s", golden->kind, data, golden->model);
  snprintf(path, sizeof path, "%s/%s", data, golden->text);
  assert_ok(tokenizer_open(&tokenizer, spec));
  read_text(&text, path);
  assert_ok(tokenizer_encode(tokenizer, &ids, text.bytes, text.length));
  uint64_t digest = 0xcbf29ce484222325u;
  for (size_t i = 0; i < ids.count; i++) digest = (digest ^ (uint32_t)ids.ids[i]) * 0x100000001b3u;
  assert_int_equal(ids.count, golden->count);
  assert_true(digest == golden->digest);
  assert_ok(tokenizer_decode(tokenizer, &again, ids.ids, ids.count));
  if (tokenizer_facts_of(tokenizer)->lossless) {
    assert_int_equal(again.length, text.length);
    assert_memory_equal(again.bytes, text.bytes, text.length);
  }
  tokenizer_close(tokenizer);
  tokens_free(&ids);
  text_free(&text);
  text_free(&again);
}

static void all(void **state) {
  (void)state;
  char data[1024];
  const char *root = getenv("ROOT");
  snprintf(data, sizeof data, "%s/../shared/data", root ? root : ".");
  if (!file_exists(data)) skip();
  for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) check(&goldens[i], data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
  return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
