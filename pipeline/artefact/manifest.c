#include "pipeline/artefact/manifest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

enum status manifest_set_text(char **member, const char *value) {
  char *copy = strdup(value);
  CHECK(copy, STATUS_ENVIRONMENT, "out of memory");
  free(*member);
  *member = copy;
  return STATUS_OK;
}

/* Makes room for one more item of a list. */
static enum status extend(void **items, int64_t count, size_t bytes) {
  void *larger = realloc(*items, (size_t)(count + 1) * bytes);
  CHECK(larger, STATUS_ENVIRONMENT, "out of memory: a list of %lld", (long long)count);
  *items = larger;
  memset((char *)larger + (size_t)count * bytes, 0, bytes);
  return STATUS_OK;
}

enum status manifest_add_input(struct manifest *manifest, const char *name, const char *hash) {
  CHECK(strlen(hash) == HASH_HEX_BYTES - 1, STATUS_INTERNAL, "'%s' is no hash of 32 digits", hash);
  TRY(extend((void **)&manifest->inputs, manifest->input_count, sizeof *manifest->inputs));
  struct manifest_input *input = &manifest->inputs[manifest->input_count++];
  memcpy(input->hash, hash, HASH_HEX_BYTES);
  return manifest_set_text(&input->name, name);
}

enum status manifest_add_output(struct manifest *manifest, const char *path,
                                struct blocks *blocks) {
  CHECK(!manifest_find(manifest, path), STATUS_INTERNAL, "output '%s' is listed twice", path);
  TRY(extend((void **)&manifest->outputs, manifest->output_count, sizeof *manifest->outputs));
  struct manifest_output *output = &manifest->outputs[manifest->output_count++];
  output->blocks = *blocks;
  *blocks = (struct blocks){0};
  return manifest_set_text(&output->path, path);
}

enum status manifest_join(char path[PATH_MAX], const char *folder, const char *name) {
  CHECK(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", folder, name);
  return STATUS_OK;
}

enum status manifest_add_file(struct manifest *manifest, const char *folder, const char *path) {
  char whole[PATH_MAX];
  struct blocks blocks;
  TRY(manifest_join(whole, folder, path));
  TRY(blocks_of_file(&blocks, whole));
  const enum status status = manifest_add_output(manifest, path, &blocks);
  blocks_free(&blocks);
  return status;
}

static enum status verify_size(const struct manifest_output *output, const char *folder) {
  char path[PATH_MAX];
  uint64_t bytes = 0;
  TRY(manifest_join(path, folder, output->path));
  CHECK(file_exists(path), STATUS_DAMAGED, "'%s' is missing; the manifest lists it", path);
  TRY(file_size(&bytes, path));
  CHECK(bytes == output->blocks.file_bytes, STATUS_DAMAGED,
        "'%s' has %llu bytes, the manifest says %llu", path, (unsigned long long)bytes,
        (unsigned long long)output->blocks.file_bytes);
  return STATUS_OK;
}

enum status manifest_verify(const struct manifest *manifest, const char *folder, bool hashes) {
  char path[PATH_MAX];
  for (int64_t i = 0; i < manifest->output_count; i++)
    TRY(verify_size(&manifest->outputs[i], folder));
  for (int64_t i = 0; hashes && i < manifest->output_count; i++) {
    TRY(manifest_join(path, folder, manifest->outputs[i].path));
    TRY(blocks_verify_file(&manifest->outputs[i].blocks, path));
  }
  return STATUS_OK;
}

static enum status describe(struct text *text, const struct manifest *manifest) {
  TRY(text_format(text, "%s %s\n", manifest->kind ? manifest->kind : "", manifest->config_hash));
  for (int64_t i = 0; i < manifest->input_count; i++)
    TRY(text_format(text, "< %s %s\n", manifest->inputs[i].name, manifest->inputs[i].hash));
  for (int64_t i = 0; i < manifest->output_count; i++)
    TRY(text_format(text, "> %s %016llx\n", manifest->outputs[i].path,
                    (unsigned long long)blocks_digest(&manifest->outputs[i].blocks)));
  return STATUS_OK;
}

enum status manifest_identity(char hex[HASH_HEX_BYTES], struct manifest *manifest) {
  struct text text = {0};
  manifest_sort(manifest);
  const enum status status = describe(&text, manifest);
  if (status == STATUS_OK) hash_to_hex(hex, hash_bytes128(text.bytes, text.length));
  text_free(&text);
  return status;
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const struct manifest_output *)a)->path,
                ((const struct manifest_output *)b)->path);
}

void manifest_sort(struct manifest *manifest) {
  if (manifest->output_count)
    qsort(manifest->outputs, (size_t)manifest->output_count, sizeof *manifest->outputs, by_path);
}

const struct manifest_output *manifest_find(const struct manifest *manifest, const char *path) {
  for (int64_t i = 0; i < manifest->output_count; i++)
    if (strcmp(manifest->outputs[i].path, path) == 0) return &manifest->outputs[i];
  return NULL;
}

void manifest_free(struct manifest *manifest) {
  for (int64_t i = 0; i < manifest->input_count; i++) free(manifest->inputs[i].name);
  for (int64_t i = 0; i < manifest->output_count; i++) {
    free(manifest->outputs[i].path);
    blocks_free(&manifest->outputs[i].blocks);
  }
  free(manifest->kind);
  free(manifest->node);
  free(manifest->build);
  free(manifest->inputs);
  free(manifest->outputs);
  scalars_free(&manifest->facts);
  scalars_free(&manifest->timings);
  scalars_free(&manifest->state);
  *manifest = (struct manifest){0};
}
