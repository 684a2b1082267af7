/* millrace data ls|head|verify|export|stat|audit|diff: what shards and other safetensors files
 * hold. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/shard_rows.h"
#include "pipeline/artefact/zstd_stream.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/data_commands.h"

enum { HEAD_ROWS = 5, HEAD_NUMBERS = 16 };

static bool is_tensors(const char *path) {
  const char *dot = strstr(path, ".safetensors");
  return dot && (!strcmp(dot, ".safetensors") || !strcmp(dot, ".safetensors.zst"));
}

/* Calls `visit` for a file, or for each listed file of a finished folder. */
typedef enum status visit(const char *path, const struct blocks *blocks, void *context);

static enum status visit_folder(const char *folder, struct manifest *manifest, visit *each,
                                void *context) {
  char path[PATH_MAX];
  for (int64_t i = 0; i < manifest->output_count; i++) {
    TRY(manifest_join(path, folder, manifest->outputs[i].path));
    TRY(each(path, &manifest->outputs[i].blocks, context));
  }
  return STATUS_OK;
}

static enum status visit_all(const char *path, visit *each, void *context) {
  struct manifest manifest = {0};
  if (is_tensors(path) || seekable_is_name(path)) return each(path, NULL, context);
  TRY(manifest_read(&manifest, path));
  const enum status status = visit_folder(path, &manifest, each, context);
  manifest_free(&manifest);
  return status;
}

static enum status print_tensors(const struct safetensors *file) {
  char description[SAFETENSORS_DESCRIPTION];
  for (int64_t i = 0; i < file->count; i++) {
    struct shard_rows column;
    TRY(shard_rows_find(&column, file, file->tensors[i].name));
    printf("  %-32s %s%s\n", file->tensors[i].name,
           safetensors_describe(description, &column.plain), column.planes ? ", byte planes" : "");
  }
  for (int64_t i = 0; i < file->pair_count; i++)
    printf("  %s: %s\n", file->pairs[i].key, file->pairs[i].value);
  return STATUS_OK;
}

static enum status list_one(const char *path, const struct blocks *blocks, void *context) {
  char stored[24], content[24];
  struct safetensors file;
  uint64_t bytes;
  (void)context;
  TRY(file_size(&bytes, path));
  if (!is_tensors(path)) {
    printf("%s  %s\n", path, text_size(stored, bytes));
    return STATUS_OK;
  }
  TRY(safetensors_open(&file, path, blocks));
  printf("%s  %s, content %s\n", path, text_size(stored, bytes),
         text_size(content, file.source.content_bytes));
  const enum status status = print_tensors(&file);
  safetensors_close(&file);
  return status;
}

static enum status verify_tensors(const char *path, const struct blocks *blocks) {
  struct safetensors file;
  TRY(safetensors_open(&file, path, blocks));
  const enum status status = safetensors_verify(&file);
  safetensors_close(&file);
  return status;
}

/* Any other zstd file: every frame is decoded and its checksum compared. */
static enum status verify_stream(const char *path) {
  struct zstd_stream stream;
  char piece[1 << 14];
  size_t got = 1;
  enum status status = STATUS_OK;
  TRY(zstd_stream_open(&stream, path));
  while (status == STATUS_OK && got) status = zstd_stream_read(&stream, piece, sizeof piece, &got);
  zstd_stream_close(&stream);
  return status;
}

static enum status verify_content(const char *path, const struct blocks *blocks) {
  if (is_tensors(path)) return verify_tensors(path, blocks);
  return seekable_is_name(path) ? verify_stream(path) : STATUS_OK;
}

static enum status verify_one(const char *path, const struct blocks *blocks, void *context) {
  int64_t *damaged = context;
  enum status status = blocks ? blocks_verify_file(blocks, path) : STATUS_OK;
  if (status == STATUS_OK) status = verify_content(path, blocks);
  if (status == STATUS_ENVIRONMENT) return status;
  *damaged += status != STATUS_OK;
  printf("%s: %s\n", path, status == STATUS_OK ? "sound" : error_message());
  return STATUS_OK;
}

static enum status verify(const char *path) {
  int64_t damaged = 0;
  TRY(visit_all(path, verify_one, &damaged));
  CHECK(!damaged, STATUS_DAMAGED, "%" PRId64 " files of '%s' are damaged", damaged, path);
  return STATUS_OK;
}

static enum status print_rows(const struct safetensors *file, const char *name, int64_t count) {
  struct shard_rows column;
  struct source_cache cache = {0};
  struct text bytes = {0}, line = {0};
  enum status status = shard_rows_find(&column, file, name);
  for (int64_t row = 0; status == STATUS_OK && row < count && row < column.rows; row++) {
    text_clear(&line);
    status = shard_rows_read(&column, &cache, row, &bytes);
    if (status == STATUS_OK) status = shard_rows_format(&line, &column, &bytes, HEAD_NUMBERS);
    if (status == STATUS_OK) printf("%s[%" PRId64 "] %s\n", column.tensor->name, row, line.bytes);
  }
  text_free(&bytes);
  text_free(&line);
  source_cache_free(&cache);
  return status;
}

struct head {
  const char *column;
  int64_t rows;
  bool done;
};

static enum status head_one(const char *path, const struct blocks *blocks, void *context) {
  struct head *head = context;
  struct safetensors file;
  if (head->done || !is_tensors(path)) return STATUS_OK;
  TRY(safetensors_open(&file, path, blocks));
  const enum status status = print_rows(&file, head->column, head->rows);
  safetensors_close(&file);
  head->done = true;
  return status;
}

static enum status head(const struct argument_list *operands) {
  struct head wanted = {.rows = HEAD_ROWS};
  if (operands->count > 2) wanted.column = operands->items[2];
  CHECK(operands->count < 4 || text_parse_integer(&wanted.rows, operands->items[3]), STATUS_USAGE,
        "'%s' is not a number of rows", operands->items[3]);
  return visit_all(operands->items[1], head_one, &wanted);
}

static enum status export(const char *from, const char *to) {
  struct safetensors file; TRY(safetensors_open(&file, from, NULL));
  const enum status status = shard_rows_export(&file, to);
  safetensors_close(&file);
  return status;
}

static const char USE[] =
    "expected: millrace data ls PATH | head PATH [COLUMN [ROWS]] | verify PATH | export FILE OUT | "
    "stat TOKENS | audit TOKENS | diff A B, PATH being a finished folder, a safetensors or a .zst "
    "file, TOKENS a finished tokenize node, A and B two folders or two files";

enum status command_data(int argc, char **argv) {
  struct arguments arguments;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  const struct argument_list *operands = &arguments.operands;
  CHECK(operands->count >= 2 && operands->count <= 4, STATUS_USAGE, "%s", USE);
  const char *verb = operands->items[0], *path = operands->items[1];
  if (!strcmp(verb, "head")) return head(operands);
  if (!strcmp(verb, "ls") && operands->count == 2) return visit_all(path, list_one, NULL);
  if (!strcmp(verb, "verify") && operands->count == 2) return verify(path);
  if (!strcmp(verb, "stat") && operands->count == 2) return data_stat(path);
  if (!strcmp(verb, "audit") && operands->count == 2) return data_audit(path);
  if (!strcmp(verb, "diff") && operands->count == 3) return data_diff(path, operands->items[2]);
  if (!strcmp(verb, "export") && operands->count == 3) return export(path, operands->items[2]);
  FAIL(STATUS_USAGE, "%s", USE);
}
