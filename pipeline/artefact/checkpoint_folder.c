#define _XOPEN_SOURCE 700
#include "pipeline/artefact/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

static const char LATEST[] = "latest";

enum status checkpoint_folder_step(char path[PATH_MAX], const char *folder, int64_t step) {
  CHECK(snprintf(path, PATH_MAX, "%s/step-%" PRId64, folder, step) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s'", folder);
  return STATUS_OK;
}

enum status checkpoint_folder_part(char path[PATH_MAX], const char *folder, int64_t step,
                                   const char *run_id) {
  CHECK(snprintf(path, PATH_MAX, "%s/step-%" PRId64 ".part.%s", folder, step, run_id) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  return STATUS_OK;
}

static enum status mark_path(char path[PATH_MAX], const char *folder, int64_t step) {
  CHECK(snprintf(path, PATH_MAX, "%s/step-%" PRId64 ".damaged", folder, step) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  return STATUS_OK;
}

/* Reads "step-N" exactly. */
static bool parse_step(int64_t *step, const char *name) {
  return strncmp(name, "step-", 5) == 0 && name[5] >= '0' && name[5] <= '9' &&
         text_parse_integer(step, name + 5);
}

static enum status add_step(struct checkpoint_steps *steps, const char *folder, int64_t step) {
  char path[PATH_MAX];
  struct checkpoint_step *items = realloc(steps->items, (size_t)(steps->count + 1) * sizeof *items);
  CHECK(items, STATUS_ENVIRONMENT, "out of memory: a list of checkpoints");
  steps->items = items;
  TRY(mark_path(path, folder, step));
  items[steps->count++] = (struct checkpoint_step){.step = step, .damaged = file_exists(path)};
  return STATUS_OK;
}

static int newest_first(const void *a, const void *b) {
  const int64_t x = ((const struct checkpoint_step *)a)->step,
                y = ((const struct checkpoint_step *)b)->step;
  return (x < y) - (x > y);
}

/* Calls `visit` for each entry of the folder; a folder that does not exist has none. */
static enum status each_entry(const char *folder, void *context,
                              enum status visit(void *context, const char *name)) {
  enum status status = STATUS_OK;
  DIR *listing = opendir(folder);
  if (!listing && errno == ENOENT) return STATUS_OK;
  CHECK(listing, STATUS_ENVIRONMENT, "cannot read folder '%s': %s", folder, strerror(errno));
  for (struct dirent *entry; status == STATUS_OK && (entry = readdir(listing));)
    status = visit(context, entry->d_name);
  closedir(listing);
  return status;
}

struct list_context {
  struct checkpoint_steps *steps;
  const char *folder;
};

static enum status list_entry(void *argument, const char *name) {
  struct list_context *context = argument;
  int64_t step;
  if (!parse_step(&step, name)) return STATUS_OK;
  return add_step(context->steps, context->folder, step);
}

enum status checkpoint_folder_list(struct checkpoint_steps *steps, const char *folder) {
  *steps = (struct checkpoint_steps){0};
  struct list_context context = {.steps = steps, .folder = folder};
  const enum status status = each_entry(folder, &context, list_entry);
  if (status != STATUS_OK) checkpoint_folder_free(steps);
  TRY(status);
  if (steps->count) qsort(steps->items, (size_t)steps->count, sizeof *steps->items, newest_first);
  return STATUS_OK;
}

void checkpoint_folder_free(struct checkpoint_steps *steps) {
  free(steps->items);
  *steps = (struct checkpoint_steps){0};
}

enum status checkpoint_folder_point(const char *folder, int64_t step) {
  char path[PATH_MAX], number[32];
  TRY(manifest_join(path, folder, LATEST));
  snprintf(number, sizeof number, "%" PRId64 "\n", step);
  return file_write(path, number, strlen(number));
}

enum status checkpoint_folder_latest(const char *folder, int64_t *step) {
  char path[PATH_MAX];
  struct text text = {0};
  TRY(manifest_join(path, folder, LATEST));
  TRY(file_read(&text, path));
  if (text.length && text.bytes[text.length - 1] == '\n') text.bytes[text.length - 1] = '\0';
  const bool sound = text_parse_integer(step, text.bytes) && *step >= 0;
  text_free(&text);
  CHECK(sound, STATUS_DAMAGED, "'%s' does not hold the number of a step", path);
  return STATUS_OK;
}

enum status checkpoint_folder_mark(const char *folder, int64_t step, const char *reason) {
  char path[PATH_MAX];
  TRY(mark_path(path, folder, step));
  return file_write(path, reason, strlen(reason));
}

/* Takes a step out of sight in one move, so that what is listed is whole. */
static enum status remove_step(const char *folder, int64_t step) {
  char path[PATH_MAX], part[PATH_MAX], mark[PATH_MAX];
  TRY(checkpoint_folder_step(path, folder, step));
  TRY(checkpoint_folder_part(part, folder, step, "removed"));
  TRY(mark_path(mark, folder, step));
  TRY(file_remove(part));
  TRY(file_rename(path, part));
  TRY(file_remove(mark));
  return file_remove(part);
}

bool checkpoint_folder_has(const char *folder, int64_t step) {
  char path[PATH_MAX], mark[PATH_MAX];
  return checkpoint_folder_step(path, folder, step) == STATUS_OK && file_exists(path) &&
         mark_path(mark, folder, step) == STATUS_OK && !file_exists(mark);
}

enum status checkpoint_folder_publish(const char *folder, int64_t step, const char *run_id) {
  char part[PATH_MAX], path[PATH_MAX];
  TRY(checkpoint_folder_part(part, folder, step, run_id));
  TRY(checkpoint_folder_step(path, folder, step));
  CHECK(!checkpoint_folder_has(folder, step), STATUS_WRITE,
        "'%s' is published already and is never written again", path);
  if (file_exists(path)) TRY(remove_step(folder, step));
  TRY(file_rename(part, path));
  return checkpoint_folder_point(folder, step);
}

/* Whether an old step stays all the same. */
static bool is_kept(const struct checkpoint_retention *keep, const struct checkpoint_step *step) {
  if (step->damaged) return false;
  return step->step == keep->best || (keep->every > 0 && step->step % keep->every == 0);
}

enum status checkpoint_folder_retain(const char *folder, const struct checkpoint_retention *keep) {
  struct checkpoint_steps steps;
  enum status status = STATUS_OK;
  int64_t sound = 0;
  TRY(checkpoint_folder_list(&steps, folder));
  for (int64_t i = 0; i < steps.count && status == STATUS_OK; i++) {
    const struct checkpoint_step *step = &steps.items[i];
    const bool old = sound >= (keep->newest < 2 ? 2 : keep->newest);
    if (old && !is_kept(keep, step)) status = remove_step(folder, step->step);
    sound += !step->damaged;
  }
  checkpoint_folder_free(&steps);
  return status;
}

struct sweep_context {
  const char *folder, *run_id;
  int64_t age_seconds;
};

static enum status sweep_entry(void *argument, const char *name) {
  const struct sweep_context *context = argument;
  char path[PATH_MAX];
  struct stat info;
  const char *part = strstr(name, ".part.");
  if (strncmp(name, "step-", 5) != 0 || !part) return STATUS_OK;
  if (context->run_id && strcmp(part + 6, context->run_id) == 0) return STATUS_OK;
  TRY(manifest_join(path, context->folder, name));
  if (lstat(path, &info) != 0 || time(NULL) - info.st_mtime < context->age_seconds)
    return STATUS_OK;
  return file_remove(path);
}

enum status checkpoint_folder_sweep(const char *folder, const char *run_id, int64_t age_seconds) {
  struct sweep_context context = {.folder = folder, .run_id = run_id, .age_seconds = age_seconds};
  return each_entry(folder, &context, sweep_entry);
}
