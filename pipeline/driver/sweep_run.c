#define _XOPEN_SOURCE 700
#include "pipeline/driver/sweep_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/config/pool.h"
#include "pipeline/config/ranks.h"
#include "pipeline/driver/attempt.h"
#include "pipeline/driver/ledger.h"
#include "pipeline/driver/process.h"
#include "pipeline/driver/training_plan.h"

#define SWEEP_FOLDER ".sweep"

enum status sweep_of_open(struct sweep_of *of, struct run *run, const struct recipe_node *node) {
  *of = (struct sweep_of){.run = run, .node = node};
  return sweep_expand(&of->sweep, &run->recipe, node);
}

void sweep_of_close(struct sweep_of *of) {
  sweep_free(&of->sweep);
}

/* The recipe of the nodes above the sweep, with the settings of a configuration. */
static enum status parse(struct recipe *recipe, const struct sweep_of *of,
                         const struct sweep_configuration *configuration) {
  struct text yaml = {0};
  const char *settings[SWEEP_KEYS], *file;
  size_t count = 0;
  for (size_t i = 0; i < of->sweep.key_count; i++)
    if (configuration->values[i])
      TRY(pool_format(&settings[count++], of->sweep.pool, "%s=%s", of->sweep.keys[i],
                      configuration->values[i]));
  TRY(pool_format(&file, of->sweep.pool, "%s: configuration %s", of->node->name,
                  configuration->settings));
  enum status status = recipe_write_above(&yaml, &of->run->recipe, of->node, configuration->name);
  if (status == STATUS_OK) status = recipe_parse(recipe, file, &yaml, settings, count);
  text_free(&yaml);
  return status;
}

static enum status same_options(bool *same, const struct recipe_node *a,
                                const struct recipe_node *b) {
  struct text one = {0}, other = {0};
  enum status status = STATUS_OK;
  *same = true;
  for (int i = 0; i < OPTION_COUNT && *same && status == STATUS_OK; i++) {
    const enum option option = (enum option)i;
    const bool read = options_applies(&a->options, a->kind, option, NULL);
    if (!options_row(option)->changes_result) continue;
    *same = read == options_applies(&b->options, b->kind, option, NULL);
    if (!read || !*same) continue;
    text_clear(&one), text_clear(&other);
    status = options_format(&one, &a->options, option);
    if (status == STATUS_OK) status = options_format(&other, &b->options, option);
    *same = status == STATUS_OK && strcmp(one.bytes, other.bytes) == 0;
  }
  text_free(&one);
  text_free(&other);
  return status;
}

/* A node is shared when it, and all that it reads, is as in the sweep's own run. */
static enum status find_shared(struct sweep_run *own, const struct recipe *outer) {
  const struct recipe *recipe = &own->run.recipe;
  for (size_t i = 0; i < recipe->node_count; i++) {
    const size_t index = recipe->order[i];
    const struct recipe_node *node = &recipe->nodes[index], *original;
    TRY(recipe_find(&original, outer, node->name));
    TRY(same_options(&own->shared[index], node, original));
    for (size_t j = 0; j < node->input_count; j++)
      own->shared[index] = own->shared[index] && own->shared[node->inputs[j]];
  }
  return STATUS_OK;
}

/* A folder that a node made here before it was as in the run stays what counts. */
static enum status mark_shared(struct sweep_run *own) {
  for (size_t i = 0; i < own->run.recipe.node_count; i++) {
    char path[PATH_MAX];
    struct stat info;
    TRY(run_path(path, &own->run, own->run.recipe.nodes[i].name, ""));
    if (own->shared[i]) own->graph.nodes[i].state = NODE_FINISHED;
    if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) own->shared[i] = false;
  }
  return STATUS_OK;
}

static enum status open_parsed(struct sweep_run *own, const struct sweep_of *of,
                               const struct sweep_configuration *configuration) {
  const struct recipe *recipe = &own->run.recipe;
  for (size_t i = 0; i < recipe->node_count; i++) {
    const struct recipe_node *node = &recipe->nodes[i];
    TRY(ranks_check(&node->options, node->kind, node->name, node->options.ranks));
  }
  CHECK(snprintf(own->run.folder, PATH_MAX, "%s/%s" SWEEP_FOLDER "/%s", of->run->folder,
                 of->node->name, configuration->name) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", of->run->folder);
  run_open_cache(&own->run);
  TRY(find_shared(own, &of->run->recipe));
  return mark_shared(own);
}

enum status sweep_run_open(struct sweep_run *own, const struct sweep_of *of, size_t index) {
  memset(own, 0, sizeof *own);
  TRY(parse(&own->run.recipe, of, &of->sweep.configurations[index]));
  const enum status status = open_parsed(own, of, &of->sweep.configurations[index]);
  if (status != STATUS_OK) sweep_run_close(own);
  return status;
}

void sweep_run_close(struct sweep_run *own) {
  graph_free(&own->graph);
  run_close(&own->run);
}

/* Makes or removes the link to a node of the sweep's run. */
static enum status link_node(const struct sweep_run *own, size_t index) {
  const char *name = own->run.recipe.nodes[index].name;
  char path[PATH_MAX], target[RECIPE_NAME_BYTES + 8];
  TRY(run_path(path, &own->run, name, ""));
  struct stat info;
  const bool linked = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
  if (linked && !own->shared[index])
    CHECK(unlink(path) == 0, STATUS_WRITE, "cannot remove '%s': %s", path, strerror(errno));
  if (linked || !own->shared[index]) return STATUS_OK;
  snprintf(target, sizeof target, "../../%s", name);
  CHECK(symlink(target, path) == 0 || errno == EEXIST, STATUS_WRITE, "cannot link '%s': %s", path,
        strerror(errno));
  return STATUS_OK;
}

static enum status prepare(const struct sweep_run *own) {
  TRY(file_make_folder(own->run.folder));
  for (size_t i = 0; i < own->run.recipe.node_count; i++) TRY(link_node(own, i));
  return run_prepare(&own->run);
}

static enum status make_nodes(struct sweep_run *own, const struct site *site) {
  for (size_t i = 0; i < own->run.recipe.node_count; i++) {
    const size_t index = own->run.recipe.order[i];
    if (own->shared[index]) continue;
    TRY(graph_examine_node(&own->graph, &own->run, index));
    TRY(graph_check_node(&own->graph, index));
    if (own->graph.nodes[index].state == NODE_FINISHED) continue;
    CHECK(!process_stop_requested(), STATUS_STOPPED, "stopped on request before node '%s'",
          own->run.recipe.nodes[index].name);
    TRY(attempt_node(&own->graph, &own->run, site, index));
  }
  return STATUS_OK;
}

static enum status make_one(const struct sweep_of *of, const struct site *site, size_t index) {
  struct sweep_run own;
  TRY(sweep_run_open(&own, of, index));
  enum status status = prepare(&own);
  if (status == STATUS_OK) status = make_nodes(&own, site);
  sweep_run_close(&own);
  return status;
}

enum status sweep_make(enum status *failure, const struct sweep_of *of, const struct site *site,
                       struct sweep_share share) {
  *failure = STATUS_OK;
  for (size_t i = (size_t)(share.task - 1); i < of->sweep.count; i += (size_t)share.tasks) {
    struct sweep_standing standing;
    TRY(sweep_look(&standing, of, i));
    if (standing.state == SWEEP_FINISHED) continue;
    if (standing.final && of->node->options.failures > 0) continue;
    CHECK(!process_stop_requested(), STATUS_STOPPED, "stopped on request before a configuration");
    printf("%-14s configuration %zu of %zu: %s\n", of->node->name, i + 1, of->sweep.count,
           of->sweep.configurations[i].settings);
    const enum status status = make_one(of, site, i);
    if (status == STATUS_STOPPED) return error_pass(status, __FILE__, __LINE__, __func__);
    if (status == STATUS_OK) continue;
    printf("%-14s configuration %zu of %zu failed: %s\n", of->node->name, i + 1, of->sweep.count,
           error_message());
    if (*failure == STATUS_OK) *failure = status;
    error_clear();
  }
  return STATUS_OK;
}

static bool is_missing(const struct sweep_run *own) {
  bool all_shared = true;
  for (size_t i = 0; i < own->run.recipe.node_count; i++) all_shared &= own->shared[i];
  return !all_shared && !file_exists(own->run.folder);
}

/* Whether the same again would end the same way: as the batch jobs see it. */
static bool is_lasting(enum status status) {
  return status != STATUS_ENVIRONMENT && status != STATUS_WRITE && status != STATUS_HANG;
}

/* What keeps a configuration from being finished: the first node in order that is not. */
static enum status judge_node(struct sweep_standing *standing, const struct sweep_run *own,
                              size_t index) {
  const struct node_report *report = &own->graph.nodes[index];
  struct ledger_entry entry;
  const char *name = own->run.recipe.nodes[index].name;
  TRY(ledger_read(&entry, &own->run, name));
  snprintf(standing->node, sizeof standing->node, "%s", name);
  standing->exit_code = report->problem != STATUS_OK ? error_exit_code(report->problem)
                        : entry.attempts             ? entry.last_exit
                                                     : 0;
  const bool failed =
      standing->exit_code > 0 && standing->exit_code != error_exit_code(STATUS_STOPPED);
  standing->state = report->running ? SWEEP_RUNNING : failed ? SWEEP_FAILED : SWEEP_TO_BE_MADE;
  standing->final = standing->state == SWEEP_FAILED && report->state == NODE_UNFINISHED &&
                    is_lasting(error_status_of_exit(standing->exit_code));
  return STATUS_OK;
}

static enum status judge(struct sweep_standing *standing, struct sweep_run *own) {
  *standing = (struct sweep_standing){.state = SWEEP_TO_BE_MADE};
  if (is_missing(own)) return STATUS_OK;
  for (size_t i = 0; i < own->run.recipe.node_count; i++) {
    const size_t index = own->run.recipe.order[i];
    if (own->shared[index]) continue;
    TRY(graph_examine_node(&own->graph, &own->run, index));
    if (own->graph.nodes[index].state != NODE_FINISHED ||
        own->graph.nodes[index].problem != STATUS_OK)
      return judge_node(standing, own, index);
  }
  standing->state = SWEEP_FINISHED;
  return STATUS_OK;
}

enum status sweep_look(struct sweep_standing *standing, const struct sweep_of *of, size_t index) {
  struct sweep_run own;
  TRY(sweep_run_open(&own, of, index));
  const enum status status = judge(standing, &own);
  sweep_run_close(&own);
  return status;
}

enum status sweep_count(size_t counts[SWEEP_STATES], const struct sweep_of *of) {
  memset(counts, 0, SWEEP_STATES * sizeof *counts);
  for (size_t i = 0; i < of->sweep.count; i++) {
    struct sweep_standing standing;
    TRY(sweep_look(&standing, of, i));
    counts[standing.state]++;
  }
  return STATUS_OK;
}

static enum status check_configuration(const struct sweep_of *of, size_t index,
                                       const struct arguments *arguments) {
  struct sweep_run own;
  enum status status = STATUS_OK;
  TRY(sweep_run_open(&own, of, index));
  for (size_t i = 0; i < own.run.recipe.node_count && status == STATUS_OK; i++)
    status = training_plan_check(&own.run, &own.run.recipe.nodes[i], arguments);
  sweep_run_close(&own);
  return status;
}

enum status sweep_check_node(struct run *run, const struct recipe_node *node,
                             const struct arguments *arguments) {
  struct sweep_of of;
  enum status status = STATUS_OK;
  if (node->kind != KIND_SWEEP) return training_plan_check(run, node, arguments);
  TRY(sweep_of_open(&of, run, node));
  for (size_t i = 0; i < of.sweep.count && status == STATUS_OK; i++)
    status = check_configuration(&of, i, arguments);
  sweep_of_close(&of);
  return status;
}
