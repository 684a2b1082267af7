#include "pipeline/driver/training_plan.h"

#include <inttypes.h>
#include <stdio.h>

static void print_parameters(const struct training_layout *layout) {
  printf("  parameters %.4g M:", (double)network_size_all(&layout->size) / 1e6);
  for (int part = 0; part < NETWORK_PARTS; part++)
    printf("%s %s %.4g M", part ? "," : "", network_part_name((enum network_part)part),
           (double)network_count_all(&layout->size.parts[part]) / 1e6);
  printf(" (%" PRId64 " layers, vocabulary %" PRId64 ")\n", layout->size.layers,
         layout->facts.vocabulary);
}

static void print_memory(const struct training_layout *layout) {
  const struct memory_plan plan = memory_plan_of(layout);
  char size[24];
  printf("  memory of a rank %s:", text_size(size, (uint64_t)memory_plan_all(&plan)));
  const char *separator = "";
  for (int i = 0; i < MEMORY_ACCOUNTS; i++) {
    if (plan.bytes[i] == 0) continue;
    printf("%s %s %s", separator, memory_account_name((enum memory_account)i),
           text_size(size, (uint64_t)plan.bytes[i]));
    separator = ",";
  }
  printf("; of all ranks %s\n",
         text_size(size, (uint64_t)(memory_plan_all(&plan) * layout->ranks)));
}

static void print_step(const struct training_layout *layout, int64_t threads,
                       const struct bench_rates *rates) {
  const struct step_plan plan = step_plan_of(layout, threads, rates);
  const double tokens = (double)layout->node->options.batch * (double)layout->positions;
  char size[24];
  printf("  a step: %.4g tokens, %.4g GFLOP a token, %s sent by each rank, about %.3g s "
         "(%.3g tokens/s, by %s rates: %.4g GFLOP/s a core, of which steps reach %.2f)\n",
         tokens, plan.flop_per_token / 1e9, text_size(size, (uint64_t)plan.exchanged_bytes),
         plan.seconds, tokens / plan.seconds, rates->measured ? "measured" : "stated",
         rates->product / 1e9, rates->share);
}

enum status training_plan_print(const struct run *run, const struct recipe_node *node,
                                const struct site *site, const struct bench_rates *rates) {
  struct training_layout layout;
  if (!training_layout_applies(node)) return STATUS_OK;
  TRY(training_layout_find(&layout, &run->recipe, node));
  print_parameters(&layout);
  print_memory(&layout);
  print_step(&layout, launch_threads(site, node), rates);
  return STATUS_OK;
}

static enum memory_account largest_of(const struct memory_plan *plan) {
  int largest = 0;
  for (int i = 1; i < MEMORY_ACCOUNTS; i++)
    if (plan->bytes[i] > plan->bytes[largest]) largest = i;
  return (enum memory_account)largest;
}

enum status training_plan_check(const struct run *run, const struct recipe_node *node,
                                const struct arguments *arguments) {
  struct training_layout layout;
  uint64_t memory = 0;
  char need[24], have[24], most[24];
  if (!arguments->memory || !training_layout_applies(node)) return STATUS_OK;
  CHECK(text_parse_size(&memory, arguments->memory), STATUS_USAGE,
        "--memory: expected a size such as 24GiB, found '%s'", arguments->memory);
  TRY(training_layout_find(&layout, &run->recipe, node));
  const struct memory_plan plan = memory_plan_of(&layout);
  const int64_t hosts = arguments->hosts > 0 ? arguments->hosts : 1;
  const int64_t ranks = (layout.ranks + hosts - 1) / hosts;
  const uint64_t needed = (uint64_t)(memory_plan_all(&plan) * ranks);
  const enum memory_account account = largest_of(&plan);
  CHECK(needed <= memory, STATUS_MISMATCH,
        "%s: '%s' needs %s on a host of %s for %" PRId64 " of its %" PRId64
        " ranks; most of it for %s, %s: %s a rank; use more hosts, a larger vocabulary_group, or "
        "zero: 3, moments: bf16, gradients: bf16, recompute: true",
        node->where, node->name, text_size(need, needed), text_size(have, memory), ranks,
        layout.ranks, memory_account_name(account), memory_account_meaning(account),
        text_size(most, (uint64_t)plan.bytes[account]));
  return STATUS_OK;
}
