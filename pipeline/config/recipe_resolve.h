/* The steps between a raw recipe and a checked one. */
#ifndef PIPELINE_CONFIG_RECIPE_RESOLVE_H
#define PIPELINE_CONFIG_RECIPE_RESOLVE_H

#include "pipeline/base/error.h"
#include "pipeline/config/recipe.h"
#include "pipeline/config/recipe_raw.h"

/* Fills in names, kinds and inputs of the recipe's nodes from their `run` and `from`. Local.
 * MISMATCH on an unknown kind or node, or an input of a kind that the node cannot read. */
enum status recipe_link(struct recipe *recipe, const struct raw_recipe *raw);

/* Sorts the nodes so that each comes after its inputs, otherwise in the order of the file. Local.
 * MISMATCH with the path of a cycle. */
enum status recipe_sort(struct recipe *recipe);

/* Checks a node, its options filled in, against the nodes it is from. Local. MISMATCH when it would
 * not read one of them, misses one, or they do not fit one another. */
enum status recipe_check(const struct recipe *recipe, const struct recipe_node *node);

/* Fills in the options of every node and checks them. Local. MISMATCH. */
enum status recipe_resolve(struct recipe *recipe, const struct raw_recipe *raw);

#endif
