#include "pipeline/driver/attempt.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pipeline/driver/ledger.h"
#include "pipeline/driver/process.h"

enum { POLL_NANOSECONDS = 200000000 };

static enum status take_lease(struct lease *lease, const struct recipe_node *node) {
  char holder[LEASE_HOLDER_BYTES] = "";
  bool said = false, taken = false;
  for (;;) {
    TRY(lease_take(lease, &taken));
    if (taken) return STATUS_OK;
    CHECK(!process_stop_requested(), STATUS_STOPPED, "stopped while waiting for node '%s'",
          node->name);
    lease_look(lease, holder);
    if (!said) printf("%-14s waiting for %s, which runs it\n", node->name, holder);
    fflush(stdout);
    said = true;
    nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
  }
}

static void print_start(const struct recipe_node *node, const struct node_report *report) {
  printf("%-14s %s", node->name, kind_name(node->kind));
  if (kind_is_parallel(node->kind))
    printf(" on %lld rank%s", (long long)node->options.ranks, node->options.ranks == 1 ? "" : "s");
  if (report->state == NODE_UNFINISHED) printf(", resuming");
  if (report->state == NODE_STALE && report->why.bytes)
    printf(" again: %.*s", (int)strcspn(report->why.bytes, "\n"), report->why.bytes);
  printf("\n");
  fflush(stdout);
}

static enum status execute(struct process_outcome *outcome, struct run *run,
                           const struct site *site, const struct recipe_node *node,
                           struct lease *lease) {
  char log[PATH_MAX];
  struct launch launch = {0};
  TRY(run_path(log, run, node->name, ".log"));
  TRY(launch_node(&launch, site, run, node));
  TRY(ledger_start(run, node->name, node->options.ranks));
  const struct process_plan plan = {.words = launch.words,
                                    .log = log,
                                    .lease = lease,
                                    .stop_signal = launch.stop_signal,
                                    .start_seconds = launch.start_seconds};
  TRY(process_run(outcome, &plan));
  return ledger_end(run, node->name, outcome->exit_code, outcome->seconds);
}

/* The status of the node, with a message that says what to do. */
static enum status conclude(const struct process_outcome *outcome, const struct run *run,
                            const struct recipe_node *node, enum node_state state) {
  if (state == NODE_FINISHED) {
    printf("%-14s finished in %.1f s\n", node->name, outcome->seconds);
    return STATUS_OK;
  }
  const enum status status = outcome->status == STATUS_OK ? STATUS_INTERNAL : outcome->status;
  FAIL(status, "node '%s' ended with exit code %d after %.1f s: %s\n  log: %s/%s.log", node->name,
       outcome->exit_code, outcome->seconds,
       outcome->status == STATUS_OK ? "it published nothing" : error_meaning(status), run->folder,
       node->name);
}

static enum status attempt_leased(struct graph *graph, struct run *run, const struct site *site,
                                  size_t index, struct lease *lease) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  struct process_outcome outcome;
  TRY(graph_examine_node(graph, run, index)); /* another driver may have finished it */
  TRY(graph_check_node(graph, index));
  if (graph->nodes[index].state == NODE_FINISHED) return STATUS_OK;
  print_start(node, &graph->nodes[index]);
  TRY(execute(&outcome, run, site, node, lease));
  TRY(graph_examine_node(graph, run, index));
  return conclude(&outcome, run, node, graph->nodes[index].state);
}

enum status attempt_node(struct graph *graph, struct run *run, const struct site *site,
                         size_t node) {
  struct lease lease;
  TRY(lease_locate(&lease, run->folder, run->recipe.nodes[node].name));
  TRY(take_lease(&lease, &run->recipe.nodes[node]));
  const enum status status = attempt_leased(graph, run, site, node, &lease);
  lease_release(&lease);
  return status;
}
