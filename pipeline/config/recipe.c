#include "pipeline/config/recipe.h"

#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/config/ranks.h"
#include "pipeline/config/recipe_raw.h"
#include "pipeline/config/recipe_resolve.h"

static enum status read_raw(struct raw_recipe *raw, const struct text *bytes,
                            const char *const *settings, size_t setting_count) {
  TRY(raw_read(raw, bytes));
  for (size_t i = 0; i < setting_count; i++) TRY(raw_set(raw, settings[i]));
  return STATUS_OK;
}

static enum status build(struct recipe *recipe, struct raw_recipe *raw) {
  void *piece;
  TRY(pool_take(&piece, recipe->pool, raw->node_count * sizeof *recipe->nodes));
  recipe->nodes = piece;
  recipe->node_count = raw->node_count;
  TRY(recipe_link(recipe, raw));
  TRY(recipe_sort(recipe));
  TRY(recipe_resolve(recipe, raw));
  return STATUS_OK;
}

enum status recipe_parse(struct recipe *recipe, const char *file, const struct text *bytes,
                         const char *const *settings, size_t setting_count) {
  memset(recipe, 0, sizeof *recipe);
  TRY(pool_init(&recipe->pool));
  void *raw;
  enum status status = pool_text(&recipe->file, recipe->pool, file);
  if (status == STATUS_OK) status = pool_take(&raw, recipe->pool, sizeof(struct raw_recipe));
  if (status == STATUS_OK) {
    *(struct raw_recipe *)raw = (struct raw_recipe){.pool = recipe->pool, .file = recipe->file};
    status = read_raw(raw, bytes, settings, setting_count);
  }
  if (status == STATUS_OK) status = build(recipe, raw);
  if (status != STATUS_OK) recipe_free(recipe);
  TRY(status);
  return STATUS_OK;
}

enum status recipe_load(struct recipe *recipe, const char *path, const char *const *settings,
                        size_t setting_count) {
  struct text bytes = {0};
  enum status status = file_read(&bytes, path);
  if (status == STATUS_OK) status = recipe_parse(recipe, path, &bytes, settings, setting_count);
  text_free(&bytes);
  TRY(status);
  return STATUS_OK;
}

void recipe_free(struct recipe *recipe) {
  pool_free(recipe->pool);
  memset(recipe, 0, sizeof *recipe);
}

enum status recipe_set_ranks(struct recipe *recipe, int64_t ranks) {
  recipe->ranks = ranks;
  for (size_t i = 0; i < recipe->node_count; i++) {
    struct recipe_node *node = &recipe->nodes[i];
    node->options.ranks = kind_is_parallel(node->kind) ? ranks : 1;
    TRY(ranks_check(&node->options, node->kind, node->name, node->options.ranks));
  }
  return STATUS_OK;
}

enum status recipe_find(const struct recipe_node **node, const struct recipe *recipe,
                        const char *name) {
  const char *names[RECIPE_NODES];
  for (size_t i = 0; i < recipe->node_count; i++) {
    names[i] = recipe->nodes[i].name;
    if (strcmp(names[i], name) != 0) continue;
    *node = &recipe->nodes[i];
    return STATUS_OK;
  }
  const char *nearest = text_nearest(name, names, recipe->node_count);
  FAIL(STATUS_MISMATCH, "the recipe has no node '%s'%s%s%s", name,
       nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Marks the inputs of all marked nodes at distance `depth` with depth + 1. False when none is. */
static bool widen(int distance[RECIPE_NODES], const struct recipe *recipe, int depth) {
  bool any = false;
  for (size_t i = 0; i < recipe->node_count; i++) {
    if (distance[i] != depth) continue;
    for (size_t j = 0; j < recipe->nodes[i].input_count; j++) {
      int *input = &distance[recipe->nodes[i].inputs[j]];
      if (*input) continue;
      *input = depth + 1;
      any = true;
    }
  }
  return any;
}

enum status recipe_upstream(const struct recipe_node **found, const struct recipe *recipe,
                            const struct recipe_node *node, unsigned kinds) {
  int distance[RECIPE_NODES] = {0}; /* 1 is the node itself, 0 not reached */
  distance[node - recipe->nodes] = 1;
  *found = NULL;
  for (int depth = 1; !*found && widen(distance, recipe, depth); depth++)
    for (size_t i = 0; i < recipe->node_count; i++) {
      const struct recipe_node *other = &recipe->nodes[i];
      if (distance[i] != depth + 1 || !(kinds & (1u << other->kind))) continue;
      CHECK(!*found, STATUS_MISMATCH,
            "%s: node '%s' is from both '%s' and '%s', which run %s: leave one out", node->where,
            node->name, (*found)->name, other->name, kind_name(other->kind));
      *found = other;
    }
  return STATUS_OK;
}

bool recipe_depends(const struct recipe *recipe, const struct recipe_node *node,
                    const struct recipe_node *other) {
  int distance[RECIPE_NODES] = {0};
  distance[node - recipe->nodes] = 1;
  for (int depth = 1; widen(distance, recipe, depth); depth++) {
  }
  return distance[other - recipe->nodes] > 1;
}
