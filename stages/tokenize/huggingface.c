#include "stages/tokenize/huggingface.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/tokenizer_kind.h"

/* --- added tokens ----------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b) {
  const struct added_token *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

static enum status read_added(struct added_token *token, const struct json_place *place) {
  const struct json_place content = json_place_member(place, "content"),
                          id = json_place_member(place, "id");
  const struct json_place special = json_place_member(place, "special");
  int64_t number;
  TRY(json_place_string(&token->text, &content));
  TRY(json_place_integer(&number, &id, 0, BPE_MAX_TOKENS - 1));
  token->id = (int32_t)number;
  CHECK(json_is_true(special.value), STATUS_MISMATCH,
        "%s: '%s' is an added token that is not special: text would be cut at it, which is not "
        "covered; make it special or remove it",
        place->path, token->text);
  return STATUS_OK;
}

static enum status read_all_added(struct added_tokens *added, const struct json_place *list) {
  for (size_t i = 0; i < added->count; i++) {
    const struct json_place place = json_place_item(list, i);
    TRY(read_added(&added->tokens[i], &place));
  }
  qsort(added->tokens, added->count, sizeof *added->tokens, by_id);
  for (size_t i = 1; i < added->count; i++)
    CHECK(added->tokens[i - 1].id != added->tokens[i].id, STATUS_DAMAGED,
          "added_tokens: the id %d is there twice", added->tokens[i].id);
  return STATUS_OK;
}

enum status added_tokens_read(struct added_tokens *added, const struct json_place *top) {
  const struct json_place list = json_place_member(top, "added_tokens");
  *added = (struct added_tokens){0};
  if (!list.value) return STATUS_OK;
  TRY(json_place_list(&added->count, &list));
  added->tokens = calloc(added->count + 1, sizeof *added->tokens);
  CHECK(added->tokens, STATUS_ENVIRONMENT, "out of memory: %zu added tokens", added->count);
  const enum status status = read_all_added(added, &list);
  if (status != STATUS_OK) added_tokens_free(added);
  TRY(status);
  return STATUS_OK;
}

void added_tokens_free(struct added_tokens *added) {
  free(added->tokens);
  *added = (struct added_tokens){0};
}

int32_t added_tokens_find(const struct added_tokens *added, const char *const *names,
                          int32_t otherwise) {
  for (; *names; names++)
    for (size_t i = 0; i < added->count; i++)
      if (strcmp(added->tokens[i].text, *names) == 0) return added->tokens[i].id;
  return otherwise;
}

/* --- vocab.json and merges.txt ---------------------------------------------------------------- */

/* The part of a tokenizer.json before the vocabulary, between it and the merges, and behind them:
 * what the two files of GPT-2 mean. */
static const char before_vocabulary[] =
    "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
    "\"use_regex\": true}, \"model\": {\"type\": \"BPE\", \"vocab\": ";
static const char before_merges[] = ", \"merges\": [";
static const char behind_merges[] = "]}}";

/* Adds a line as a JSON string; its bytes are checked when the whole is parsed. */
static enum status add_line(struct text *file, const char *line, size_t count) {
  TRY(text_add(file, file->bytes[file->length - 1] == '[' ? "\"" : ",\n\""));
  for (size_t i = 0; i < count; i++) {
    if (line[i] == '"' || line[i] == '\\') TRY(text_add(file, "\\"));
    TRY(text_add_bytes(file, line + i, 1));
  }
  return text_add(file, "\"");
}

static enum status add_lines(struct text *file, const struct text *merges) {
  const char *at = merges->bytes, *const end = at + merges->length;
  for (bool first = true; at < end; first = false) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t count = (size_t)((stop ? stop : end) - at);
    if (count && at[count - 1] == '\r') count--;
    const bool version = first && count >= 8 && memcmp(at, "#version", 8) == 0;
    if (count && !version) TRY(add_line(file, at, count));
    at = stop ? stop + 1 : end;
  }
  return STATUS_OK;
}

static enum status join_files(struct text *file, const char *vocabulary, const char *merges) {
  struct text words = {0}, lines = {0};
  enum status status = file_read(&words, vocabulary);
  if (status == STATUS_OK) status = file_read(&lines, merges);
  if (status == STATUS_OK) status = text_add(file, before_vocabulary);
  if (status == STATUS_OK) status = text_add_bytes(file, words.bytes, words.length);
  if (status == STATUS_OK) status = text_add(file, before_merges);
  if (status == STATUS_OK) status = add_lines(file, &lines);
  if (status == STATUS_OK) status = text_add(file, behind_merges);
  text_free(&words);
  text_free(&lines);
  TRY(status);
  return STATUS_OK;
}

/* Whether `folder`/`name` exists; `path` becomes it. */
static bool find_in(char path[PATH_MAX], const char *folder, const char *name) {
  return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && file_exists(path);
}

/* The length of the folder's name when `path` is a vocab.json in it, else 0. */
static size_t folder_of_vocabulary(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  return strcmp(name, "vocab.json") == 0 ? (size_t)(name - path) : 0;
}

static enum status read_folder(struct text *file, const char *folder) {
  char path[PATH_MAX], merges[PATH_MAX];
  if (find_in(path, folder, "tokenizer.json")) return file_read(file, path);
  CHECK(find_in(path, folder, "vocab.json") && find_in(merges, folder, "merges.txt"),
        STATUS_MISMATCH,
        "'%s' is no tokenizer of Hugging Face: expected tokenizer.json, or vocab.json and "
        "merges.txt, in a folder",
        folder);
  return join_files(file, path, merges);
}

enum status huggingface_read(struct text *file, const char *path) {
  char probe[PATH_MAX];
  if (find_in(probe, path, ".")) return read_folder(file, path);
  CHECK(strlen(path) < PATH_MAX, STATUS_MISMATCH, "path too long: '%s'", path);
  const size_t folder = folder_of_vocabulary(path);
  if (!folder && strcmp(path, "vocab.json") != 0) return file_read(file, path);
  snprintf(probe, sizeof probe, "%.*smerges.txt", (int)folder, path);
  return join_files(file, path, probe);
}

/* --- tokenizer.json --------------------------------------------------------------------------- */

static enum status open_model(struct tokenizer *tokenizer, const struct json_place *top) {
  const struct json_place truncation = json_place_member(top, "truncation");
  const struct json_place padding = json_place_member(top, "padding"),
                          model = json_place_member(top, "model");
  struct added_tokens added;
  TRY(json_place_must_be_unset(&truncation));
  TRY(json_place_must_be_unset(&padding));
  const char *type = json_place_type(&model);
  const bool unigram = strcmp(type, "Unigram") == 0;
  CHECK(unigram || strcmp(type, "BPE") == 0, STATUS_MISMATCH,
        "model.type is '%s'; covered are Unigram and BPE", type);
  TRY(added_tokens_read(&added, top));
  const enum status status = unigram ? huggingface_open_unigram(tokenizer, top, &added)
                                     : huggingface_open_bpe(tokenizer, top, &added);
  added_tokens_free(&added);
  TRY(status);
  return STATUS_OK;
}

enum status huggingface_open(struct tokenizer *tokenizer) {
  json_error_t problem;
  CHECK(tokenizer->model.length <= HUGGINGFACE_MAX_BYTES, STATUS_MISMATCH,
        "a tokenizer of %zu bytes; at most %d are read", tokenizer->model.length,
        HUGGINGFACE_MAX_BYTES);
  json_t *root =
      json_loadb(tokenizer->model.bytes, tokenizer->model.length, JSON_REJECT_DUPLICATES, &problem);
  CHECK(root, STATUS_DAMAGED, "not a tokenizer.json: line %d, byte %d: %s", problem.line,
        problem.position, problem.text);
  const struct json_place top = json_place_top(root);
  const enum status status = open_model(tokenizer, &top);
  json_decref(root);
  TRY(status);
  return STATUS_OK;
}
