#include "pipeline/driver/step_plan.h"

/* Operations of one token, forward and backward, as monitoring/cost.h counts them. */
static double token_flop(const struct training_layout *layout) {
  const struct network_size *size = &layout->size;
  const double attention = 12.0 * (double)layout->positions * (double)layout->shape->options.depth *
                           (double)layout->shape->options.width;
  const int64_t matrices =
      size->parts[NETWORK_LAYERS].matrices + size->parts[NETWORK_REST].matrices;
  return 6.0 * (double)(matrices + size->head) + attention;
}

/* Layers that are computed again add a third of their operations, the head's logits a quarter. */
static double done_flop(const struct training_layout *layout) {
  const double tokens = (double)layout->node->options.batch * (double)layout->positions;
  const double head = 6.0 * (double)layout->size.head;
  const double rest = token_flop(layout) - head;
  const bool again = layout->shape->options.recompute;
  return tokens * (rest * (again ? 4.0 / 3.0 : 1) + head * 4.0 / 3.0);
}

/* Of the encoder that runs in the training; pairs are encoded twice. */
static double encoder_flop(const struct training_layout *layout) {
  const double tokens = (double)layout->node->options.batch * (double)layout->positions;
  if (!layout->online) return 0;
  return (layout->pairs ? 2 : 1) * tokens * encoder_size_flop(&layout->encoder, layout->positions);
}

/* The Gram matrix of the input table and the gradient through it, the latter in F32 at about half
 * the rate: counted as three of the former. */
static double covariance_flop(const struct training_layout *layout) {
  const double d = (double)layout->shape->options.width;
  return layout->size.derived > 0 ? 3 * 2.0 * (double)layout->facts.vocabulary * d * d : 0;
}

/* Each rank sends what it has once and gets the sums back, less its own part. */
static double sum_bytes(double bytes, double ranks) {
  return 2 * bytes * (ranks - 1) / ranks;
}

static double table_elements(const struct training_layout *layout) {
  return (double)network_count_all(&layout->size.parts[NETWORK_TABLES]);
}

/* New weights go to all ranks once; fetched ones for both passes of every micro step. */
static double weight_bytes(const struct training_layout *layout, double all) {
  const double e = layout->narrow ? 2 : 4, ranks = (double)layout->ranks;
  const double fetched = layout->node->options.zero == ZERO_3
                             ? (double)layout->size.parts[NETWORK_LAYERS].matrices
                             : 0;
  const double uses = 2 * (double)training_layout_steps(layout);
  return e * (all - fetched + uses * fetched) * (ranks - 1) / ranks;
}

/* Gradients, new weights, and in each micro step the hidden states and their gradients. */
static double exchanged(const struct training_layout *layout) {
  const double ranks = (double)layout->ranks, group = (double)layout->group;
  const double e = layout->narrow ? 2 : 4;
  const double g = layout->node->options.gradients == GRADIENTS_BF16 ? 2 : 4;
  const double tables = table_elements(layout);
  const double all = (double)network_size_all(&layout->size) - tables;
  const double across = ranks / group;
  const double steps = (double)training_layout_steps(layout);
  const double states = (double)training_layout_tokens(layout) * (group - 1) *
                        (double)layout->shape->options.width * (3 * e + sizeof(float));
  return sum_bytes(g * all, ranks) + weight_bytes(layout, all) +
         sum_bytes(g * tables / group, across) + e * tables / group * (across - 1) / across +
         steps * states;
}

/* Bytes of state that the optimizer of one rank reads and writes. */
static double optimizer_bytes(const struct memory_plan *memory) {
  return 2.0 * (double)(memory->bytes[MEMORY_weights] + memory->bytes[MEMORY_masters] +
                        memory->bytes[MEMORY_moments] + memory->bytes[MEMORY_averages]) +
         2.0 * (double)memory->bytes[MEMORY_gradients];
}

struct step_plan step_plan_of(const struct training_layout *layout, int64_t threads,
                              const struct bench_rates *rates) {
  const struct memory_plan memory = memory_plan_of(layout);
  const double cores = (double)(layout->ranks * threads);
  struct step_plan plan = {.flop_per_token = token_flop(layout),
                           .exchanged_bytes = exchanged(layout)};
  /* Every group makes its own covariance. */
  const double groups = (double)layout->ranks / (double)layout->group;
  plan.flop = done_flop(layout) + encoder_flop(layout) + groups * covariance_flop(layout);
  plan.seconds = plan.flop / (cores * rates->product * rates->share) +
                 optimizer_bytes(&memory) / rates->memory + plan.exchanged_bytes / rates->exchange;
  return plan;
}
