/* millrace status, millrace why: what is finished, and what would make a node run again. */
#include <stdio.h>
#include <string.h>

#include "pipeline/driver/commands.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/ledger.h"
#include "pipeline/driver/sweep_run.h"

/* "; from tokens: stale; ..." after a state, on the same line. */
static void print_reasons(const struct node_report *report) {
  const char *separator = ": ";
  for (const char *at = report->why.bytes; at && *at;) {
    const size_t length = strcspn(at, "\n");
    printf("%s%.*s", separator, (int)length, at);
    separator = "; ";
    at += length + (at[length] == '\n');
  }
}

static const char *state_of(const struct node_report *report) {
  if (report->problem != STATUS_OK) return "blocked";
  return report->running ? "running" : graph_state_name(report->state);
}

/* " 7 of 12 configurations finished, 1 failed, 1 running" */
static enum status print_configurations(struct run *run, const struct recipe_node *node) {
  struct sweep_of of;
  size_t counts[SWEEP_STATES];
  TRY(sweep_of_open(&of, run, node));
  const enum status status = sweep_count(counts, &of);
  if (status == STATUS_OK)
    printf(" %zu of %zu configurations finished", counts[SWEEP_FINISHED], of.sweep.count);
  sweep_of_close(&of);
  TRY(status);
  if (counts[SWEEP_FAILED]) printf(", %zu failed", counts[SWEEP_FAILED]);
  if (counts[SWEEP_RUNNING]) printf(", %zu running", counts[SWEEP_RUNNING]);
  return STATUS_OK;
}

static enum status print_node(struct run *run, const struct graph *graph, size_t index) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  const struct node_report *report = &graph->nodes[index];
  struct ledger_entry entry;
  TRY(ledger_read(&entry, run, node->name));
  printf("%-14s %-10s %-10s", node->name, kind_name(node->kind), state_of(report));
  if (entry.attempts) printf(" attempts %lld,", (long long)entry.attempts);
  if (entry.attempts && entry.last_exit >= 0)
    printf(" last exit %d after %.1f s", entry.last_exit, entry.seconds);
  if (report->running)
    printf(" %s", report->holder);
  else if (entry.attempts && entry.last_exit < 0)
    printf(" last attempt was cut off");
  if (*entry.job) printf(" job %s", entry.job);
  if (node->kind == KIND_SWEEP && !report->waits) TRY(print_configurations(run, node));
  if (report->state == NODE_STALE || report->problem != STATUS_OK) print_reasons(report);
  printf("\n");
  return STATUS_OK;
}

static enum status print_all(struct run *run, struct graph *graph) {
  TRY(graph_examine(graph, run));
  printf("%s: %s\n", run->recipe.name, run->folder);
  for (size_t i = 0; i < run->recipe.node_count; i++)
    TRY(print_node(run, graph, run->recipe.order[i]));
  return STATUS_OK;
}

enum status command_status(int argc, char **argv) {
  struct arguments arguments;
  struct graph graph = {0};
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.operands.count <= 1, STATUS_USAGE, "expected: millrace status [RECIPE | RUN]");
  TRY(run_open(&run, &arguments, 0));
  const enum status status = print_all(&run, &graph);
  graph_free(&graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}

/* The reasons of a node and, indented, those of the inputs that are not finished. */
static void print_why(const struct run *run, const struct graph *graph, size_t index, int depth) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  const struct node_report *report = &graph->nodes[index];
  const int indent = 2 * depth;
  printf("%*s%s is %s\n", indent, "", node->name, graph_state_name(report->state));
  for (const char *at = report->why.bytes; at && *at && !report->waits;) {
    const size_t length = strcspn(at, "\n");
    printf("%*s  %.*s\n", indent, "", (int)length, at);
    at += length + (at[length] == '\n');
  }
  for (size_t i = 0; report->waits && i < node->input_count; i++)
    if (graph->nodes[node->inputs[i]].state != NODE_FINISHED)
      print_why(run, graph, node->inputs[i], depth + 1);
}

static enum status explain(struct run *run, struct graph *graph, const char *name) {
  const struct recipe_node *node;
  TRY(recipe_find(&node, &run->recipe, name));
  TRY(graph_examine(graph, run));
  print_why(run, graph, (size_t)(node - run->recipe.nodes), 0);
  return STATUS_OK;
}

enum status command_why(int argc, char **argv) {
  struct arguments arguments;
  struct graph graph = {0};
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  const size_t count = arguments.operands.count;
  CHECK(count == 1 || count == 2, STATUS_USAGE, "expected: millrace why NODE [RECIPE | RUN]");
  TRY(run_open(&run, &arguments, 1));
  const enum status status = explain(&run, &graph, arguments.operands.items[0]);
  graph_free(&graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}
