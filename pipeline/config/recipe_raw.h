/* A recipe as written: settings by block, with the place of each, before any is understood. */
#ifndef PIPELINE_CONFIG_RECIPE_RAW_H
#define PIPELINE_CONFIG_RECIPE_RAW_H

#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/options.h"
#include "pipeline/config/pool.h"
#include "pipeline/config/recipe.h"

enum { RAW_SETTINGS = OPTION_COUNT + 8 }; /* options and the keys of a node */

struct raw_setting {
  const char *key;
  struct option_text value;
};

/* The settings of one mapping: the top of the recipe, its defaults, or a node. */
struct raw_block {
  const char *name;  /* "" for the top, "defaults", or the node's name */
  const char *where; /* "demo.yaml:12" */
  size_t count;
  struct raw_setting settings[RAW_SETTINGS];
};

/* All texts belong to the pool. */
struct raw_recipe {
  struct pool *pool; /* borrowed */
  const char *file;
  struct raw_block top, defaults;
  size_t node_count;
  struct raw_block *nodes[RECIPE_NODES];
};

/* Reads YAML bytes. Local. MISMATCH with file and line on syntax, structure or a key given twice.
 */
enum status raw_read(struct raw_recipe *raw, const struct text *bytes);

/* Applies "node.key=value" or "key=value". Local. MISMATCH when it has not that form or the node
 * does not exist. */
enum status raw_set(struct raw_recipe *raw, const char *written);

/* Length of the item of a written list at `at`: up to a space, a comma or the list's end, those
 * within brackets of its own left aside. Local. */
size_t raw_item(const char *at);

/* Reads a written value: "[a, b]" becomes a list, anything else is one text, taken as it is.
 * `where` is left alone. Local. ENVIRONMENT when memory is out. */
enum status raw_value(struct option_text *value, struct pool *pool, const char *written);

/* The setting with this key, or NULL. Borrowed. Local. */
const struct raw_setting *raw_find(const struct raw_block *block, const char *key);

/* Adds a setting; one that is there already is an error unless `replace`. Local. MISMATCH. */
enum status raw_add(struct raw_block *block, struct raw_setting setting, bool replace);

/* The one text of a setting. Local. MISMATCH when it is a list. */
enum status raw_scalar(const char **value, const struct raw_setting *setting);

#endif
