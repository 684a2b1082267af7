/* The activations of a micro-shard: what the tape takes for values, their gradients, and the head.
 * Every term is an array of the networks and layers (stages/model), counted by hand.
 */
#ifndef PIPELINE_DRIVER_ACTIVATION_PLAN_H
#define PIPELINE_DRIVER_ACTIVATION_PLAN_H

#include "pipeline/driver/memory_plan.h"

struct activation_plan {
  int64_t values; /* at the fullest point of the pass, without the head's */
  int64_t head;   /* what the head needs beyond them */
};

/* Bytes on one rank. Local. */
struct activation_plan activation_plan_of(const struct training_layout *layout);

#endif
