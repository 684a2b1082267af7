/* Unigram models of a tokenizer.json. Words stand alone and scores are summed in double precision,
 * as Hugging Face's library does it; the normaliser is applied as libsentencepiece applies it,
 * which differs from that library's where a key covers a part of a grapheme only. */
#include <stdio.h>
#include <string.h>

#include "stages/tokenize/base64.h"
#include "stages/tokenize/huggingface.h"
#include "stages/tokenize/unigram.h"
#include "stages/tokenize/unigram_words.h"

struct reading {
  const struct added_tokens *added;
  struct json_place vocabulary;
  struct unigram_model model;
  const char *charsmap; /* in base64; borrowed from the file */
  bool strips_end, joins_spaces, splits_at_spaces;
  int32_t size; /* of the whole vocabulary */
};

/* --- what is done to text before ----------------------------------------------------------------
 */

/* Replace of runs of spaces by one. */
static bool joins_spaces(const struct json_place *place) {
  const struct json_place pattern = json_place_member(place, "pattern");
  const struct json_place regex = json_place_member(&pattern, "Regex");
  const struct json_place content = json_place_member(place, "content");
  return json_place_is(&regex, " {2,}") &&
         (json_place_is(&content, UNIGRAM_SPACE) || json_place_is(&content, " "));
}

static enum status read_normalizer(struct reading *reading, const struct json_place *place) {
  const char *type = json_place_type(place);
  const struct json_place map = json_place_member(place, "precompiled_charsmap");
  const struct json_place right = json_place_member(place, "strip_right");
  if (!strcmp(type, "Precompiled") && !reading->charsmap)
    return json_place_string(&reading->charsmap, &map);
  const bool strips = !strcmp(type, "Strip"), joins = !strcmp(type, "Replace");
  CHECK(
      (strips || (joins && joins_spaces(place))) && reading->charsmap, STATUS_MISMATCH,
      "%s: '%s' is not covered here; covered are one Precompiled, and behind it Strip and Replace "
      "of ' {2,}' by a space",
      place->path, type);
  reading->strips_end |= strips && json_is_true(right.value);
  reading->joins_spaces |= joins;
  return STATUS_OK;
}

static enum status read_normalizers(struct reading *reading, const struct json_place *top) {
  const struct json_place place = json_place_member(top, "normalizer");
  const struct json_place list = json_place_member(&place, "normalizers");
  if (strcmp(json_place_type(&place), "Sequence") != 0) return read_normalizer(reading, &place);
  size_t count;
  TRY(json_place_list(&count, &list));
  for (size_t i = 0; i < count; i++) {
    const struct json_place item = json_place_item(&list, i);
    TRY(read_normalizer(reading, &item));
  }
  return STATUS_OK;
}

static enum status read_metaspace(const struct json_place *place) {
  const struct json_place symbol = json_place_member(place, "replacement");
  const struct json_place scheme = json_place_member(place, "prepend_scheme");
  const struct json_place prefix = json_place_member(place, "add_prefix_space");
  const struct json_place split = json_place_member(place, "split");
  CHECK(strcmp(json_place_type(place), "Metaspace") == 0, STATUS_MISMATCH,
        "%s: '%s' is not covered here; covered are Metaspace, and WhitespaceSplit before it",
        place->path[0] ? place->path : "pre_tokenizer", json_place_type(place));
  CHECK(json_place_is(&symbol, UNIGRAM_SPACE), STATUS_MISMATCH, "%s: expected U+2581", symbol.path);
  CHECK(!scheme.value || json_place_is(&scheme, "always") || json_place_is(&scheme, "first"),
        STATUS_MISMATCH, "%s: without a space before the first word is not covered", scheme.path);
  CHECK(!json_is_false(prefix.value) && !json_is_false(split.value), STATUS_MISMATCH,
        "%s: add_prefix_space and split must not be false", place->path);
  return STATUS_OK;
}

static enum status read_pre_tokenizer(struct reading *reading, const struct json_place *top) {
  const struct json_place place = json_place_member(top, "pre_tokenizer");
  const struct json_place list = json_place_member(&place, "pretokenizers");
  const struct json_place first = json_place_item(&list, 0), second = json_place_item(&list, 1);
  reading->splits_at_spaces =
      json_array_size(list.value) == 2 && strcmp(json_place_type(&first), "WhitespaceSplit") == 0;
  TRY(read_metaspace(reading->splits_at_spaces ? &second : &place));
  CHECK(reading->splits_at_spaces || (reading->strips_end && reading->joins_spaces),
        STATUS_MISMATCH,
        "pre_tokenizer: tokenizers that keep extra spaces are not covered; expected "
        "WhitespaceSplit, or Strip at the right and Replace of ' {2,}' in normalizer");
  return STATUS_OK;
}

/* --- pieces --------------------------------------------------------------------------------------
 */

static bool is_sentinel(const struct added_token *token, int32_t size) {
  char expected[32];
  snprintf(expected, sizeof expected, "<extra_id_%d>", size - 1 - token->id);
  return strcmp(token->text, expected) == 0;
}

/* Whether the last ids are T5's sentinels, all of them. */
static bool has_sentinels(const struct reading *reading) {
  const struct added_tokens *added = reading->added;
  if (added->count < T5_SENTINELS || reading->size < T5_SENTINELS) return false;
  for (size_t i = added->count - T5_SENTINELS; i < added->count; i++)
    if (!is_sentinel(&added->tokens[i], reading->size)) return false;
  return true;
}

/* Text and score of a piece; texts are gathered, and pointed at when none moves any more. */
static enum status read_piece(struct reading *reading, size_t index) {
  const struct json_place place = json_place_item(&reading->vocabulary, index);
  const struct json_place text = json_place_item(&place, 0), score = json_place_item(&place, 1);
  struct unigram_piece *piece = &reading->model.pieces[index];
  const char *string;
  TRY(json_place_string(&string, &text));
  TRY(json_place_number(&piece->score, &score));
  CHECK(*string, STATUS_DAMAGED, "%s: the piece is empty", place.path);
  piece->type = UNIGRAM_NORMAL;
  piece->count = strlen(string);
  return text_add(&reading->model.storage, string);
}

/* The role of an added token: its piece is there already, or comes behind all pieces. */
static enum status add_role(struct reading *reading, const struct added_token *token,
                            int32_t pieces) {
  struct unigram_piece *piece = &reading->model.pieces[token->id];
  const struct json_place item = json_place_item(&reading->vocabulary, (size_t)token->id);
  const struct json_place text = json_place_item(&item, 0);
  CHECK(token->id >= pieces || json_place_is(&text, token->text), STATUS_DAMAGED,
        "added_tokens: '%s' has the id %d, which is another piece in model.vocab", token->text,
        token->id);
  if (piece->type != UNIGRAM_UNKNOWN) piece->type = UNIGRAM_CONTROL;
  return STATUS_OK;
}

static void point_at_texts(struct unigram_model *model, const char *texts) {
  for (int32_t i = 0; i < model->piece_count; i++) {
    model->pieces[i].bytes = texts;
    texts += model->pieces[i].count;
  }
}

static enum status read_pieces(struct reading *reading, const struct json_place *model) {
  const struct json_place unknown = json_place_member(model, "unk_id");
  size_t count;
  int64_t unknown_id;
  TRY(json_place_list(&count, &reading->vocabulary));
  CHECK(count > 0 && count < BPE_MAX_TOKENS, STATUS_DAMAGED, "%s: %zu pieces",
        reading->vocabulary.path, count);
  TRY(json_place_integer(&unknown_id, &unknown, 0, (int64_t)count - 1));
  const size_t added = reading->added->count;
  const int32_t last = added ? reading->added->tokens[added - 1].id + 1 : 0;
  reading->size = last > (int32_t)count ? last : (int32_t)count;
  reading->model.pieces = calloc((size_t)reading->size, sizeof *reading->model.pieces);
  CHECK(reading->model.pieces, STATUS_ENVIRONMENT, "out of memory: %d pieces", reading->size);
  for (size_t i = 0; i < count; i++) TRY(read_piece(reading, i));
  reading->model.pieces[unknown_id].type = UNIGRAM_UNKNOWN;
  for (size_t i = 0; i < added; i++)
    TRY(add_role(reading, &reading->added->tokens[i], (int32_t)count));
  return STATUS_OK;
}

/* --- the whole -----------------------------------------------------------------------------------
 */

static enum status check_covered(const struct reading *reading) {
  const struct unigram_model *model = &reading->model;
  for (int32_t i = 0; i < model->piece_count; i++)
    CHECK(model->pieces[i].type, STATUS_DAMAGED, "%s: no piece has the id %d",
          reading->vocabulary.path, i);
  const char *why = unigram_model_uncovered(model);
  CHECK(!why, STATUS_MISMATCH, "model: this unigram model is not covered: %s", why);
  return STATUS_OK;
}

static enum status read_model(struct reading *reading, const struct json_place *top) {
  const struct json_place model = json_place_member(top, "model");
  const struct json_place bytes = json_place_member(&model, "byte_fallback");
  struct unigram_model *out = &reading->model;
  reading->vocabulary = json_place_member(&model, "vocab");
  TRY(json_place_must_be_unset(&bytes));
  TRY(read_normalizers(reading, top));
  TRY(read_pre_tokenizer(reading, top));
  TRY(read_pieces(reading, &model));
  const size_t texts = out->storage.length;
  TRY(base64_decode(&out->storage, reading->charsmap, strlen(reading->charsmap)));
  out->charsmap = out->storage.bytes + texts;
  out->charsmap_bytes = out->storage.length - texts;
  out->piece_count = reading->size - (has_sentinels(reading) ? T5_SENTINELS : 0);
  point_at_texts(out, out->storage.bytes);
  unigram_model_find_unknown(out);
  return check_covered(reading);
}

static void set_facts(struct tokenizer *tokenizer, const struct reading *reading) {
  static const char *const ends[] = {"</s>", "<eos>", "<|endoftext|>", NULL};
  static const char *const begins[] = {"<s>", "<bos>", NULL};
  static const char *const pads[] = {"<pad>", "[PAD]", NULL};
  struct tokenizer_facts *facts = &tokenizer->facts;
  facts->reference = "Hugging Face tokenizers, special tokens as text";
  facts->vocabulary_size = reading->model.piece_count;
  facts->eos = added_tokens_find(reading->added, ends, TOKEN_NONE);
  facts->pad = added_tokens_find(reading->added, pads, facts->eos);
  facts->bos = added_tokens_find(reading->added, begins, TOKEN_NONE);
  facts->unk = reading->model.unknown;
  facts->lossless = false;
}

static enum status open_read(struct tokenizer *inner, void *context) {
  struct reading *reading = context;
  set_facts(inner, reading);
  CHECK(inner->facts.eos != TOKEN_NONE, STATUS_MISMATCH,
        "added_tokens: none ends a document; expected one of </s>, <eos>, <|endoftext|>");
  struct unigram_model model = reading->model;
  reading->model = (struct unigram_model){0};
  return unigram_open_model(inner, &model);
}

enum status huggingface_open_unigram(struct tokenizer *tokenizer, const struct json_place *top,
                                     const struct added_tokens *added) {
  struct reading reading = {.added = added,
                            .model = {.model_type = 1,
                                      .unknown_text = " \xe2\x81\x87 ", /* U+2047 */
                                      .unknown_text_bytes = 5,
                                      .words_alone = true,
                                      .dummy_prefix = true,
                                      .remove_extra_spaces = true,
                                      .escape_spaces = true}};
  enum status status = read_model(&reading, top);
  if (status == STATUS_OK)
    status = has_sentinels(&reading) ? t5_open_around(tokenizer, open_read, &reading)
                                     : open_read(tokenizer, &reading);
  tokenizer->rules = "huggingface unigram 1";
  unigram_model_free(&reading.model);
  TRY(status);
  return STATUS_OK;
}
