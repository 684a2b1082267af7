#define _XOPEN_SOURCE 700
#include "pipeline/driver/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/file.h"
#include "pipeline/config/ranks.h"
#include "pipeline/driver/lease.h"

static enum status join(char path[PATH_MAX], const char *folder, const char *name) {
  CHECK(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", folder, name);
  return STATUS_OK;
}

enum status run_path(char path[PATH_MAX], const struct run *run, const char *name,
                     const char *ending) {
  CHECK(snprintf(path, PATH_MAX, "%s/%s%s", run->folder, name, ending) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s%s'", run->folder, name, ending);
  return STATUS_OK;
}

/* The absolute form of a path that need not exist yet. */
static enum status absolute(char path[PATH_MAX], const char *given) {
  char here[PATH_MAX];
  if (*given == '/') return join(path, "", given + 1);
  CHECK(realpath(".", here), STATUS_ENVIRONMENT, "the present folder has no path: %s",
        strerror(errno));
  while (strncmp(given, "./", 2) == 0) given += 2;
  return join(path, here, given);
}

void run_open_cache(struct run *run) {
  char file[PATH_MAX];
  if (run_path(file, run, RUN_CACHE, "") == STATUS_OK) content_cache_read(&run->cache, file);
}

static enum status apply_ranks(struct run *run, const struct arguments *arguments) {
  if (arguments->ranks) TRY(recipe_set_ranks(&run->recipe, arguments->ranks));
  for (size_t i = 0; i < run->recipe.node_count; i++) {
    const struct recipe_node *node = &run->recipe.nodes[i];
    TRY(ranks_check(&node->options, node->kind, node->name, node->options.ranks));
  }
  return STATUS_OK;
}

static enum status open_recipe(struct run *run, const struct arguments *arguments,
                               const char *recipe) {
  char runs[PATH_MAX];
  TRY(recipe_load(&run->recipe, recipe, arguments->settings.items, arguments->settings.count));
  TRY(absolute(runs, arguments->runs));
  return join(run->folder, runs, run->recipe.name);
}

enum status run_open_folder(struct run *run, const char *folder) {
  char resolved[PATH_MAX];
  memset(run, 0, sizeof *run);
  TRY(absolute(run->folder, folder));
  TRY(join(resolved, run->folder, RUN_RESOLVED));
  CHECK(file_exists(resolved), STATUS_MISMATCH, "'%s' is not a run folder: it has no %s", folder,
        RUN_RESOLVED);
  TRY(recipe_load(&run->recipe, resolved, NULL, 0));
  run_open_cache(run);
  return STATUS_OK;
}

/* The folder in `runs` whose resolved.yaml is the newest. */
static enum status find_newest(char folder[PATH_MAX], const char *runs) {
  DIR *list = opendir(runs);
  CHECK(list, STATUS_MISMATCH, "there are no runs in '%s'; name a recipe or a run folder", runs);
  struct timespec newest = {0};
  folder[0] = '\0';
  for (const struct dirent *entry; (entry = readdir(list));) {
    char path[PATH_MAX];
    struct stat info;
    const int length = snprintf(path, sizeof path, "%s/%s/%s", runs, entry->d_name, RUN_RESOLVED);
    if (entry->d_name[0] == '.' || length >= PATH_MAX || stat(path, &info) != 0) continue;
    const struct timespec time = info.st_mtim;
    if (time.tv_sec < newest.tv_sec ||
        (time.tv_sec == newest.tv_sec && time.tv_nsec <= newest.tv_nsec))
      continue;
    newest = time;
    snprintf(folder, PATH_MAX, "%s/%s", runs, entry->d_name);
  }
  closedir(list);
  CHECK(*folder, STATUS_MISMATCH, "there are no runs in '%s'; name a recipe or a run folder", runs);
  return STATUS_OK;
}

static bool is_recipe(const char *operand) {
  const size_t length = strlen(operand);
  return (length > 5 && strcmp(operand + length - 5, ".yaml") == 0) ||
         (length > 4 && strcmp(operand + length - 4, ".yml") == 0);
}

/* Opens a run folder named by path or by its name in --runs. */
static enum status open_named(struct run *run, const struct arguments *arguments,
                              const char *name) {
  char resolved[PATH_MAX], folder[PATH_MAX];
  TRY(join(resolved, name, RUN_RESOLVED));
  if (file_exists(resolved)) return run_open_folder(run, name);
  TRY(join(folder, arguments->runs, name));
  TRY(join(resolved, folder, RUN_RESOLVED));
  CHECK(file_exists(resolved), STATUS_MISMATCH,
        "'%s' is neither a recipe (*.yaml) nor a run folder, and '%s' has no run of that name",
        name, arguments->runs);
  return run_open_folder(run, folder);
}

static enum status open_any(struct run *run, const struct arguments *arguments, size_t skip) {
  const char *operand =
      arguments->operands.count > skip ? arguments->operands.items[skip] : arguments->run;
  char newest[PATH_MAX];
  if (operand && is_recipe(operand)) return open_recipe(run, arguments, operand);
  CHECK(arguments->settings.count == 0, STATUS_USAGE, "--set needs a recipe (*.yaml) to change");
  if (operand) return open_named(run, arguments, operand);
  TRY(find_newest(newest, arguments->runs));
  return run_open_folder(run, newest);
}

enum status run_open(struct run *run, const struct arguments *arguments, size_t skip) {
  memset(run, 0, sizeof *run);
  enum status status = open_any(run, arguments, skip);
  if (status == STATUS_OK) status = apply_ranks(run, arguments);
  if (status != STATUS_OK) {
    run_close(run);
    return status;
  }
  if (!run->cache.lines.bytes) run_open_cache(run);
  return STATUS_OK;
}

static enum status check_idle(const struct run *run) {
  for (size_t i = 0; i < run->recipe.node_count; i++) {
    struct lease lease;
    char holder[LEASE_HOLDER_BYTES];
    TRY(lease_locate(&lease, run->folder, run->recipe.nodes[i].name));
    CHECK(lease_look(&lease, holder) != LEASE_ALIVE, STATUS_MISMATCH,
          "node '%s' of '%s' is at work (%s) with other options; wait for it, stop it, or give "
          "this recipe another name",
          run->recipe.nodes[i].name, run->folder, holder);
  }
  return STATUS_OK;
}

/* Writes resolved.yaml when it would change. */
static enum status write_resolved(const struct run *run, const char *path,
                                  const struct text *wanted) {
  struct text present = {0};
  const enum status status = file_exists(path) ? file_read(&present, path) : STATUS_OK;
  const bool same = status == STATUS_OK && present.length == wanted->length && present.bytes &&
                    memcmp(present.bytes, wanted->bytes, wanted->length) == 0;
  text_free(&present);
  TRY(status);
  if (same) return STATUS_OK;
  TRY(check_idle(run));
  TRY(file_write(path, wanted->bytes, wanted->length));
  return STATUS_OK;
}

enum status run_prepare(const struct run *run) {
  char path[PATH_MAX];
  struct text wanted = {0};
  TRY(file_make_folder(run->folder));
  TRY(run_path(path, run, RUN_RESOLVED, ""));
  enum status status = recipe_write(&wanted, &run->recipe);
  if (status == STATUS_OK) status = write_resolved(run, path, &wanted);
  text_free(&wanted);
  TRY(status);
  return STATUS_OK;
}

void run_close(struct run *run) {
  char file[PATH_MAX];
  if (run->folder[0] && file_exists(run->folder) && run_path(file, run, RUN_CACHE, "") == STATUS_OK)
    content_cache_close(&run->cache, file);
  else
    text_free(&run->cache.lines);
  recipe_free(&run->recipe);
}

bool run_wants(const struct run *run, const struct recipe_node *target, size_t index) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  return !target || node == target || recipe_depends(&run->recipe, target, node);
}
