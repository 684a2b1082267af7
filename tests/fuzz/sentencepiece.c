/* spiece.model: a model that our path covers gives ids for any text. The input is two bytes, the
 * length of the model, the model, and a text. What libsentencepiece makes of a damaged model is its
 * own affair: our parser is reached without it. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "stages/tokenize/charsmap.h"
#include "stages/tokenize/unigram_model.h"
#include "stages/tokenize/unigram_words.h"

/* One piece: its text, its score, its type. */
static void add_piece(struct text *model, const char *piece, float score, char type) {
  struct text body = {0};
  const char head[2] = {0x0a, (char)strlen(piece)}, kind[2] = {0x18, type};
  fuzz_require(text_add_bytes(&body, head, 2) == STATUS_OK && text_add(&body, piece) == STATUS_OK &&
                   text_add_bytes(&body, "\x15", 1) == STATUS_OK &&
                   text_add_bytes(&body, &score, sizeof score) == STATUS_OK &&
                   text_add_bytes(&body, kind, 2) == STATUS_OK,
               "memory suffices");
  const char outer[2] = {0x0a, (char)body.length};
  fuzz_require(text_add_bytes(model, outer, 2) == STATUS_OK &&
                   text_add_bytes(model, body.bytes, body.length) == STATUS_OK,
               "memory suffices");
  text_free(&body);
}

static void add_seed(const struct text *model, const char *text) {
  struct text seed = {0};
  const uint16_t length = (uint16_t)model->length;
  fuzz_require(text_add_bytes(&seed, &length, 2) == STATUS_OK &&
                   text_add_bytes(&seed, model->bytes, model->length) == STATUS_OK &&
                   text_add(&seed, text) == STATUS_OK,
               "memory suffices");
  fuzz_seed(seed.bytes, seed.length);
  text_free(&seed);
}

void fuzz_make_seeds(void) {
  /* a table of one unit, which maps nothing, and "a" as replacement */
  static const char charsmap[] = "\x1a\x0c\x12\x0a\4\0\0\0\0\0\0\0a\0";
  struct text model = {0};
  add_piece(&model, "<unk>", 0, UNIGRAM_UNKNOWN);
  add_piece(&model, "</s>", 0, UNIGRAM_CONTROL);
  add_piece(&model, "\xe2\x96\x81", -2, UNIGRAM_NORMAL);
  add_piece(&model, "\xe2\x96\x81the", -3, UNIGRAM_NORMAL);
  add_piece(&model, "t", -4, UNIGRAM_NORMAL);
  add_piece(&model, "h", -4.5F, UNIGRAM_NORMAL);
  add_seed(&model, "the  hat t\xff");
  fuzz_require(text_add_bytes(&model, "\x12\x02\x18\x01", 4) == STATUS_OK &&
                   text_add_bytes(&model, charsmap, sizeof charsmap - 1) == STATUS_OK,
               "memory suffices");
  add_seed(&model, "th\xc3\xa4 the");
  text_free(&model);
}

/* Words are separated by spaces here, as the tokenizer's scanner would hand them on. */
static void encode(struct unigram_words *words, const char *text, size_t count) {
  struct tokens ids = {0};
  unigram_words_begin(words, &ids);
  for (size_t at = 0; at < count;) {
    const char *stop = memchr(text + at, ' ', count - at);
    const size_t length = stop ? (size_t)(stop - text) - at : count - at;
    if (length)
      fuzz_require(unigram_words_add(words, text + at, length) == STATUS_OK, "any word has ids");
    at += length + 1;
  }
  fuzz_require(unigram_words_flush(words, text + count) == STATUS_OK, "the last words have ids");
  tokens_free(&ids);
}

static void normalise(const struct charsmap *map, struct text *out, struct fuzz_input text) {
  size_t length = 0, count = 0;
  for (size_t at = 0; at < text.count; at += length) {
    const char *result =
        charsmap_next(map, (const char *)text.bytes + at, text.count - at, &length, &count);
    fuzz_require(length > 0 && length <= text.count - at, "every step goes on");
    fuzz_require(text_add_bytes(out, result, count) == STATUS_OK, "memory suffices");
  }
}

static void use(const struct unigram_model *model, struct fuzz_input text) {
  struct charsmap map = {0};
  struct unigram_words words = {0};
  struct text normal = {0};
  if (charsmap_open(&map, model->charsmap, model->charsmap_bytes) == STATUS_OK) {
    normalise(&map, &normal, text);
    if (unigram_words_open(&words, model) == STATUS_OK)
      encode(&words, normal.bytes ? normal.bytes : "", normal.length);
    unigram_words_close(&words);
  }
  charsmap_close(&map);
  text_free(&normal);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct fuzz_input input = {bytes, count};
  struct unigram_model model;
  size_t length = (size_t)fuzz_take(&input, 2);
  if (length > input.count) length = input.count;
  if (unigram_model_parse(&model, (const char *)input.bytes, length) != STATUS_OK) return 0;
  if (!unigram_model_uncovered(&model))
    use(&model, (struct fuzz_input){input.bytes + length, input.count - length});
  unigram_model_free(&model);
  return 0;
}
