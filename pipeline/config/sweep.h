/* The configurations of a sweep node: every combination of its grid, for each of the list that it
 * gives.
 *
 *   lambdas:
 *     run: sweep
 *     from: scores                                  # made for every configuration, with all above
 * it grid: {base.cfm_lambda: [0, 0.5, 1], base.steps: [100, 200]} configurations: [{base.width:
 * 128, base.depth: 6}, {base.width: 192, base.depth: 3}]
 *
 * gives 2 x 3 x 2 = 12. A configuration is named by the hash of its values.
 */
#ifndef PIPELINE_CONFIG_SWEEP_H
#define PIPELINE_CONFIG_SWEEP_H

#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/config/recipe.h"

enum { SWEEP_CONFIGURATIONS = 10000, SWEEP_KEYS = 64 };

struct sweep_configuration {
  const char *name;     /* 16 hexadecimal digits */
  const char **values;  /* by key, as a recipe would write them; NULL: as the recipe has it */
  const char *settings; /* "base.cfm_lambda=0.5 base.steps=100", for people */
};

/* All texts belong to the pool. */
struct sweep {
  struct pool *pool; /* owned */
  size_t key_count;
  const char *keys[SWEEP_KEYS]; /* "base.cfm_lambda" */
  size_t count;
  struct sweep_configuration *configurations;
};

/* Finds the configurations of a sweep node. Local. MISMATCH when there are none or too many, when a
 * setting is not node.key=value of a node above the sweep, its value not one of the key's, or two
 * configurations are the same. On failure there is nothing to free. */
enum status sweep_expand(struct sweep *sweep, const struct recipe *recipe,
                         const struct recipe_node *node);

/* Accepts a zeroed sweep. Local. */
void sweep_free(struct sweep *sweep);

#endif
