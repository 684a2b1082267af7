#include "pipeline/config/recipe_resolve.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static bool is_structure(const char *key) {
  return strcmp(key, "run") == 0 || strcmp(key, "from") == 0;
}

/* Fails for a setting of a node that the node does not read, saying why. */
static enum status refuse(const struct recipe_node *node, const struct raw_setting *setting) {
  const enum option option = options_find(setting->key);
  const char *where = setting->value.where;
  if (option == OPTION_COUNT) {
    const char *nearest = options_nearest(setting->key, 1u << node->kind);
    FAIL(STATUS_MISMATCH, "%s: node '%s': unknown option '%s'%s%s%s", where, node->name,
         setting->key, nearest ? "; did you mean '" : "", nearest ? nearest : "",
         nearest ? "'?" : "");
  }
  const char *why;
  options_applies(&node->options, node->kind, option, &why);
  CHECK(why, STATUS_MISMATCH, "%s: node '%s': option '%s' is not read by %s", where, node->name,
        setting->key, kind_name(node->kind));
  FAIL(STATUS_MISMATCH, "%s: node '%s': option '%s' is read only with %s; remove it or change that",
       where, node->name, setting->key, why);
}

/* The absolute form of a path, from the present folder. */
static enum status absolute(const char **path, struct pool *pool) {
  char folder[PATH_MAX];
  if (**path == '/' || **path == '\0') return STATUS_OK;
  CHECK(getcwd(folder, sizeof folder), STATUS_ENVIRONMENT, "the present folder has no path");
  while (strncmp(*path, "./", 2) == 0) *path += 2;
  return pool_format(path, pool, "%s/%s", folder, *path);
}

static enum status make_absolute(struct options *options, struct pool *pool) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option_row *row = options_row((enum option)i);
    void *value = (char *)options + row->offset;
    struct option_texts *list = value;
    if (row->type == OPTION_TYPE_PATH) TRY(absolute(value, pool));
    for (size_t j = 0; row->type == OPTION_TYPE_PATHS && j < list->count; j++)
      TRY(absolute(&list->values[j], pool));
  }
  return STATUS_OK;
}

/* Applies the recipe's defaults that a node of this kind may read. */
static enum status apply_defaults(struct recipe_node *node, const struct raw_recipe *raw) {
  for (size_t i = 0; i < raw->defaults.count; i++) {
    const struct raw_setting *setting = &raw->defaults.settings[i];
    const enum option option = options_find(setting->key);
    if (options_row(option)->kinds & (1u << node->kind))
      TRY(options_set(&node->options, option, setting->value));
  }
  return STATUS_OK;
}

static enum status apply_own(struct recipe_node *node, const struct raw_block *block) {
  for (size_t i = 0; i < block->count; i++) {
    const struct raw_setting *setting = &block->settings[i];
    if (is_structure(setting->key)) continue;
    const enum option option = options_find(setting->key);
    if (option == OPTION_COUNT || !(options_row(option)->kinds & (1u << node->kind)))
      return refuse(node, setting);
    TRY(options_set(&node->options, option, setting->value));
  }
  return STATUS_OK;
}

/* A generator's method is its node's own option; others have that of the generator they are from.
 */
static enum status inherit_method(const struct recipe *recipe, struct recipe_node *node) {
  if (options_row(OPTION_method)->kinds & (1u << node->kind)) return STATUS_OK;
  if (!((IN_DISTILL | IN_SAMPLE) & (1 << node->kind))) return STATUS_OK;
  const struct recipe_node *generator;
  TRY(recipe_upstream(&generator, recipe, node, IN_PRETRAIN | IN_DISTILL));
  if (generator) node->options.method = generator->options.method;
  return STATUS_OK;
}

static enum status check_own(const struct recipe_node *node, const struct raw_block *block) {
  for (size_t i = 0; i < block->count; i++) {
    const struct raw_setting *setting = &block->settings[i];
    if (is_structure(setting->key)) continue;
    if (!options_applies(&node->options, node->kind, options_find(setting->key), NULL))
      return refuse(node, setting);
  }
  return STATUS_OK;
}

static enum status check_required(const struct recipe_node *node, const struct raw_recipe *raw,
                                  const struct raw_block *block) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option_row *row = options_row((enum option)i);
    if (row->fallback || !options_applies(&node->options, node->kind, (enum option)i, NULL))
      continue;
    CHECK(raw_find(block, row->key) || raw_find(&raw->defaults, row->key), STATUS_MISMATCH,
          "%s: node '%s' has no '%s': %s", node->where, node->name, row->key, row->help);
  }
  return STATUS_OK;
}

static enum status resolve_node(struct recipe *recipe, struct recipe_node *node,
                                const struct raw_recipe *raw) {
  const struct raw_block *block = raw->nodes[node - recipe->nodes];
  options_defaults(&node->options);
  node->options.seed = recipe->seed;
  TRY(apply_defaults(node, raw));
  TRY(apply_own(node, block));
  if (node->options.ranks == 0) node->options.ranks = recipe->ranks;
  if (!kind_is_parallel(node->kind)) node->options.ranks = 1;
  TRY(inherit_method(recipe, node));
  TRY(check_own(node, block));
  TRY(check_required(node, raw, block));
  TRY(make_absolute(&node->options, recipe->pool));
  TRY(options_check(&node->options, node->kind, node->name, node->where));
  TRY(recipe_check(recipe, node));
  return STATUS_OK;
}

/* Each default must be an option that some node of the recipe reads. */
static enum status check_default(const struct recipe *recipe, const struct raw_setting *setting) {
  const enum option option = options_find(setting->key);
  const char *where = setting->value.where;
  if (option == OPTION_COUNT) {
    const char *nearest = options_nearest(setting->key, IN_ALL);
    FAIL(STATUS_MISMATCH, "%s: defaults: unknown option '%s'%s%s%s", where, setting->key,
         nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  }
  for (size_t i = 0; i < recipe->node_count; i++)
    if (options_applies(&recipe->nodes[i].options, recipe->nodes[i].kind, option, NULL))
      return STATUS_OK;
  FAIL(STATUS_MISMATCH, "%s: defaults: no node of the recipe reads '%s'", where, setting->key);
}

/* The recipe's own seed or ranks, read like the option of the same name. */
static enum status top_integer(int64_t *value, const struct raw_recipe *raw, enum option option) {
  const struct raw_setting *setting = raw_find(&raw->top, options_row(option)->key);
  struct options options;
  options_defaults(&options);
  if (setting) TRY(options_set(&options, option, setting->value));
  *value = option == OPTION_seed ? options.seed : options.ranks;
  return STATUS_OK;
}

enum status recipe_resolve(struct recipe *recipe, const struct raw_recipe *raw) {
  TRY(top_integer(&recipe->seed, raw, OPTION_seed));
  TRY(top_integer(&recipe->ranks, raw, OPTION_ranks));
  if (recipe->ranks == 0) recipe->ranks = 1;
  for (size_t i = 0; i < raw->defaults.count; i++) {
    const struct raw_setting *setting = &raw->defaults.settings[i];
    if (options_find(setting->key) == OPTION_COUNT) return check_default(recipe, setting);
  }
  for (size_t i = 0; i < recipe->node_count; i++)
    TRY(resolve_node(recipe, &recipe->nodes[recipe->order[i]], raw));
  for (size_t i = 0; i < raw->defaults.count; i++)
    TRY(check_default(recipe, &raw->defaults.settings[i]));
  return STATUS_OK;
}
