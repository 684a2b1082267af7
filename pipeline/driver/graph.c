#include "pipeline/driver/graph.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/run_folder.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/fingerprint.h"

static const char *const state_names[NODE_STATE_COUNT] = {
    [NODE_FINISHED] = "finished",
    [NODE_STALE] = "stale",
    [NODE_MISSING] = "to be made",
    [NODE_UNFINISHED] = "unfinished",
};

const char *graph_state_name(enum node_state state) {
  return state_names[state];
}

static enum status read_fingerprint(struct text *text, const char *folder) {
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/%s", folder, RUN_FOLDER_FINGERPRINT) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  return file_exists(path) ? file_read(text, path) : text_add(text, "");
}

/* Adds a reason for each input that is not finished. */
static enum status check_inputs(struct node_report *report, const struct graph *graph,
                                const struct run *run, const struct recipe_node *node) {
  for (size_t i = 0; i < node->input_count; i++) {
    const struct node_report *input = &graph->nodes[node->inputs[i]];
    if (input->state == NODE_FINISHED) continue;
    report->waits = true;
    TRY(text_format(&report->why, "from %s: %s\n", run->recipe.nodes[node->inputs[i]].name,
                    graph_state_name(input->state)));
  }
  return STATUS_OK;
}

static enum status compare(struct node_report *report, struct text *made, const struct text *wanted,
                           const struct run_folder *folder, bool finished) {
  TRY(read_fingerprint(made, finished ? folder->path : folder->partial));
  const bool same = strcmp(made->bytes, wanted->bytes) == 0;
  if (same) report->state = finished ? NODE_FINISHED : NODE_UNFINISHED;
  if (finished && !same) TRY(fingerprint_difference(&report->why, made->bytes, wanted->bytes));
  return STATUS_OK;
}

/* Compares what the node was made from with what it would be made from now. */
static enum status compare_folder(struct node_report *report, struct run *run,
                                  const struct recipe_node *node, const struct run_folder *folder,
                                  bool finished) {
  struct text wanted = {0}, made = {0};
  enum status status = fingerprint_make(&wanted, &run->recipe, node, run->folder, &run->cache);
  if (status == STATUS_OK) status = compare(report, &made, &wanted, folder, finished);
  text_free(&wanted);
  text_free(&made);
  TRY(status);
  return STATUS_OK;
}

/* A finished folder must still hold everything its manifest lists, by size. */
static enum status check_outputs(const struct run_folder *folder, const char *name) {
  struct manifest manifest = {0};
  enum status status = manifest_read(&manifest, folder->path);
  if (status == STATUS_OK) status = manifest_verify(&manifest, folder->path, false);
  manifest_free(&manifest);
  if (status == STATUS_OK) return STATUS_OK;
  char cause[1024];
  snprintf(cause, sizeof cause, "%s", error_message());
  FAIL(status, "node '%s' was finished but is damaged: %s; to make it again, remove '%s'", name,
       cause, folder->path);
}

static enum status examine(struct node_report *report, const struct graph *graph, struct run *run,
                           const struct recipe_node *node) {
  struct run_folder folder;
  struct lease lease;
  TRY(run_folder_locate(&folder, run->folder, node->name));
  TRY(lease_locate(&lease, run->folder, node->name));
  report->running = lease_look(&lease, report->holder) == LEASE_ALIVE;
  const bool finished = run_folder_is_finished(&folder);
  if (finished) report->state = NODE_STALE;
  if (finished && !report->running) TRY(check_outputs(&folder, node->name));
  TRY(check_inputs(report, graph, run, node));
  if (report->waits) return STATUS_OK;
  return compare_folder(report, run, node, &folder, finished);
}

enum status graph_examine_node(struct graph *graph, struct run *run, size_t index) {
  struct node_report *report = &graph->nodes[index];
  text_free(&report->why);
  *report = (struct node_report){.state = NODE_MISSING};
  const enum status status = examine(report, graph, run, &run->recipe.nodes[index]);
  if (status != STATUS_MISMATCH && status != STATUS_DAMAGED) return status;
  report->problem = status;
  text_clear(&report->why);
  return text_format(&report->why, "%s\n", error_message());
}

enum status graph_check_node(const struct graph *graph, size_t index) {
  const struct node_report *report = &graph->nodes[index];
  CHECK(report->problem == STATUS_OK, report->problem, "%.*s",
        (int)strcspn(report->why.bytes, "\n"), report->why.bytes);
  return STATUS_OK;
}

enum status graph_examine(struct graph *graph, struct run *run) {
  for (size_t i = 0; i < run->recipe.node_count; i++)
    TRY(graph_examine_node(graph, run, run->recipe.order[i]));
  return STATUS_OK;
}

void graph_free(struct graph *graph) {
  for (size_t i = 0; i < RECIPE_NODES; i++) text_free(&graph->nodes[i].why);
}
