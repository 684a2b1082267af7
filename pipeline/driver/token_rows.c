#include "pipeline/driver/token_rows.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/convert.h"
#include "pipeline/artefact/shard_rows.h"
#include "pipeline/base/file.h"

static enum status unpack(struct token_rules *rules, json_t *json, const char *path) {
  const char *kind, *hash;
  json_int_t vocabulary, pad, eos, unk, bos;
  json_error_t problem;
  CHECK(json_unpack_ex(json, &problem, 0, "{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "kind", &kind,
                       "hash", &hash, "vocabulary_size", &vocabulary, "pad", &pad, "eos", &eos,
                       "unk", &unk, "bos", &bos) == 0,
        STATUS_DAMAGED, "%s: %s", path, problem.text);
  snprintf(rules->kind, sizeof rules->kind, "%s", kind);
  snprintf(rules->hash, sizeof rules->hash, "%s", hash);
  CHECK(vocabulary > 0, STATUS_DAMAGED, "%s: a vocabulary of %lld ids", path,
        (long long)vocabulary);
  rules->vocabulary_size = vocabulary;
  rules->pad = pad;
  rules->eos = eos;
  rules->unk = unk;
  rules->bos = bos;
  return STATUS_OK;
}

enum status token_rules_read(struct token_rules *rules, const char *folder) {
  char path[PATH_MAX];
  json_error_t problem;
  struct text text = {0};
  TRY(manifest_join(path, folder, "tokenizer.json"));
  CHECK(file_exists(path), STATUS_MISMATCH, "'%s' is no finished tokenize node: it has no %s",
        folder, "tokenizer.json");
  TRY(file_read(&text, path));
  json_t *json = json_loadb(text.bytes, text.length, 0, &problem);
  text_free(&text);
  CHECK(json, STATUS_DAMAGED, "%s:%d: %s", path, problem.line, problem.text);
  const enum status status = unpack(rules, json, path);
  json_decref(json);
  return status;
}

bool token_side_of(enum token_side *side, const char *path) {
  *side = strncmp(path, "held_out-", 9) == 0 ? TOKEN_HELD_OUT : TOKEN_TRAIN;
  if (*side == TOKEN_TRAIN && strncmp(path, "train-", 6) != 0) return false;
  return strstr(path, ".safetensors") != NULL;
}

struct walk {
  struct source_cache cache;
  struct text bytes, ids;
  void *context;
  enum status (*visit)(void *context, const struct token_row *row);
};

static enum status convert(struct walk *walk, struct token_row *row, enum dtype dtype) {
  const size_t width = dtype_bytes(dtype);
  int32_t id;
  text_clear(&walk->ids);
  for (size_t at = 0; at + width <= walk->bytes.length; at += width) {
    TRY(convert_to_int32(&id, walk->bytes.bytes + at, dtype, 1));
    const int64_t wide = id;
    TRY(text_add_bytes(&walk->ids, &wide, sizeof wide));
  }
  row->ids = (const int64_t *)(const void *)walk->ids.bytes;
  row->count = (int64_t)(walk->ids.length / sizeof *row->ids);
  return STATUS_OK;
}

static enum status visit_rows(struct walk *walk, const struct safetensors *file,
                              struct token_row row) {
  struct shard_rows column;
  const char *packing = safetensors_value(file, "packing");
  row.wrapped = packing && strcmp(packing, "wrapped") == 0;
  TRY(shard_rows_find(&column, file, "tokens"));
  for (row.row = 0; row.row < column.rows; row.row++) {
    TRY(shard_rows_read(&column, &walk->cache, row.row, &walk->bytes));
    TRY(convert(walk, &row, column.plain.dtype));
    TRY(walk->visit(walk->context, &row));
  }
  return STATUS_OK;
}

static enum status visit_shard(struct walk *walk, const char *folder,
                               const struct manifest_output *output) {
  char path[PATH_MAX];
  struct safetensors file;
  struct token_row row = {.shard = output->path};
  if (!token_side_of(&row.side, output->path)) return STATUS_OK;
  TRY(manifest_join(path, folder, output->path));
  TRY(safetensors_open(&file, path, &output->blocks));
  const enum status status = visit_rows(walk, &file, row);
  source_cache_free(&walk->cache);
  safetensors_close(&file);
  return status;
}

enum status token_rows_each(const char *folder, const struct manifest *manifest, void *context,
                            enum status visit(void *context, const struct token_row *row)) {
  struct walk walk = {.context = context, .visit = visit};
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < manifest->output_count && status == STATUS_OK; i++)
    status = visit_shard(&walk, folder, &manifest->outputs[i]);
  text_free(&walk.bytes);
  text_free(&walk.ids);
  return status;
}
