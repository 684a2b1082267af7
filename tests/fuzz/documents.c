/* Text, JSON lines and package lists: the documents do not depend on how the bytes arrive. The
 * first byte of an input chooses boundary and key. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "stages/tokenize/splitter.h"

void fuzz_make_seeds(void) {
  static const char line[] =
      "{\"text\": \"one \\u00e4\\ud83d\\ude00\", \"n\": [1, {\"a\": null}]}\n"
      "{\"a\":{\"b\":\"two\\n\\u0000\"}, \"text\":\"x\"}\r\n\n";
  static const char package[] = "\4Package: a\nDescription: short\n long text\n .\n  * item\n\n"
                                "Package: b\nDescription-de: kurz\n lang\n"
                                "Description-md5: 0123\n\n";
  struct text seed = {0};
  for (char boundary = 0; boundary < 10; boundary++) {
    text_clear(&seed);
    fuzz_require(text_add_bytes(&seed, &boundary, 1) == STATUS_OK &&
                     text_add(&seed, line) == STATUS_OK,
                 "memory suffices");
    fuzz_seed(seed.bytes, seed.length);
  }
  text_free(&seed);
  fuzz_seed(package, sizeof package - 1);
  fuzz_seed_text("\1one\ntwo\r\n\n   \nthree with words\nlast");
}

/* All documents, each behind its length. */
static enum status add(void *state, const char *bytes, size_t count) {
  fuzz_require(count > 0, "no document is empty");
  TRY(text_add_bytes(state, &count, sizeof count));
  return text_add_bytes(state, bytes, count);
}

static enum status split(struct text *all, struct fuzz_input input, int choice, size_t step) {
  static const char *const keys[] = {"text", "a.b"};
  struct splitter splitter = {.boundary = (enum boundary_choice)(choice % 5),
                              .text_key = keys[choice / 5 % 2],
                              .sink = {.add = add, .state = all},
                              .name = "fuzz",
                              .limit = UINT64_MAX};
  enum status status = STATUS_OK;
  for (size_t at = 0; at < input.count && status == STATUS_OK; at += step) {
    const size_t left = input.count - at;
    status = splitter_feed(&splitter, (const char *)input.bytes + at, left < step ? left : step);
  }
  if (status == STATUS_OK) status = splitter_finish(&splitter);
  splitter_free(&splitter);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct fuzz_input input = {bytes, count};
  struct text whole = {0}, pieces = {0};
  const int choice = (int)fuzz_take(&input, 1);
  const enum status first = split(&whole, input, choice, input.count + 1);
  const enum status second = split(&pieces, input, choice, 1 + count % 7);
  fuzz_require(first == second, "both are read, or both refused");
  fuzz_require(whole.length == pieces.length &&
                   (!whole.length || !memcmp(whole.bytes, pieces.bytes, whole.length)),
               "the documents are the same");
  text_free(&whole);
  text_free(&pieces);
  return 0;
}
