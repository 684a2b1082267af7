/* millrace plan: what `run` would do, without doing it. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/embed_plan.h"
#include "pipeline/driver/estimate.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/sweep_plan.h"
#include "pipeline/driver/training_plan.h"

/* What the plan is of. */
struct plan {
  struct run *run; /* borrowed */
  struct site site;
  struct bench_rates rates;
};

static void print_sizes(const struct estimate *estimate) {
  char size[24];
  printf("  reads %s", text_size(size, estimate->input_bytes));
  if (estimate->disk_bytes) printf(", writes about %s", text_size(size, estimate->disk_bytes));
  printf("\n");
}

static enum status print_launch(const struct run *run, const struct site *site,
                                const struct recipe_node *node) {
  struct launch launch = {0};
  struct text line = {0};
  TRY(launch_node(&launch, site, run, node));
  const enum status status = launch_format(&line, &launch);
  if (status == STATUS_OK) printf("  %s\n", line.bytes);
  text_free(&line);
  return status;
}

/* Free space where the run folder is or will be. */
static uint64_t free_bytes(const struct run *run) {
  char path[PATH_MAX];
  struct statvfs info;
  snprintf(path, sizeof path, "%s", run->folder);
  while (!file_exists(path) && strlen(path) > 1) memmove(path, dirname(path), strlen(path) + 1);
  if (statvfs(path, &info) != 0) return 0;
  return (uint64_t)info.f_bavail * info.f_frsize;
}

static enum status print_embeddings(const struct plan *plan, const struct estimate *estimates,
                                    const struct recipe_node *node) {
  const struct recipe_node *embed;
  if (node->kind != KIND_PRETRAIN) return STATUS_OK;
  TRY(recipe_upstream(&embed, &plan->run->recipe, node, IN_EMBED));
  if (!embed) return STATUS_OK;
  return embed_plan_print(&(struct embed_plan_request){
      .run = plan->run,
      .node = node,
      .site = &plan->site,
      .rates = &plan->rates,
      .token_bytes = estimates[embed - plan->run->recipe.nodes].input_bytes,
      .free_bytes = free_bytes(plan->run)});
}

/* What the configurations of a sweep take, added to its estimate. */
static enum status print_sweep(const struct plan *plan, const struct recipe_node *node, bool look,
                               struct estimate *estimate) {
  struct sweep_of of;
  struct sweep_plan sums;
  if (node->kind != KIND_SWEEP) return STATUS_OK;
  TRY(sweep_of_open(&of, plan->run, node));
  const enum status status = sweep_plan_of(&sums, &of, &plan->site, &plan->rates, look);
  sweep_of_close(&of);
  TRY(status);
  estimate->disk_bytes = sums.disk_bytes;
  sweep_plan_print(&sums);
  return STATUS_OK;
}

static enum status print_node(const struct plan *plan, const struct graph *graph,
                              struct estimate *estimates, size_t index) {
  const struct run *run = plan->run;
  const struct site *site = &plan->site;
  const struct recipe_node *node = &run->recipe.nodes[index];
  const struct node_report *report = &graph->nodes[index];
  printf("%s: %s", node->name, kind_name(node->kind));
  if (kind_is_parallel(node->kind))
    printf(", %lld ranks x %lld threads", (long long)node->options.ranks,
           (long long)launch_threads(site, node));
  printf(", %s\n", report->running ? "running" : graph_state_name(report->state));
  if (report->state == NODE_FINISHED) return STATUS_OK;
  if (node->kind != KIND_SWEEP) print_sizes(&estimates[index]);
  TRY(print_sweep(plan, node, !report->waits, &estimates[index]));
  TRY(training_plan_print(run, node, site, &plan->rates));
  TRY(print_embeddings(plan, estimates, node));
  return print_launch(run, site, node);
}

static enum status find_rates(struct plan *plan, const struct arguments *arguments) {
  char path[PATH_MAX];
  if (!arguments->rates) TRY(site_beside(path, "../bench"));
  TRY(bench_rates_read(&plan->rates, arguments->rates ? arguments->rates : path, plan->site.cores));
  uint64_t storage = 0;
  if (!arguments->storage_rate) return STATUS_OK;
  CHECK(text_parse_size(&storage, arguments->storage_rate) && storage > 0, STATUS_USAGE,
        "--storage-rate: expected a size a second such as 500MB, found '%s'",
        arguments->storage_rate);
  plan->rates.storage = (double)storage;
  return STATUS_OK;
}

static enum status print_nodes(const struct plan *plan, const struct graph *graph,
                               const struct recipe_node *target) {
  const struct run *run = plan->run;
  struct estimate estimates[RECIPE_NODES];
  size_t todo = 0, wanted = 0;
  uint64_t needed = 0;
  char need[24], have[24];
  for (size_t i = 0; i < run->recipe.node_count; i++) {
    const size_t index = run->recipe.order[i];
    TRY(estimate_node(estimates, run, index));
    if (!run_wants(run, target, index)) continue;
    wanted++;
    TRY(print_node(plan, graph, estimates, index));
    if (graph->nodes[index].problem != STATUS_OK)
      printf("  cannot be made: %s", graph->nodes[index].why.bytes);
    if (graph->nodes[index].state == NODE_FINISHED) continue;
    todo++;
    needed += estimates[index].disk_bytes;
  }
  printf("%zu of %zu nodes to make in %s; about %s to write, %s free; %lld cores, by %s\n", todo,
         wanted, run->folder, text_size(need, needed), text_size(have, free_bytes(run)),
         (long long)plan->site.cores, plan->site.launcher);
  return STATUS_OK;
}

static enum status print_plan(struct run *run, const struct arguments *arguments,
                              struct graph *graph) {
  struct plan plan = {.run = run};
  const struct recipe_node *target = NULL;
  TRY(site_find(&plan.site, arguments));
  TRY(find_rates(&plan, arguments));
  TRY(graph_examine(graph, run));
  if (arguments->node) TRY(recipe_find(&target, &run->recipe, arguments->node));
  TRY(print_nodes(&plan, graph, target));
  for (size_t i = 0; i < run->recipe.node_count; i++)
    if (run_wants(run, target, i)) TRY(sweep_check_node(run, &run->recipe.nodes[i], arguments));
  return STATUS_OK;
}

enum status command_plan(int argc, char **argv) {
  struct arguments arguments;
  struct graph graph = {0};
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.operands.count <= 1, STATUS_USAGE, "expected: millrace plan [RECIPE | RUN]");
  TRY(run_open(&run, &arguments, 0));
  const enum status status = print_plan(&run, &arguments, &graph);
  graph_free(&graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}
