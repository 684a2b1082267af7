#include <string.h>

#include "pipeline/config/recipe.h"

/* Which part of a recipe is written. */
struct part {
  const struct recipe *recipe;
  const struct recipe_node *above; /* only nodes that this one reads, and what is not default */
  const struct options *defaults;  /* ... of this recipe */
};

static bool is_wanted(struct part part, const struct recipe_node *node) {
  return !part.above || recipe_depends(part.recipe, part.above, node);
}

static enum status write_inputs(struct text *text, const struct recipe *recipe,
                                const struct recipe_node *node) {
  TRY(text_add(text, "    from: ["));
  for (size_t i = 0; i < node->input_count; i++)
    TRY(text_format(text, "%s\"%s\"", i ? ", " : "", recipe->nodes[node->inputs[i]].name));
  return text_add(text, "]\n");
}

/* Whether reading the recipe again would give the option this value by itself. */
static enum status is_default(bool *same, struct part part, const struct recipe_node *node,
                              enum option option) {
  struct text own = {0}, other = {0};
  enum status status = options_format(&own, &node->options, option);
  if (status == STATUS_OK) status = options_format(&other, part.defaults, option);
  *same =
      status == STATUS_OK && options_row(option)->fallback && strcmp(own.bytes, other.bytes) == 0;
  text_free(&own);
  text_free(&other);
  return status;
}

static enum status write_option(struct text *text, struct part part, const struct recipe_node *node,
                                enum option option) {
  const struct option_row *row = options_row(option);
  const struct option_settings *settings =
      (const void *)((const char *)&node->options + row->offset);
  bool same = false;
  if (!options_applies(&node->options, node->kind, option, NULL)) return STATUS_OK;
  if (row->type == OPTION_TYPE_SETTINGS && settings->count == 0) return STATUS_OK;
  if (part.above) TRY(is_default(&same, part, node, option));
  if (same) return STATUS_OK;
  TRY(text_format(text, "    %s: ", row->key));
  TRY(options_format(text, &node->options, option));
  return text_add(text, "\n");
}

static enum status write_node(struct text *text, struct part part, const struct recipe_node *node) {
  TRY(text_format(text, "  \"%s\":\n    run: %s\n", node->name, kind_name(node->kind)));
  TRY(write_inputs(text, part.recipe, node));
  for (int i = 0; i < OPTION_COUNT; i++) TRY(write_option(text, part, node, (enum option)i));
  return STATUS_OK;
}

static enum status write_part(struct text *text, struct part part, const char *name) {
  const struct recipe *recipe = part.recipe;
  TRY(text_format(text, "name: \"%s\"\nseed: %lld\nranks: %lld\nnodes:\n", name,
                  (long long)recipe->seed, (long long)recipe->ranks));
  for (size_t i = 0; i < recipe->node_count; i++)
    if (is_wanted(part, &recipe->nodes[i])) TRY(write_node(text, part, &recipe->nodes[i]));
  return STATUS_OK;
}

enum status recipe_write(struct text *text, const struct recipe *recipe) {
  TRY(text_add(text, "# Written by millrace: the recipe with every option of every node.\n"));
  return write_part(text, (struct part){.recipe = recipe}, recipe->name);
}

enum status recipe_write_above(struct text *text, const struct recipe *recipe,
                               const struct recipe_node *node, const char *name) {
  struct options defaults;
  options_defaults(&defaults);
  defaults.seed = recipe->seed;
  return write_part(text, (struct part){recipe, node, &defaults}, name);
}
