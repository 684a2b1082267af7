#include "pipeline/driver/sweep_plan.h"

#include <stdio.h>

#include "pipeline/driver/estimate.h"
#include "pipeline/driver/step_plan.h"

static enum status add_training(struct sweep_plan *plan, const struct recipe *recipe,
                                const struct recipe_node *node, const struct site *site,
                                const struct bench_rates *rates) {
  struct training_layout layout;
  if (!training_layout_applies(node)) return STATUS_OK;
  TRY(training_layout_find(&layout, recipe, node));
  const struct step_plan step = step_plan_of(&layout, launch_threads(site, node), rates);
  const struct memory_plan memory = memory_plan_of(&layout);
  const uint64_t bytes = (uint64_t)(memory_plan_all(&memory) * layout.ranks);
  plan->trainings++;
  plan->flop += step.flop * (double)node->options.steps;
  plan->seconds += step.seconds * (double)node->options.steps;
  if (bytes > plan->memory_bytes) plan->memory_bytes = bytes;
  return STATUS_OK;
}

/* The nodes of one configuration that are not links. */
static enum status add_configuration(struct sweep_plan *plan, const struct sweep_run *own,
                                     const struct site *site, const struct bench_rates *rates) {
  struct estimate estimates[RECIPE_NODES];
  const struct recipe *recipe = &own->run.recipe;
  for (size_t i = 0; i < recipe->node_count; i++) {
    const size_t index = recipe->order[i];
    TRY(estimate_node(estimates, &own->run, index));
    if (own->shared[index]) continue;
    TRY(add_training(plan, recipe, &recipe->nodes[index], site, rates));
    plan->disk_bytes += estimates[index].disk_bytes;
  }
  return STATUS_OK;
}

enum status sweep_plan_of(struct sweep_plan *plan, const struct sweep_of *of,
                          const struct site *site, const struct bench_rates *rates, bool look) {
  *plan = (struct sweep_plan){.configurations = of->sweep.count};
  for (size_t i = 0; i < of->sweep.count; i++) {
    struct sweep_standing standing = {.state = SWEEP_TO_BE_MADE};
    struct sweep_run own;
    if (look) TRY(sweep_look(&standing, of, i));
    plan->finished += standing.state == SWEEP_FINISHED;
    if (standing.state == SWEEP_FINISHED) continue;
    TRY(sweep_run_open(&own, of, i));
    const enum status status = add_configuration(plan, &own, site, rates);
    sweep_run_close(&own);
    TRY(status);
  }
  return STATUS_OK;
}

void sweep_plan_print(const struct sweep_plan *plan) {
  char memory[24], disk[24];
  printf("  %zu configurations, %zu of them finished: %zu trainings, %.4g GFLOP, about %.3g s one "
         "after the other; memory of all ranks up to %s, writes about %s\n",
         plan->configurations, plan->finished, plan->trainings, plan->flop / 1e9, plan->seconds,
         text_size(memory, plan->memory_bytes), text_size(disk, plan->disk_bytes));
}
