/* millrace run, millrace node: make what is missing or stale. */
#include <stdio.h>

#include "pipeline/driver/attempt.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/process.h"
#include "pipeline/driver/sweep_run.h"

static size_t count_unfinished(const struct graph *graph, const struct run *run,
                               const struct recipe_node *target) {
  size_t count = 0;
  for (size_t i = 0; i < run->recipe.node_count; i++)
    count += run_wants(run, target, i) && graph->nodes[i].state != NODE_FINISHED;
  return count;
}

/* Makes the configurations of a sweep; what failed is judged with the table of outcomes. */
static enum status make_configurations(struct run *run, const struct site *site,
                                       const struct recipe_node *node) {
  struct sweep_of of;
  enum status failure;
  TRY(sweep_of_open(&of, run, node));
  const enum status status = sweep_make(&failure, &of, site, (struct sweep_share){1, 1});
  sweep_of_close(&of);
  return status;
}

/* Nodes run one after the other, each on all its ranks. */
static enum status make_nodes(struct graph *graph, struct run *run, const struct site *site,
                              const struct recipe_node *target) {
  for (size_t i = 0; i < run->recipe.node_count; i++) {
    const size_t node = run->recipe.order[i];
    if (!run_wants(run, target, node)) continue;
    TRY(graph_examine_node(graph, run, node));
    TRY(graph_check_node(graph, node));
    if (graph->nodes[node].state == NODE_FINISHED) continue;
    CHECK(!process_stop_requested(), STATUS_STOPPED, "stopped on request before node '%s'",
          run->recipe.nodes[node].name);
    if (run->recipe.nodes[node].kind == KIND_SWEEP)
      TRY(make_configurations(run, site, &run->recipe.nodes[node]));
    TRY(attempt_node(graph, run, site, node));
  }
  return STATUS_OK;
}

static enum status make_run(struct run *run, const struct arguments *arguments,
                            struct graph *graph) {
  struct site site;
  const struct recipe_node *target = NULL;
  TRY(site_find(&site, arguments));
  if (arguments->node) TRY(recipe_find(&target, &run->recipe, arguments->node));
  TRY(graph_examine(graph, run));
  for (size_t i = 0; i < run->recipe.node_count; i++) /* before anything is made */
    if (run_wants(run, target, i)) {
      TRY(graph_check_node(graph, i));
      TRY(sweep_check_node(run, &run->recipe.nodes[i], arguments));
    }
  TRY(run_prepare(run));
  const size_t todo = count_unfinished(graph, run, target);
  TRY(make_nodes(graph, run, &site, target));
  if (todo == 0) printf("nothing to do: ");
  if (target)
    printf("node '%s' of '%s' is finished: %s/%s\n", target->name, run->recipe.name, run->folder,
           target->name);
  else
    printf("all %zu nodes of '%s' are finished: %s\n", run->recipe.node_count, run->recipe.name,
           run->folder);
  return STATUS_OK;
}

enum status command_run(int argc, char **argv) {
  struct arguments arguments;
  struct graph graph = {0};
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.operands.count == 1, STATUS_USAGE,
        "expected one recipe: millrace run RECIPE [--set node.key=value]... [-np N]");
  if (arguments.dry_run) return command_plan(argc, argv);
  process_watch_signals();
  TRY(run_open(&run, &arguments, 0));
  const enum status status = make_run(&run, &arguments, &graph);
  graph_free(&graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}

/* A task of a sweep's array of jobs. */
static enum status make_share(struct run *run, const struct arguments *arguments,
                              const struct site *site, const struct recipe_node *node) {
  const struct sweep_share share = {arguments->task, arguments->tasks};
  struct sweep_of of;
  enum status failure = STATUS_OK;
  TRY(sweep_of_open(&of, run, node));
  const enum status status = sweep_make(&failure, &of, site, share);
  sweep_of_close(&of);
  TRY(status);
  CHECK(failure == STATUS_OK, failure, "a configuration of task %lld of node '%s' failed",
        (long long)share.task, node->name);
  printf("the configurations of task %lld of node '%s' are finished\n", (long long)share.task,
         node->name);
  return STATUS_OK;
}

static enum status check_sweep_flags(const struct arguments *arguments,
                                     const struct recipe_node *node) {
  const bool given = arguments->task || arguments->tasks || arguments->gather;
  CHECK(!given || node->kind == KIND_SWEEP, STATUS_USAGE,
        "--task, --tasks and --gather are for sweep nodes; '%s' runs %s", node->name,
        kind_name(node->kind));
  CHECK(!arguments->task == !arguments->tasks && arguments->task <= arguments->tasks, STATUS_USAGE,
        "expected --task I --tasks N, I from 1 to N");
  CHECK(!arguments->gather || !arguments->task, STATUS_USAGE,
        "--gather makes the table alone: it goes without --task");
  return STATUS_OK;
}

/* What a job of a scheduler runs: one node, whose inputs other jobs have made. */
static enum status make_one(struct run *run, const struct arguments *arguments,
                            struct graph *graph) {
  struct site site;
  const struct recipe_node *node;
  TRY(site_find(&site, arguments));
  TRY(recipe_find(&node, &run->recipe, arguments->node));
  TRY(check_sweep_flags(arguments, node));
  const size_t index = (size_t)(node - run->recipe.nodes);
  TRY(graph_examine(graph, run));
  TRY(graph_check_node(graph, index));
  CHECK(!graph->nodes[index].waits, STATUS_MISMATCH, "node '%s' cannot run yet: %s", node->name,
        graph->nodes[index].why.bytes);
  if (arguments->task) return make_share(run, arguments, &site, node);
  if (graph->nodes[index].state == NODE_FINISHED) {
    printf("nothing to do: node '%s' is finished\n", node->name);
    return STATUS_OK;
  }
  if (node->kind == KIND_SWEEP && !arguments->gather) TRY(make_configurations(run, &site, node));
  return attempt_node(graph, run, &site, index);
}

enum status command_node(int argc, char **argv) {
  struct arguments arguments;
  struct graph graph = {0};
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.run && arguments.node && !arguments.operands.count, STATUS_USAGE,
        "expected: millrace node --run FOLDER --node NODE");
  process_watch_signals();
  TRY(run_open(&run, &arguments, 0));
  const enum status status = make_one(&run, &arguments, &graph);
  graph_free(&graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}
