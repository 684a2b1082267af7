#include "pipeline/artefact/run_folder.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"

enum status run_folder_locate(struct run_folder *folder, const char *run, const char *node) {
  const int path = snprintf(folder->path, PATH_MAX, "%s/%s", run, node);
  const int partial = snprintf(folder->partial, PATH_MAX, "%s/%s.partial", run, node);
  const int old = snprintf(folder->old, PATH_MAX, "%s/%s.old", run, node);
  CHECK(path < PATH_MAX && partial < PATH_MAX && old < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", run, node);
  return STATUS_OK;
}

bool run_folder_is_finished(const struct run_folder *folder) {
  char path[PATH_MAX];
  return manifest_join(path, folder->path, MANIFEST_NAME) == STATUS_OK && file_exists(path);
}

/* Whether `.partial` was begun for `fingerprint`. */
static enum status is_same(bool *same, const char *path, const char *fingerprint) {
  struct text recorded = {0};
  *same = false;
  if (!file_exists(path)) return STATUS_OK;
  const enum status status = file_read(&recorded, path);
  *same = status == STATUS_OK && strcmp(recorded.bytes, fingerprint) == 0;
  text_free(&recorded);
  return status;
}

/* A publication that was cut short leaves the finished folder under its old or its new name. */
static enum status mend(const struct run_folder *folder) {
  if (!file_exists(folder->old)) return STATUS_OK;
  if (file_exists(folder->path)) return file_remove(folder->old);
  return file_rename(folder->old, folder->path);
}

/* The last moves of a publication. */
static enum status swap(const struct run_folder *folder) {
  if (file_exists(folder->path)) TRY(file_rename(folder->path, folder->old));
  TRY(file_rename(folder->partial, folder->path));
  return file_remove(folder->old);
}

/* A `.partial` with a sound manifest lacks only the last moves. */
static bool is_complete(const struct run_folder *folder) {
  struct manifest manifest = {0};
  const bool complete = manifest_read(&manifest, folder->partial) == STATUS_OK &&
                        manifest_verify(&manifest, folder->partial, false) == STATUS_OK &&
                        manifest_forget(&manifest, folder->partial) == STATUS_OK;
  manifest_free(&manifest);
  return complete;
}

static enum status resume(const struct run_folder *folder, enum run_folder_start *start) {
  char path[PATH_MAX];
  *start = RUN_FOLDER_RESUMED;
  TRY(file_sweep(folder->partial));
  TRY(manifest_join(path, folder->partial, MANIFEST_NAME));
  if (!file_exists(path)) return STATUS_OK;
  if (!is_complete(folder)) return file_remove(path);
  *start = RUN_FOLDER_FINISHED;
  return swap(folder);
}

enum status run_folder_begin(const struct run_folder *folder, const char *fingerprint,
                             enum run_folder_start *start) {
  char path[PATH_MAX];
  bool same;
  TRY(mend(folder));
  TRY(manifest_join(path, folder->partial, RUN_FOLDER_FINGERPRINT));
  TRY(is_same(&same, path, fingerprint));
  if (same) return resume(folder, start);
  *start = file_exists(folder->partial) ? RUN_FOLDER_DISCARDED : RUN_FOLDER_FRESH;
  TRY(file_remove(folder->partial));
  TRY(file_make_folder(folder->partial));
  return file_write(path, fingerprint, strlen(fingerprint));
}

enum status run_folder_publish(const struct run_folder *folder, struct manifest *manifest) {
  TRY(mend(folder));
  TRY(manifest_verify(manifest, folder->partial, true));
  TRY(manifest_write(manifest, folder->partial));
  TRY(manifest_forget(manifest, folder->partial));
  return swap(folder);
}
