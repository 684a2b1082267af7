/* manifest.h: side files that describe single outputs until the manifest does. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/output_json.h"
#include "pipeline/base/file.h"

static const char SUFFIX[] = ".done";

static enum status side_path(char path[PATH_MAX], const char *folder, const char *name) {
  char side[PATH_MAX];
  TRY(manifest_join(side, folder, name));
  CHECK(snprintf(path, PATH_MAX, "%s%s", side, SUFFIX) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s'", side);
  return STATUS_OK;
}

enum status manifest_write_done(const char *folder, const char *path, const struct blocks *blocks) {
  char side[PATH_MAX];
  json_t *object;
  TRY(side_path(side, folder, path));
  TRY(output_json_make(&object, path, blocks));
  char *dump = json_dumps(object, JSON_COMPACT);
  json_decref(object);
  CHECK(dump, STATUS_ENVIRONMENT, "out of memory");
  const enum status status = file_write(side, dump, strlen(dump));
  free(dump);
  return status;
}

static enum status read_side(const char *side, char **path, struct blocks *blocks) {
  json_error_t error;
  const char *found;
  struct text text = {0};
  TRY(file_read(&text, side));
  json_t *object = json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES, &error);
  text_free(&text);
  CHECK(object, STATUS_DAMAGED, "'%s' is not sound JSON: %s; remove it to make that output again",
        side, error.text);
  enum status status = output_json_read(object, &found, blocks, side);
  if (status == STATUS_OK) status = manifest_set_text(path, found);
  if (status != STATUS_OK) blocks_free(blocks);
  json_decref(object);
  return status;
}

bool manifest_is_done(const char *folder, const char *path) {
  char side[PATH_MAX], whole[PATH_MAX], *listed = NULL;
  struct blocks blocks = {0};
  uint64_t bytes = 0;
  const bool done = side_path(side, folder, path) == STATUS_OK && file_exists(side) &&
                    manifest_join(whole, folder, path) == STATUS_OK &&
                    read_side(side, &listed, &blocks) == STATUS_OK && strcmp(listed, path) == 0 &&
                    file_size(&bytes, whole) == STATUS_OK && bytes == blocks.file_bytes;
  blocks_free(&blocks);
  free(listed);
  return done;
}

static bool is_side(const char *name) {
  const size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
  return length > suffix && strcmp(name + length - suffix, SUFFIX) == 0;
}

static enum status collect_one(struct manifest *manifest, const char *folder, const char *name) {
  char side[PATH_MAX], *path = NULL;
  struct blocks blocks = {0};
  TRY(manifest_join(side, folder, name));
  TRY(read_side(side, &path, &blocks));
  const enum status status = manifest_add_output(manifest, path, &blocks);
  blocks_free(&blocks);
  free(path);
  return status;
}

enum status manifest_collect(struct manifest *manifest, const char *folder) {
  enum status status = STATUS_OK;
  DIR *listing = opendir(folder);
  CHECK(listing, STATUS_ENVIRONMENT, "cannot read folder '%s': %s", folder, strerror(errno));
  for (struct dirent *entry; status == STATUS_OK && (entry = readdir(listing));)
    if (is_side(entry->d_name)) status = collect_one(manifest, folder, entry->d_name);
  closedir(listing);
  manifest_sort(manifest);
  return status;
}

enum status manifest_forget(const struct manifest *manifest, const char *folder) {
  char side[PATH_MAX];
  for (int64_t i = 0; i < manifest->output_count; i++) {
    TRY(side_path(side, folder, manifest->outputs[i].path));
    TRY(file_remove(side));
  }
  return STATUS_OK;
}
