/* Recipes: a YAML file that names a run, gives defaults, and lists the nodes of a graph.
 *
 *   name: demo                 # of the run folder; letters, digits, - and _
 *   seed: 42                   # optional, default of every node's seed
 *   ranks: 2                   # optional, default of every node's ranks
 *   defaults: {batch: 16}      # optional, options for every node that reads them
 *   nodes:
 *     tokens: {run: tokenize, input: [texts.txt]}
 *     cfm: {run: pretrain, method: cfm, from: tokens, steps: 500}
 *
 * Every error names file, line and key, the nearest known key where there is one, and is a
 * MISMATCH (78). resolved.yaml is a recipe too, with every default filled in and paths absolute.
 */
#ifndef PIPELINE_CONFIG_RECIPE_H
#define PIPELINE_CONFIG_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/kinds.h"
#include "pipeline/config/options.h"

enum { RECIPE_NODES = 256, RECIPE_INPUTS = 64, RECIPE_NAME_BYTES = 64 };

struct pool;

struct recipe_node {
  const char *name; /* borrowed from the recipe */
  enum kind kind;
  struct options options;
  size_t input_count;
  size_t inputs[RECIPE_INPUTS]; /* indices of nodes in the recipe, in the order of `from:` */
  const char *where;            /* "demo.yaml:12", borrowed from the recipe */
};

struct recipe {
  const char *file; /* owned, as everything texts in the nodes point to */
  const char *name;
  int64_t seed, ranks;
  size_t node_count;
  struct recipe_node *nodes;  /* owned, in the order of the file */
  size_t order[RECIPE_NODES]; /* indices: every node after the nodes it is from */
  struct pool *pool;          /* owned texts */
};

/* Reads a recipe, applies `settings` ("node.key=value", or "key=value" for name, seed, ranks and
 * defaults; a list is written [a, b]), checks everything and fills in defaults. Relative paths
 * become absolute from the present folder. Local. MISMATCH on any error in it. On failure there is
 * nothing to free. */
enum status recipe_load(struct recipe *recipe, const char *path, const char *const *settings,
                        size_t setting_count);

/* As recipe_load from bytes in memory; `file` is for messages. Local. */
enum status recipe_parse(struct recipe *recipe, const char *file, const struct text *bytes,
                         const char *const *settings, size_t setting_count);

/* Runs every node on `ranks` ranks, whatever the recipe says: the option -np. Local. MISMATCH when
 * a node does not admit that count. */
enum status recipe_set_ranks(struct recipe *recipe, int64_t ranks);

/* Accepts a zeroed recipe. Local. */
void recipe_free(struct recipe *recipe);

/* Appends the recipe with every option of every node, in a fixed order: the content of
 * resolved.yaml. Parsing it gives an equal recipe. Local. */
enum status recipe_write(struct text *text, const struct recipe *recipe);

/* Appends the recipe, called `name`, of the nodes that `node` reads, directly or through others,
 * with what is not default only: settings may then change which options are read. Local. */
enum status recipe_write_above(struct text *text, const struct recipe *recipe,
                               const struct recipe_node *node, const char *name);

/* The node called `name`. Local. MISMATCH with the nearest name when there is none. */
enum status recipe_find(const struct recipe_node **node, const struct recipe *recipe,
                        const char *name);

/* The node of one of the kinds in the mask (IN_...) that is nearest upstream of `node` (its inputs,
 * then theirs, and so on). Sets NULL when there is none. Local. MISMATCH when two are equally
 * near. */
enum status recipe_upstream(const struct recipe_node **found, const struct recipe *recipe,
                            const struct recipe_node *node, unsigned kinds);

/* The node whose options name the tokenizer of `tokens`: itself, or what it has the same as. Local. */
const struct recipe_node *recipe_tokenizer(const struct recipe *recipe,
                                           const struct recipe_node *tokens);

/* Whether a node is a sample node that draws targets for sources: its nearest tokenize node packs
 * pairs. Local. */
bool recipe_draws_targets(const struct recipe *recipe, const struct recipe_node *node);

/* Whether `node` reads, directly or through others, what `other` makes. Local. */
bool recipe_depends(const struct recipe *recipe, const struct recipe_node *node,
                    const struct recipe_node *other);

#endif
