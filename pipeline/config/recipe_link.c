#include <ctype.h>
#include <string.h>

#include "pipeline/config/recipe_resolve.h"

static enum status check_name(const char *name, const char *where) {
  const size_t length = strlen(name);
  bool good = length > 0 && length < RECIPE_NAME_BYTES && isalnum((unsigned char)name[0]);
  for (const char *c = name; *c; c++)
    good = good && (isalnum((unsigned char)*c) || *c == '-' || *c == '_');
  CHECK(good, STATUS_MISMATCH,
        "%s: '%s' is not a usable name: 1 to %d letters, digits, - and _, not - or _ first", where,
        name, RECIPE_NAME_BYTES - 1);
  return STATUS_OK;
}

static enum status link_kind(struct recipe_node *node, const struct raw_block *block) {
  const struct raw_setting *run = raw_find(block, "run");
  CHECK(run, STATUS_MISMATCH, "%s: node '%s' has no `run:`, the kind of stage it runs",
        block->where, block->name);
  const char *name;
  TRY(raw_scalar(&name, run));
  if (kind_find(&node->kind, name)) return STATUS_OK;
  const char *nearest = kind_nearest(name);
  FAIL(STATUS_MISMATCH, "%s: run: there is no kind of stage '%s'%s%s%s", run->value.where, name,
       nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static enum status link_input(struct recipe *recipe, struct recipe_node *node, const char *name,
                              const char *where) {
  const struct recipe_node *input;
  if (recipe_find(&input, recipe, name) != STATUS_OK) {
    char message[512];
    strncpy(message, error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    FAIL(STATUS_MISMATCH, "%s: from: %s", where, message);
  }
  const size_t index = (size_t)(input - recipe->nodes);
  for (size_t i = 0; i < node->input_count; i++)
    CHECK(node->inputs[i] != index, STATUS_MISMATCH, "%s: from: '%s' is named twice", where, name);
  CHECK(kind_inputs(node->kind) & (1u << input->kind), STATUS_MISMATCH,
        "%s: from: node '%s' runs %s, which cannot read '%s', which runs %s", where, node->name,
        kind_name(node->kind), name, kind_name(input->kind));
  CHECK(node->input_count < RECIPE_INPUTS, STATUS_MISMATCH, "%s: from: more than %d nodes", where,
        (int)RECIPE_INPUTS);
  node->inputs[node->input_count++] = index;
  return STATUS_OK;
}

static enum status check_needs(const struct recipe *recipe, const struct recipe_node *node) {
  const unsigned needs = kind_needs(node->kind);
  for (size_t i = 0; i < node->input_count; i++)
    if (needs & (1u << recipe->nodes[node->inputs[i]].kind)) return STATUS_OK;
  if (!needs) return STATUS_OK;
  char kinds[256] = "";
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    if (!(needs & (1u << kind))) continue;
    if (*kinds) strncat(kinds, " or ", sizeof kinds - strlen(kinds) - 1);
    strncat(kinds, kind_name((enum kind)kind), sizeof kinds - strlen(kinds) - 1);
  }
  FAIL(STATUS_MISMATCH, "%s: node '%s' runs %s and needs `from:` with a node that runs %s",
       node->where, node->name, kind_name(node->kind), kinds);
}

static enum status link_inputs(struct recipe *recipe, struct recipe_node *node,
                               const struct raw_block *block) {
  const struct raw_setting *from = raw_find(block, "from");
  for (size_t i = 0; from && i < from->value.count; i++)
    TRY(link_input(recipe, node, from->value.items[i], from->value.where));
  return check_needs(recipe, node);
}

static enum status link_name(struct recipe *recipe, const struct raw_recipe *raw) {
  const struct raw_setting *name = raw_find(&raw->top, "name");
  CHECK(name, STATUS_MISMATCH, "%s: the recipe has no `name:`, which names its run folder",
        raw->file);
  TRY(raw_scalar(&recipe->name, name));
  TRY(check_name(recipe->name, name->value.where));
  CHECK(raw->node_count, STATUS_MISMATCH, "%s: the recipe has no `nodes:`", raw->file);
  return STATUS_OK;
}

enum status recipe_link(struct recipe *recipe, const struct raw_recipe *raw) {
  TRY(link_name(recipe, raw));
  for (size_t i = 0; i < raw->node_count; i++) {
    struct recipe_node *node = &recipe->nodes[i];
    node->name = raw->nodes[i]->name;
    node->where = raw->nodes[i]->where;
    TRY(check_name(node->name, node->where));
    TRY(link_kind(node, raw->nodes[i]));
  }
  for (size_t i = 0; i < raw->node_count; i++)
    TRY(link_inputs(recipe, &recipe->nodes[i], raw->nodes[i]));
  return STATUS_OK;
}
