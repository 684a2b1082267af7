/* millrace data diff */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/shard_rows.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/data_commands.h"

struct column_pair {
  struct shard_rows a, b;
  struct source_cache cache_a, cache_b;
  struct text row_a, row_b;
};

/* The first element of two rows that differs, in elements. */
static int64_t first_difference(const struct column_pair *pair, size_t width) {
  const struct text *a = &pair->row_a, *b = &pair->row_b;
  const size_t shared = a->length < b->length ? a->length : b->length;
  size_t at = 0;
  while (at < shared && a->bytes[at] == b->bytes[at]) at++;
  return (int64_t)(at / width);
}

static enum status print_row(struct column_pair *pair, int64_t row) {
  struct text line_a = {0}, line_b = {0};
  const size_t width = dtype_bytes(pair->a.plain.dtype);
  const int64_t at = first_difference(pair, width);
  struct text from_a = {.bytes = pair->row_a.bytes + (size_t)at * width,
                        .length = pair->row_a.length - (size_t)at * width};
  struct text from_b = {.bytes = pair->row_b.bytes + (size_t)at * width,
                        .length = pair->row_b.length - (size_t)at * width};
  enum status status = shard_rows_format(&line_a, &pair->a, &from_a, 8);
  if (status == STATUS_OK) status = shard_rows_format(&line_b, &pair->b, &from_b, 8);
  if (status == STATUS_OK)
    printf("  %s: first in row %" PRId64 ", position %" PRId64 ": from there %s and %s\n",
           pair->a.tensor->name, row, at, line_a.bytes, line_b.bytes);
  text_free(&line_a);
  text_free(&line_b);
  return status;
}

static enum status compare_rows(struct column_pair *pair, bool *differ) {
  const int64_t rows = pair->a.rows < pair->b.rows ? pair->a.rows : pair->b.rows;
  for (int64_t row = 0; row < rows; row++) {
    TRY(shard_rows_read(&pair->a, &pair->cache_a, row, &pair->row_a));
    TRY(shard_rows_read(&pair->b, &pair->cache_b, row, &pair->row_b));
    if (pair->row_a.length == pair->row_b.length &&
        memcmp(pair->row_a.bytes, pair->row_b.bytes, pair->row_a.length) == 0)
      continue;
    *differ = true;
    return print_row(pair, row);
  }
  *differ |= pair->a.rows != pair->b.rows;
  if (pair->a.rows != pair->b.rows)
    printf("  %s: the first %" PRId64 " rows are the same, of %" PRId64 " and %" PRId64 "\n",
           pair->a.tensor->name, rows, pair->a.rows, pair->b.rows);
  return STATUS_OK;
}

static enum status compare_column(const struct safetensors *a, const struct safetensors *b,
                                  const char *name, bool *differ) {
  struct column_pair pair = {0};
  char kind_a[SAFETENSORS_DESCRIPTION], kind_b[SAFETENSORS_DESCRIPTION];
  if (!safetensors_find(b, name)) {
    printf("  %s: only in the first\n", name);
    *differ = true;
    return STATUS_OK;
  }
  TRY(shard_rows_find(&pair.a, a, name));
  TRY(shard_rows_find(&pair.b, b, name));
  if (pair.a.plain.dtype != pair.b.plain.dtype) {
    printf("  %s: %s and %s\n", name, safetensors_describe(kind_a, &pair.a.plain),
           safetensors_describe(kind_b, &pair.b.plain));
    *differ = true;
    return STATUS_OK;
  }
  const enum status status = compare_rows(&pair, differ);
  source_cache_free(&pair.cache_a);
  source_cache_free(&pair.cache_b);
  text_free(&pair.row_a);
  text_free(&pair.row_b);
  return status;
}

static bool is_offsets(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && strcmp(dot, ".offsets") == 0; /* they follow from the rows of their column */
}

static enum status compare_columns(const struct safetensors *a, const struct safetensors *b,
                                   bool *differ) {
  for (int64_t i = 0; i < a->count; i++)
    if (!is_offsets(a->tensors[i].name)) TRY(compare_column(a, b, a->tensors[i].name, differ));
  for (int64_t i = 0; i < b->count; i++) {
    if (safetensors_find(a, b->tensors[i].name)) continue;
    printf("  %s: only in the second\n", b->tensors[i].name);
    *differ = true;
  }
  return STATUS_OK;
}

static enum status compare_files(const char *path_a, const char *path_b, bool *differ) {
  struct safetensors a, b;
  TRY(safetensors_open(&a, path_a, NULL));
  enum status status = safetensors_open(&b, path_b, NULL);
  if (status == STATUS_OK) {
    status = compare_columns(&a, &b, differ);
    safetensors_close(&b);
  }
  safetensors_close(&a);
  return status;
}

/* --- folders -----------------------------------------------------------------------------------
 */

/* Prints the lines of `a` that `b` lacks. */
static enum status print_lines(const struct text *a, const struct text *b, const char *mark,
                               bool *differ) {
  struct text line = {0};
  for (const char *at = a->bytes; *at;) {
    const size_t length = strcspn(at, "\n");
    text_clear(&line);
    TRY(text_format(&line, "\n%.*s\n", (int)length, at));
    if (length && !strstr(b->bytes, line.bytes)) {
      printf("%s %.*s\n", mark, (int)length, at);
      *differ = true;
    }
    at += length + (at[length] == '\n');
  }
  text_free(&line);
  return STATUS_OK;
}

/* The options and inputs of a node, a line each, behind an empty line. */
static enum status read_options(struct text *options, const char *folder) {
  char path[PATH_MAX];
  TRY(manifest_join(path, folder, "fingerprint"));
  TRY(text_add(options, "\n"));
  if (file_exists(path)) TRY(file_read(options, path));
  return text_add(options, "\n");
}

static enum status compare_options(const char *folder_a, const char *folder_b, bool *differ) {
  struct text a = {0}, b = {0};
  enum status status = read_options(&a, folder_a);
  if (status == STATUS_OK) status = read_options(&b, folder_b);
  if (status == STATUS_OK) status = print_lines(&a, &b, "<", differ);
  if (status == STATUS_OK) status = print_lines(&b, &a, ">", differ);
  text_free(&a);
  text_free(&b);
  return status;
}

static enum status describe_facts(struct text *text, const struct scalars *facts) {
  TRY(text_add(text, "\n"));
  for (int64_t i = 0; i < facts->count; i++) {
    const struct scalar *fact = &facts->items[i];
    if (fact->kind == SCALAR_INTEGER)
      TRY(text_format(text, "fact %s: %" PRId64 "\n", fact->name, fact->integer));
    else if (fact->kind == SCALAR_REAL)
      TRY(text_format(text, "fact %s: %.17g\n", fact->name, fact->real));
    else
      TRY(text_format(text, "fact %s: %s\n", fact->name, fact->text));
  }
  return STATUS_OK;
}

static enum status compare_facts(const struct manifest *a, const struct manifest *b, bool *differ) {
  struct text one = {0}, two = {0};
  enum status status = describe_facts(&one, &a->facts);
  if (status == STATUS_OK) status = describe_facts(&two, &b->facts);
  if (status == STATUS_OK) status = print_lines(&one, &two, "<", differ);
  if (status == STATUS_OK) status = print_lines(&two, &one, ">", differ);
  text_free(&one);
  text_free(&two);
  return status;
}

static bool same_bytes(const struct blocks *a, const struct blocks *b) {
  return a->file_bytes == b->file_bytes && a->count == b->count &&
         blocks_digest(a) == blocks_digest(b);
}

/* NAME-TAG-00017.safetensors.zst without the tag, which depends on options. */
static void untagged(char out[PATH_MAX], const char *path) {
  const char *first = strchr(path, '-'), *last = strrchr(path, '-');
  if (first && last > first)
    snprintf(out, PATH_MAX, "%.*s%s", (int)(first - path), path, last);
  else
    snprintf(out, PATH_MAX, "%s", path);
}

static const struct manifest_output *counterpart(const struct manifest *manifest,
                                                 const char *path) {
  char wanted[PATH_MAX], name[PATH_MAX];
  untagged(wanted, path);
  for (int64_t i = 0; i < manifest->output_count; i++) {
    untagged(name, manifest->outputs[i].path);
    if (strcmp(name, wanted) == 0) return &manifest->outputs[i];
  }
  return NULL;
}

struct folders {
  const char *a, *b;
  struct manifest manifest_a, manifest_b;
};

/* Compares one output; *shown: a difference inside a shard was shown already. */
static enum status compare_output(const struct folders *folders,
                                  const struct manifest_output *output, bool *shown, bool *differ) {
  char path_a[PATH_MAX], path_b[PATH_MAX];
  const struct manifest_output *other = counterpart(&folders->manifest_b, output->path);
  if (other && same_bytes(&output->blocks, &other->blocks)) return STATUS_OK;
  *differ = true;
  printf("%s: %s\n", output->path, other ? "other bytes" : "only in the first");
  if (!other || *shown || !strstr(output->path, ".safetensors")) return STATUS_OK;
  *shown = true;
  TRY(manifest_join(path_a, folders->a, output->path));
  TRY(manifest_join(path_b, folders->b, other->path));
  return compare_files(path_a, path_b, differ);
}

static enum status compare_folders(struct folders *folders, bool *differ) {
  bool shown = false;
  const struct manifest *a = &folders->manifest_a, *b = &folders->manifest_b;
  TRY(compare_options(folders->a, folders->b, differ));
  TRY(compare_facts(a, b, differ));
  for (int64_t i = 0; i < a->output_count; i++)
    TRY(compare_output(folders, &a->outputs[i], &shown, differ));
  for (int64_t i = 0; i < b->output_count; i++) {
    if (counterpart(a, b->outputs[i].path)) continue;
    printf("%s: only in the second\n", b->outputs[i].path);
    *differ = true;
  }
  return STATUS_OK;
}

static enum status diff_folders(const char *a, const char *b, bool *differ) {
  struct folders folders = {.a = a, .b = b};
  TRY(manifest_read(&folders.manifest_a, a));
  enum status status = manifest_read(&folders.manifest_b, b);
  if (status == STATUS_OK) status = compare_folders(&folders, differ);
  manifest_free(&folders.manifest_a);
  manifest_free(&folders.manifest_b);
  return status;
}

enum status data_diff(const char *a, const char *b) {
  bool differ = false;
  const bool files = strstr(a, ".safetensors") && strstr(b, ".safetensors");
  TRY(files ? compare_files(a, b, &differ) : diff_folders(a, b, &differ));
  if (!differ) printf("the same\n");
  CHECK(!differ, STATUS_MISMATCH, "'%s' and '%s' differ", a, b);
  return STATUS_OK;
}
