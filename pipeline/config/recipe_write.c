#include "pipeline/config/recipe.h"

static enum status write_inputs(struct text *text, const struct recipe *recipe,
                                const struct recipe_node *node) {
  TRY(text_add(text, "    from: ["));
  for (size_t i = 0; i < node->input_count; i++)
    TRY(text_format(text, "%s\"%s\"", i ? ", " : "", recipe->nodes[node->inputs[i]].name));
  return text_add(text, "]\n");
}

static enum status write_node(struct text *text, const struct recipe *recipe,
                              const struct recipe_node *node) {
  TRY(text_format(text, "  \"%s\":\n    run: %s\n", node->name, kind_name(node->kind)));
  TRY(write_inputs(text, recipe, node));
  for (int i = 0; i < OPTION_COUNT; i++) {
    const enum option option = (enum option)i;
    if (!options_applies(&node->options, node->kind, option, NULL)) continue;
    TRY(text_format(text, "    %s: ", options_row(option)->key));
    TRY(options_format(text, &node->options, option));
    TRY(text_add(text, "\n"));
  }
  return STATUS_OK;
}

enum status recipe_write(struct text *text, const struct recipe *recipe) {
  TRY(text_format(text,
                  "# Written by millrace: the recipe with every option of every node.\n"
                  "name: \"%s\"\nseed: %lld\nranks: %lld\nnodes:\n",
                  recipe->name, (long long)recipe->seed, (long long)recipe->ranks));
  for (size_t i = 0; i < recipe->node_count; i++) TRY(write_node(text, recipe, &recipe->nodes[i]));
  return STATUS_OK;
}
