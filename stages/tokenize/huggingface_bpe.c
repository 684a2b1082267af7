/* Byte-level BPE of a tokenizer.json. The file lists merges in their order; our tokens are merged
 * by rank (bpe.h). So ranks are given in the order of the merges, and every merge that ranks imply
 * must be one of the file's: then both give the same tokens. Pairs beyond those can never stand
 * side by side, since their bytes alone are merged in another way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/huggingface.h"
#include "stages/tokenize/tokenizer_kind.h"

enum { ALPHABET = 0x144 }; /* code points that stand for bytes are below it */

struct reading {
  const struct added_tokens *added;
  struct json_place model, vocabulary, merges;
  int16_t byte_of[ALPHABET]; /* of each code point; -1: none */
  struct bpe_vocabulary found;
  int32_t *rank_of; /* [vocabulary_size], owned: of each id; -1: none yet */
  bool *confirmed;  /* [vocabulary_size], owned: ranks whose merge is in the file */
};

/* --- tokens ----------------------------------------------------------------------------------- */

/* The code points of the byte-level alphabet: printable bytes stand for themselves, the others are
 * numbered from 256 on. (bytes_to_unicode of openai/gpt-2, encoder.py) */
static void fill_alphabet(int16_t byte_of[ALPHABET]) {
  int next = 256;
  for (int i = 0; i < ALPHABET; i++) byte_of[i] = -1;
  for (int byte = 0; byte < 256; byte++) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    byte_of[printable ? byte : next++] = (int16_t)byte;
  }
}

/* Appends the bytes that a token's text stands for; false when it has another character. */
static bool is_byte_level(const struct reading *reading, struct text *bytes, const char *string,
                          enum status *status) {
  const unsigned char *s = (const unsigned char *)string;
  while (*s) {
    const unsigned point = *s < 0x80 ? *s : (*s & 0x1fu) << 6 | (s[1] & 0x3fu);
    const int byte = *s < 0xe0 && point < ALPHABET ? reading->byte_of[point] : -1;
    const char c = (char)byte;
    if (byte < 0) return false;
    *status = text_add_bytes(bytes, &c, 1);
    s += *s < 0x80 ? 1 : 2;
  }
  return true;
}

/* The added token with this id, or NULL. */
static const struct added_token *find_added(const struct reading *reading, int32_t id) {
  const struct added_tokens *added = reading->added;
  for (size_t i = 0; i < added->count && added->tokens[i].id <= id; i++)
    if (added->tokens[i].id == id) return &added->tokens[i];
  return NULL;
}

/* The largest id of the file, and that each is possible and given once. */
static enum status measure(struct reading *reading) {
  const char *text;
  json_t *value;
  const size_t count = reading->added->count;
  int32_t last = count ? reading->added->tokens[count - 1].id : -1;
  CHECK(json_is_object(reading->vocabulary.value), STATUS_DAMAGED, "%s: expected an object",
        reading->vocabulary.path);
  json_object_foreach(reading->vocabulary.value, text, value) {
    const struct json_place place = json_place_member(&reading->vocabulary, text);
    int64_t id;
    TRY(json_place_integer(&id, &place, 0, BPE_MAX_TOKENS - 1));
    if (id > last) last = (int32_t)id;
  }
  reading->found.vocabulary_size = last + 1;
  return STATUS_OK;
}

static enum status allocate(struct reading *reading) {
  const size_t size = (size_t)reading->found.vocabulary_size + 1;
  reading->found.tokens = calloc(size, sizeof *reading->found.tokens);
  reading->found.ids = malloc(size * sizeof *reading->found.ids);
  reading->found.specials = malloc(size * sizeof *reading->found.specials);
  reading->rank_of = malloc(size * sizeof *reading->rank_of);
  reading->confirmed = calloc(size, sizeof *reading->confirmed);
  CHECK(reading->found.tokens && reading->found.ids && reading->found.specials &&
            reading->rank_of && reading->confirmed,
        STATUS_ENVIRONMENT, "out of memory: %zu tokens", size);
  for (size_t i = 0; i < size; i++) reading->rank_of[i] = -1;
  return STATUS_OK;
}

static enum status check_ids(struct reading *reading) {
  bool *const seen = reading->confirmed;
  const char *text;
  json_t *value;
  json_object_foreach(reading->vocabulary.value, text, value) {
    const int32_t id = (int32_t)json_integer_value(value);
    CHECK(!seen[id], STATUS_DAMAGED, "%s: the id %d of '%s' is there twice",
          reading->vocabulary.path, id, text);
    seen[id] = true;
    const struct added_token *added = find_added(reading, id);
    CHECK(!added || strcmp(added->text, text) == 0, STATUS_DAMAGED,
          "%s: '%s' has the id %d of the added token '%s'", reading->vocabulary.path, text, id,
          added->text);
  }
  memset(seen, 0, (size_t)reading->found.vocabulary_size * sizeof *seen);
  return STATUS_OK;
}

/* Gives the next rank to a token of the vocabulary. Room for its bytes is there. */
static enum status add_token(struct reading *reading, int32_t id, const char *string) {
  struct bpe_vocabulary *found = &reading->found;
  const size_t before = found->bytes.length;
  enum status status = STATUS_OK;
  CHECK(is_byte_level(reading, &found->bytes, string, &status), STATUS_DAMAGED,
        "%s: '%s' has a character that stands for no byte; only byte-level BPE is covered",
        reading->vocabulary.path, string);
  TRY(status);
  reading->rank_of[id] = found->count;
  found->ids[found->count] = id;
  found->tokens[found->count++] = (struct bpe_token){
      (const unsigned char *)found->bytes.bytes + before, (uint32_t)(found->bytes.length - before)};
  return STATUS_OK;
}

/* Tokens of one byte, in the order of the alphabet. */
static enum status add_single_bytes(struct reading *reading) {
  for (unsigned point = 0; point < ALPHABET; point++) {
    const char two[] = {(char)(0xc0 | point >> 6), (char)(0x80 | (point & 0x3f)), 0};
    const char one[] = {(char)point, 0};
    const char *name = point < 0x80 ? one : two;
    const json_t *id = json_object_get(reading->vocabulary.value, name);
    if (reading->byte_of[point] >= 0 && id)
      TRY(add_token(reading, (int32_t)json_integer_value(id), name));
  }
  return STATUS_OK;
}

/* --- merges ----------------------------------------------------------------------------------- */

/* A merge, the ranks of its parts and of what they make. */
struct merge {
  const char *left, *right; /* borrowed from the file, or from `held` */
  struct text held, joined; /* owned */
  int32_t left_rank, right_rank, rank;
};

/* "left right", or ["left", "right"]. */
static enum status read_parts(struct merge *merge, const struct json_place *place) {
  const struct json_place first = json_place_item(place, 0), second = json_place_item(place, 1);
  if (json_array_size(place->value) == 2) {
    TRY(json_place_string(&merge->left, &first));
    return json_place_string(&merge->right, &second);
  }
  TRY(json_place_string(&merge->left, place));
  text_clear(&merge->held);
  TRY(text_add(&merge->held, merge->left));
  char *gap = strchr(merge->held.bytes, ' ');
  CHECK(gap && gap > merge->held.bytes && gap[1] && !strchr(gap + 1, ' '), STATUS_DAMAGED,
        "%s: expected two tokens with a space between them", place->path);
  *gap = 0;
  merge->left = merge->held.bytes;
  merge->right = gap + 1;
  return STATUS_OK;
}

static enum status find_id(const struct reading *reading, const char *token, int32_t *id,
                           const struct json_place *place) {
  const json_t *value = json_object_get(reading->vocabulary.value, token);
  CHECK(value, STATUS_DAMAGED, "%s: '%s' is not in the vocabulary", place->path, token);
  *id = (int32_t)json_integer_value(value);
  return STATUS_OK;
}

/* Reads a merge of tokens that have ranks; what it makes gets the next rank, if it has none yet. */
static enum status read_merge(struct reading *reading, struct merge *merge,
                              const struct json_place *place) {
  int32_t left = 0, right = 0, joined = 0;
  TRY(read_parts(merge, place));
  TRY(find_id(reading, merge->left, &left, place));
  TRY(find_id(reading, merge->right, &right, place));
  text_clear(&merge->joined);
  TRY(text_add(&merge->joined, merge->left));
  TRY(text_add(&merge->joined, merge->right));
  TRY(find_id(reading, merge->joined.bytes, &joined, place));
  if (reading->rank_of[joined] < 0) TRY(add_token(reading, joined, merge->joined.bytes));
  merge->left_rank = reading->rank_of[left];
  merge->right_rank = reading->rank_of[right];
  merge->rank = reading->rank_of[joined];
  CHECK(merge->left_rank >= 0 && merge->right_rank >= 0 && merge->left_rank < merge->rank &&
            merge->right_rank < merge->rank,
        STATUS_DAMAGED, "%s: '%s' and '%s' are merged before both of them are made", place->path,
        merge->left, merge->right);
  return STATUS_OK;
}

/* Goes through the merges of the file: to give ranks, and then, with the merges that the ranks
 * imply, to see that these are among them and in their order. */
static enum status read_merges(struct reading *reading, const struct bpe *implied) {
  size_t count;
  int32_t last = -1;
  struct merge merge = {0};
  enum status status = json_place_list(&count, &reading->merges);
  for (size_t i = 0; i < count && status == STATUS_OK; i++) {
    const struct json_place place = json_place_item(&reading->merges, i);
    status = read_merge(reading, &merge, &place);
    if (status != STATUS_OK || !implied) continue;
    const struct bpe_split *split = &implied->splits[merge.rank];
    if (split->left != merge.left_rank || split->right != merge.right_rank) continue;
    reading->confirmed[merge.rank] = merge.rank > last;
    last = merge.rank;
  }
  text_free(&merge.held);
  text_free(&merge.joined);
  return status;
}

static enum status check_merges(struct reading *reading, const struct bpe *implied) {
  TRY(read_merges(reading, implied));
  for (int32_t rank = 0; rank < implied->count; rank++)
    CHECK(reading->confirmed[rank] || implied->tokens[rank].count == 1, STATUS_MISMATCH,
          "%s: the token of the id %d is not made by merging the bytes it stands for in the order "
          "of the list; such merges are not covered",
          reading->merges.path, reading->found.ids[rank]);
  return STATUS_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static enum status check_model(const struct json_place *model) {
  static const char *const unset[] = {"dropout",  "unk_token",     "continuing_subword_prefix",
                                      "fuse_unk", "byte_fallback", "end_of_word_suffix"};
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
    const struct json_place place = json_place_member(model, unset[i]);
    TRY(json_place_must_be_unset(&place));
  }
  return STATUS_OK;
}

static enum status check_around(const struct json_place *top) {
  const struct json_place normalizer = json_place_member(top, "normalizer");
  const struct json_place decoder = json_place_member(top, "decoder");
  CHECK(!normalizer.value, STATUS_MISMATCH,
        "normalizer: '%s' is not covered for byte-level BPE; expected null",
        json_place_type(&normalizer));
  CHECK(!decoder.value || !strcmp(json_place_type(&decoder), "ByteLevel"), STATUS_MISMATCH,
        "decoder: '%s' is not covered; expected ByteLevel", json_place_type(&decoder));
  return STATUS_OK;
}

/* Tokens that no merge makes: text never gives them, unless whole words are looked up. */
static enum status add_specials(struct reading *reading) {
  const struct json_place ignore = json_place_member(&reading->model, "ignore_merges");
  const char *text;
  json_t *value;
  struct bpe_vocabulary *found = &reading->found;
  for (size_t i = 0; i < reading->added->count; i++)
    found->specials[found->special_count++] = reading->added->tokens[i].id;
  json_object_foreach(reading->vocabulary.value, text, value) {
    const int32_t id = (int32_t)json_integer_value(value);
    if (reading->rank_of[id] >= 0 || find_added(reading, id)) continue;
    CHECK(!json_is_true(ignore.value), STATUS_MISMATCH,
          "%s: with ignore_merges, '%s', which no merge makes, is not covered",
          reading->vocabulary.path, text);
    found->specials[found->special_count++] = id;
  }
  return STATUS_OK;
}

static void set_roles(struct reading *reading) {
  static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", NULL};
  static const char *const begins[] = {"<|begin_of_text|>", "<s>", "<bos>", NULL};
  static const char *const pads[] = {"<pad>", "<|pad|>", "[PAD]", NULL};
  struct bpe_vocabulary *found = &reading->found;
  const json_t *end = json_object_get(reading->vocabulary.value, ends[0]);
  const int32_t otherwise = end ? (int32_t)json_integer_value(end) : TOKEN_NONE;
  found->eos = added_tokens_find(reading->added, ends, otherwise);
  found->pad = added_tokens_find(reading->added, pads, found->eos);
  found->bos = added_tokens_find(reading->added, begins, TOKEN_NONE);
  found->reference = "Hugging Face tokenizers, special tokens as text";
}

/* Fills the vocabulary of a file whose other parts were checked. */
static enum status read_vocabulary(struct reading *reading, const struct text *file) {
  TRY(measure(reading));
  TRY(allocate(reading));
  TRY(check_ids(reading));
  TRY(text_add_bytes(&reading->found.bytes, file->bytes, file->length)); /* never more than this */
  text_clear(&reading->found.bytes);
  TRY(add_single_bytes(reading));
  TRY(read_merges(reading, NULL));
  TRY(add_specials(reading));
  set_roles(reading);
  CHECK(reading->found.eos != TOKEN_NONE, STATUS_MISMATCH,
        "added_tokens: none ends a document; expected one of <|endoftext|>, <|end_of_text|>, "
        "</s>, <eos>");
  return STATUS_OK;
}

static enum status open_and_check(struct reading *reading, struct tokenizer *tokenizer) {
  enum status status = read_vocabulary(reading, &tokenizer->model);
  if (status != STATUS_OK) bpe_vocabulary_free(&reading->found);
  TRY(status);
  TRY(bpe_tokenizer_open(tokenizer, &reading->found));
  return check_merges(reading, bpe_tokenizer_merges(tokenizer));
}

enum status huggingface_open_bpe(struct tokenizer *tokenizer, const struct json_place *top,
                                 const struct added_tokens *added) {
  struct reading reading = {.added = added, .model = json_place_member(top, "model")};
  reading.vocabulary = json_place_member(&reading.model, "vocab");
  reading.merges = json_place_member(&reading.model, "merges");
  fill_alphabet(reading.byte_of);
  TRY(check_model(&reading.model));
  TRY(check_around(top));
  TRY(huggingface_read_cut(&reading.found.cut, top));
  const enum status status = open_and_check(&reading, tokenizer);
  free(reading.rank_of);
  free(reading.confirmed);
  TRY(status);
  return STATUS_OK;
}
