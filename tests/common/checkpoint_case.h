/* Tensors for tests of checkpoints: of every kind, laid over ranks in several ways, with contents
 * that follow from the step and the place in the global tensor.
 */
#ifndef TESTS_COMMON_CHECKPOINT_CASE_H
#define TESTS_COMMON_CHECKPOINT_CASE_H

#include <stdbool.h>

#include "sharding/checkpoint.h"

enum { CHECKPOINT_CASE_ITEMS = 7, CHECKPOINT_CASE_STYLES = 4 };

struct checkpoint_case {
  struct checkpoint_item list[CHECKPOINT_CASE_ITEMS];
  struct checkpoint_items items;
};

/* The items as rank `rank` of `size` holds them; `style` in [0, CHECKPOINT_CASE_STYLES). Memory is
 * of its own. */
void checkpoint_case_make(struct checkpoint_case *made, int rank, int size, int style);
void checkpoint_case_free(struct checkpoint_case *made);

/* Fills the first items.count items with the contents of `step`; whether the contents are those of
 * `step`. */
void checkpoint_case_fill(struct checkpoint_case *made, int64_t step);
bool checkpoint_case_is(const struct checkpoint_case *made, int64_t step);

#endif
