/* The memory of a training node on one rank, by account, from its options and layout. It follows
 * the arrays that the stages take (stages/train, sharding/gradients, stages/model); a test compares
 * it with what they measure.
 */
#ifndef PIPELINE_DRIVER_MEMORY_PLAN_H
#define PIPELINE_DRIVER_MEMORY_PLAN_H

#include <stdint.h>

#include "pipeline/driver/training_layout.h"

enum memory_account {
#define MEMORY(name, what) MEMORY_##name,
#include "pipeline/driver/memory_accounts.def"
#undef MEMORY
  MEMORY_ACCOUNTS
};

struct memory_plan {
  int64_t bytes[MEMORY_ACCOUNTS];
};

/* The accounts of the rank that needs most. Local. */
struct memory_plan memory_plan_of(const struct training_layout *layout);

int64_t memory_plan_all(const struct memory_plan *plan);

/* The name of an account and what it is. Borrowed. Local. */
const char *memory_account_name(enum memory_account account);
const char *memory_account_meaning(enum memory_account account);

/* Buffers that sums of `leaves` along the fixed tree need (sharding/tree.h). Local. */
int64_t memory_tree_depth(int64_t leaves);

#endif
