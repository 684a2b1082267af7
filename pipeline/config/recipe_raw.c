#include "pipeline/config/recipe_raw.h"

#include <string.h>

const struct raw_setting *raw_find(const struct raw_block *block, const char *key) {
  for (size_t i = 0; i < block->count; i++)
    if (strcmp(block->settings[i].key, key) == 0) return &block->settings[i];
  return NULL;
}

enum status raw_add(struct raw_block *block, struct raw_setting setting, bool replace) {
  for (size_t i = 0; i < block->count; i++) {
    if (strcmp(block->settings[i].key, setting.key) != 0) continue;
    CHECK(replace, STATUS_MISMATCH, "%s: key '%s' is given twice (first at %s)",
          setting.value.where, setting.key, block->settings[i].value.where);
    block->settings[i] = setting;
    return STATUS_OK;
  }
  CHECK(block->count < RAW_SETTINGS, STATUS_MISMATCH, "%s: more than %d keys in one mapping",
        setting.value.where, (int)RAW_SETTINGS);
  block->settings[block->count++] = setting;
  return STATUS_OK;
}

enum status raw_scalar(const char **value, const struct raw_setting *setting) {
  CHECK(!setting->value.is_list, STATUS_MISMATCH, "%s: %s: expected one value, found a list",
        setting->value.where, setting->key);
  *value = setting->value.items[0];
  return STATUS_OK;
}

static enum status find_node(struct raw_block **block, const struct raw_recipe *raw,
                             const char *name, const char *where) {
  const char *names[RECIPE_NODES];
  for (size_t i = 0; i < raw->node_count; i++) {
    names[i] = raw->nodes[i]->name;
    if (strcmp(names[i], name) != 0) continue;
    *block = raw->nodes[i];
    return STATUS_OK;
  }
  const char *nearest = text_nearest(name, names, raw->node_count);
  FAIL(STATUS_MISMATCH, "%s: the recipe has no node '%s'%s%s%s", where, name,
       nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

size_t raw_item(const char *at) {
  int depth = 0;
  const char *end = at;
  for (; *end && (depth > 0 || !strchr(" ,]", *end)); end++)
    depth += *end == '[' ? 1 : *end == ']' ? -1 : 0;
  return (size_t)(end - at);
}

enum status raw_value(struct option_text *value, struct pool *pool, const char *written) {
  const char **items;
  void *piece;
  TRY(pool_take(&piece, pool, (strlen(written) + 1) * sizeof *items));
  items = piece;
  const size_t length = strlen(written);
  value->items = items;
  value->is_list = length >= 2 && written[0] == '[' && written[length - 1] == ']';
  if (!value->is_list) {
    value->count = 1;
    return pool_text(&items[0], pool, written);
  }
  for (const char *at = written + 1; at < written + length - 1;) {
    at += strspn(at, " ,");
    const size_t item = raw_item(at);
    if (item) TRY(pool_bytes(&items[value->count++], pool, at, item));
    at += item;
    if (*at == ']') break;
  }
  return STATUS_OK;
}

enum status raw_set(struct raw_recipe *raw, const char *written) {
  struct raw_setting setting = {0};
  struct raw_block *block = &raw->defaults;
  TRY(pool_format(&setting.value.where, raw->pool, "--set %s", written));
  const char *equals = strchr(written, '=');
  CHECK(equals && equals != written, STATUS_MISMATCH,
        "%s: expected node.key=value, or key=value for all nodes", setting.value.where);
  const char *path;
  TRY(pool_bytes(&path, raw->pool, written, (size_t)(equals - written)));
  const char *dot = strchr(path, '.');
  setting.key = dot ? dot + 1 : path;
  if (dot) {
    const char *node;
    TRY(pool_bytes(&node, raw->pool, path, (size_t)(dot - path)));
    TRY(find_node(&block, raw, node, setting.value.where));
  } else if (strcmp(path, "name") == 0 || strcmp(path, "seed") == 0 || strcmp(path, "ranks") == 0) {
    block = &raw->top;
  }
  TRY(raw_value(&setting.value, raw->pool, equals + 1));
  return raw_add(block, setting, true);
}
