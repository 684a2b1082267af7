#include "stages/tokenize/tokenizer.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/huggingface.h"
#include "stages/tokenize/tokenizer_kind.h"

static const struct kind {
  const char *name;
  enum status (*open)(struct tokenizer *tokenizer);
  enum status (*read)(struct text *model, const char *path); /* NULL: it needs no file */
} kinds[] = {
#define TOKENIZER(kind, open, file) {#kind, open, file},
#include "stages/tokenize/tokenizer_kinds.def"
#undef TOKENIZER
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const char *name, size_t length) {
  for (size_t i = 0; i < KINDS; i++)
    if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0)
      return &kinds[i];
  return NULL;
}

static enum status list_kinds(struct text *text) {
  for (size_t i = 0; i < KINDS; i++) TRY(text_format(text, "%s%s", i ? ", " : "", kinds[i].name));
  return STATUS_OK;
}

static enum status refuse_kind(const char *spec) {
  struct text known = {0};
  enum status status = list_kinds(&known);
  if (status == STATUS_OK)
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "tokenizer '%s': expected KIND:PATH with a kind of %s, or the folder of a "
                         "finished tokenize node",
                         spec, known.bytes);
  text_free(&known);
  return status;
}

static enum status hash_model(struct tokenizer *tokenizer) {
  struct hash_stream *stream = hash_open();
  CHECK(stream, STATUS_ENVIRONMENT, "out of memory: a hash");
  hash_add(stream, tokenizer->rules, strlen(tokenizer->rules) + 1);
  hash_add(stream, tokenizer->model.bytes, tokenizer->model.length);
  tokenizer->facts.hash = hash_result(stream);
  hash_close(stream);
  return STATUS_OK;
}

static enum status open_kind(struct tokenizer **out, const struct kind *kind, const char *path) {
  struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
  CHECK(tokenizer, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  tokenizer->facts.kind = kind->name;
  enum status status = STATUS_OK;
  if (kind->read) TRY_OR(status, failed, kind->read(&tokenizer->model, path));
  TRY_OR(status, failed, kind->open(tokenizer));
  TRY_OR(status, failed, hash_model(tokenizer));
  *out = tokenizer;
  return STATUS_OK;
failed:
  tokenizer_close(tokenizer);
  return status;
}

static enum status check_hash(const struct tokenizer *tokenizer, const char *path,
                              const char *expected) {
  char found[HASH_HEX_BYTES];
  hash_to_hex(found, tokenizer->facts.hash);
  CHECK(strcmp(found, expected) == 0, STATUS_DAMAGED,
        "%s records the tokenizer's hash as %s, but tokenizer.model and the rules give %s", path,
        expected, found);
  return STATUS_OK;
}

/* Opens what a parsed tokenizer.json describes. */
static enum status open_described(struct tokenizer **tokenizer, json_t *json, const char *path,
                                  const char *folder) {
  const char *kind_name = NULL, *file = NULL, *hash = NULL;
  json_error_t problem;
  CHECK(json_unpack_ex(json, &problem, 0, "{s:s, s:s, s:s}", "kind", &kind_name, "file", &file,
                       "hash", &hash) == 0,
        STATUS_DAMAGED, "%s: expected the strings kind, file and hash: %s", path, problem.text);
  const struct kind *kind = find_kind(kind_name, strlen(kind_name));
  CHECK(kind, STATUS_MISMATCH, "%s: this build knows no tokenizer kind '%s'", path, kind_name);
  char model[PATH_MAX];
  CHECK(snprintf(model, sizeof model, "%s/%s", folder, file) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", folder, file);
  struct tokenizer *opened = NULL;
  TRY(open_kind(&opened, kind, model));
  const enum status status = check_hash(opened, path, hash);
  if (status != STATUS_OK) tokenizer_close(opened);
  TRY(status);
  *tokenizer = opened;
  return STATUS_OK;
}

static enum status open_folder(struct tokenizer **tokenizer, const char *folder) {
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/tokenizer.json", folder) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s'", folder);
  CHECK(file_exists(path), STATUS_MISMATCH,
        "'%s' is not the folder of a finished tokenize node: it has no tokenizer.json", folder);
  json_error_t problem;
  json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
  CHECK(json, STATUS_DAMAGED, "%s: line %d: %s", path, problem.line, problem.text);
  const enum status status = open_described(tokenizer, json, path, folder);
  json_decref(json);
  TRY(status);
  return STATUS_OK;
}

enum status tokenizer_open(struct tokenizer **tokenizer, const char *spec) {
  *tokenizer = NULL;
  const size_t length = strcspn(spec, ":");
  const struct kind *kind = find_kind(spec, length);
  if (!kind && file_exists(spec)) return open_folder(tokenizer, spec);
  if (!kind) return refuse_kind(spec);
  CHECK((spec[length] == ':') == (kind->read != NULL), STATUS_MISMATCH,
        "tokenizer '%s': the kind %s is written as %s%s", spec, kind->name, kind->name,
        kind->read ? ":PATH" : " alone");
  return open_kind(tokenizer, kind, spec + length + 1);
}

void tokenizer_close(struct tokenizer *tokenizer) {
  if (!tokenizer) return;
  if (tokenizer->methods) tokenizer->methods->close(tokenizer->state);
  text_free(&tokenizer->model);
  free(tokenizer);
}

const struct tokenizer_facts *tokenizer_facts_of(const struct tokenizer *tokenizer) {
  return &tokenizer->facts;
}

enum status tokenizer_encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                             size_t count) {
  return tokenizer->methods->encode(tokenizer, ids, bytes, count);
}

enum status tokenizer_decode(const struct tokenizer *tokenizer, struct text *text,
                             const int32_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    CHECK(ids[i] >= 0 && ids[i] < tokenizer->facts.vocabulary_size, STATUS_MISMATCH,
          "token %zu has the id %d; the vocabulary of the %s tokenizer has %d", i, ids[i],
          tokenizer->facts.kind, tokenizer->facts.vocabulary_size);
  TRY(text_add_bytes(text, "", 0));
  return tokenizer->methods->decode(tokenizer, text, ids, count);
}

static json_t *describe(const struct tokenizer *tokenizer) {
  const struct tokenizer_facts *facts = &tokenizer->facts;
  char hash[HASH_HEX_BYTES];
  hash_to_hex(hash, facts->hash);
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "kind", facts->kind,
                   "rules", tokenizer->rules, "reference", facts->reference, "file",
                   "tokenizer.model", "hash", hash, "vocabulary_size", facts->vocabulary_size,
                   "pad", facts->pad, "eos", facts->eos, "unk", facts->unk, "bos", facts->bos,
                   "lossless", facts->lossless);
}

enum status tokenizer_save(const struct tokenizer *tokenizer, const char *folder) {
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/tokenizer.model", folder) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", folder);
  TRY(file_write(path, tokenizer->model.bytes, tokenizer->model.length));
  json_t *json = describe(tokenizer);
  char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
  json_decref(json);
  CHECK(text, STATUS_ENVIRONMENT, "out of memory: tokenizer.json");
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  const enum status status = file_write(path, text, strlen(text));
  free(text);
  TRY(status);
  return STATUS_OK;
}
