/* YAML to a raw recipe, with libyaml's document interface, which keeps the line of every node. */
#include <string.h>
#include <yaml.h>

#include "pipeline/config/recipe_raw.h"

static const char *const top_keys[] = {"name", "seed", "ranks", "defaults", "nodes"};

struct reader {
  struct raw_recipe *raw;
  yaml_document_t *document;
};

static size_t line_of(const yaml_node_t *node) {
  return node->start_mark.line + 1;
}

static enum status place(const char **where, struct reader reader, const yaml_node_t *node) {
  return pool_format(where, reader.raw->pool, "%s:%zu", reader.raw->file, line_of(node));
}

static enum status read_scalar(const char **text, struct reader reader, const yaml_node_t *node,
                               const char *what) {
  CHECK(node->type == YAML_SCALAR_NODE, STATUS_MISMATCH, "%s:%zu: expected a plain value for %s",
        reader.raw->file, line_of(node), what);
  const char *bytes = (const char *)node->data.scalar.value;
  CHECK(strlen(bytes) == node->data.scalar.length, STATUS_MISMATCH,
        "%s:%zu: %s: a zero byte in a value", reader.raw->file, line_of(node), what);
  const bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  const bool nothing = !*bytes || strcmp(bytes, "~") == 0 || strcmp(bytes, "null") == 0;
  CHECK(!(plain && nothing), STATUS_MISMATCH, "%s:%zu: %s has no value", reader.raw->file,
        line_of(node), what);
  return pool_text(text, reader.raw->pool, bytes);
}

/* Appends "a", or "[a,b]" for a list; nested lists likewise. */
static enum status add_value(struct text *text, struct reader reader, const yaml_node_t *node,
                             const char *key) {
  const char *scalar;
  if (node->type != YAML_SEQUENCE_NODE) {
    TRY(read_scalar(&scalar, reader, node, key));
    CHECK(!strpbrk(scalar, " ,[]\n"), STATUS_MISMATCH,
          "%s:%zu: %s: a value of a sweep cannot have spaces, commas or brackets: '%s'",
          reader.raw->file, line_of(node), key, scalar);
    return text_add(text, scalar);
  }
  TRY(text_add(text, "["));
  for (const yaml_node_item_t *item = node->data.sequence.items.start;
       item < node->data.sequence.items.top; item++) {
    if (item > node->data.sequence.items.start) TRY(text_add(text, ","));
    TRY(add_value(text, reader, yaml_document_get_node(reader.document, *item), key));
  }
  return text_add(text, "]");
}

/* Appends "key=value" of a pair. */
static enum status add_setting(struct text *text, struct reader reader,
                               const yaml_node_pair_t *pair) {
  const char *key;
  TRY(read_scalar(&key, reader, yaml_document_get_node(reader.document, pair->key), "a key"));
  TRY(text_format(text, "%s=", key));
  return add_value(text, reader, yaml_document_get_node(reader.document, pair->value), key);
}

/* A mapping as "key=value key=value"; anything else is a text already. */
static enum status read_settings(const char **item, struct reader reader, const yaml_node_t *node,
                                 const char *key) {
  struct text text = {0};
  if (node->type != YAML_MAPPING_NODE) return read_scalar(item, reader, node, key);
  enum status status = text_add(&text, "");
  const yaml_node_pair_t *first = node->data.mapping.pairs.start;
  for (const yaml_node_pair_t *pair = first;
       status == STATUS_OK && pair < node->data.mapping.pairs.top; pair++) {
    if (pair > first) status = text_add(&text, " ");
    if (status == STATUS_OK) status = add_setting(&text, reader, pair);
  }
  if (status == STATUS_OK) status = pool_text(item, reader.raw->pool, text.bytes);
  text_free(&text);
  return status;
}

/* Whether the key's value is settings of other nodes, which may be written as mappings. */
static bool holds_settings(const char *key) {
  const enum option option = options_find(key);
  return option != OPTION_COUNT && options_row(option)->type == OPTION_TYPE_SETTINGS;
}

/* {a: [1, 2], b: 3} as the list "a=[1,2]", "b=3". */
static enum status read_pairs(struct option_text *value, struct reader reader,
                              const yaml_node_t *node) {
  const yaml_node_pair_t *first = node->data.mapping.pairs.start;
  const size_t count = (size_t)(node->data.mapping.pairs.top - first);
  void *piece;
  TRY(pool_take(&piece, reader.raw->pool, (count + 1) * sizeof *value->items));
  const char **items = piece;
  *value = (struct option_text){items, count, true, value->where};
  for (size_t i = 0; i < count; i++) {
    struct text text = {0};
    enum status status = add_setting(&text, reader, first + i);
    if (status == STATUS_OK) status = pool_text(&items[i], reader.raw->pool, text.bytes);
    text_free(&text);
    TRY(status);
  }
  return STATUS_OK;
}

static enum status read_value(struct option_text *value, struct reader reader,
                              const yaml_node_t *node, const char *key) {
  TRY(place(&value->where, reader, node));
  if (holds_settings(key) && node->type == YAML_MAPPING_NODE)
    return read_pairs(value, reader, node);
  value->is_list = node->type == YAML_SEQUENCE_NODE;
  const yaml_node_item_t *start = value->is_list ? node->data.sequence.items.start : NULL;
  value->count = value->is_list ? (size_t)(node->data.sequence.items.top - start) : 1;
  void *piece;
  TRY(pool_take(&piece, reader.raw->pool, (value->count + 1) * sizeof *value->items));
  const char **items = piece;
  value->items = items;
  if (!value->is_list) return read_scalar(&items[0], reader, node, key);
  for (size_t i = 0; i < value->count; i++) {
    const yaml_node_t *item = yaml_document_get_node(reader.document, start[i]);
    TRY(holds_settings(key) ? read_settings(&items[i], reader, item, key)
                            : read_scalar(&items[i], reader, item, key));
  }
  return STATUS_OK;
}

static enum status expect_mapping(struct reader reader, const yaml_node_t *node, const char *what) {
  CHECK(node && node->type == YAML_MAPPING_NODE, STATUS_MISMATCH,
        "%s:%zu: expected a mapping (key: value) for %s", reader.raw->file,
        node ? line_of(node) : 1, what);
  return STATUS_OK;
}

/* Adds every pair of a mapping to a block. */
static enum status read_block(struct raw_block *block, struct reader reader,
                              const yaml_node_t *node) {
  TRY(expect_mapping(reader, node, block->name));
  TRY(place(&block->where, reader, node));
  for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
       pair < node->data.mapping.pairs.top; pair++) {
    struct raw_setting setting = {0};
    const yaml_node_t *key = yaml_document_get_node(reader.document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(reader.document, pair->value);
    TRY(read_scalar(&setting.key, reader, key, "a key"));
    TRY(read_value(&setting.value, reader, value, setting.key));
    TRY(place(&setting.value.where, reader, key));
    TRY(raw_add(block, setting, false));
  }
  return STATUS_OK;
}

static enum status add_node(struct reader reader, const char *name, const yaml_node_t *key,
                            const yaml_node_t *body) {
  struct raw_recipe *raw = reader.raw;
  for (size_t i = 0; i < raw->node_count; i++)
    CHECK(strcmp(raw->nodes[i]->name, name) != 0, STATUS_MISMATCH,
          "%s:%zu: node '%s' is given twice (first at %s)", raw->file, line_of(key), name,
          raw->nodes[i]->where);
  CHECK(raw->node_count < sizeof raw->nodes / sizeof *raw->nodes, STATUS_MISMATCH,
        "%s:%zu: more than %zu nodes", raw->file, line_of(key),
        sizeof raw->nodes / sizeof *raw->nodes);
  void *piece;
  TRY(pool_take(&piece, raw->pool, sizeof(struct raw_block)));
  struct raw_block *block = raw->nodes[raw->node_count++] = piece;
  block->name = name;
  TRY(read_block(block, reader, body));
  return place(&block->where, reader, key);
}

static enum status read_nodes(struct reader reader, const yaml_node_t *node) {
  TRY(expect_mapping(reader, node, "nodes"));
  for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
       pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = yaml_document_get_node(reader.document, pair->key);
    const char *name;
    TRY(read_scalar(&name, reader, key, "the name of a node"));
    TRY(add_node(reader, name, key, yaml_document_get_node(reader.document, pair->value)));
  }
  return STATUS_OK;
}

static enum status check_top_key(struct reader reader, const char *key, const yaml_node_t *node) {
  const size_t count = sizeof top_keys / sizeof *top_keys;
  for (size_t i = 0; i < count; i++)
    if (strcmp(key, top_keys[i]) == 0) return STATUS_OK;
  const char *nearest = text_nearest(key, top_keys, count);
  FAIL(STATUS_MISMATCH, "%s:%zu: unknown key '%s'; %s%s%s", reader.raw->file, line_of(node), key,
       nearest ? "did you mean '" : "a recipe has name, seed, ranks, defaults and nodes",
       nearest ? nearest : "", nearest ? "'?" : "");
}

static enum status read_top_pair(struct reader reader, const yaml_node_pair_t *pair) {
  struct raw_setting setting = {0};
  const yaml_node_t *key = yaml_document_get_node(reader.document, pair->key);
  const yaml_node_t *value = yaml_document_get_node(reader.document, pair->value);
  TRY(read_scalar(&setting.key, reader, key, "a key"));
  TRY(check_top_key(reader, setting.key, key));
  const bool nodes = strcmp(setting.key, "nodes") == 0;
  const bool block = nodes || strcmp(setting.key, "defaults") == 0;
  if (!block) TRY(read_value(&setting.value, reader, value, setting.key));
  TRY(place(&setting.value.where, reader, key));
  TRY(raw_add(&reader.raw->top, setting, false));
  if (nodes) return read_nodes(reader, value);
  return block ? read_block(&reader.raw->defaults, reader, value) : STATUS_OK;
}

static enum status read_document(struct raw_recipe *raw, yaml_document_t *document) {
  const struct reader reader = {raw, document};
  const yaml_node_t *root = yaml_document_get_root_node(document);
  CHECK(root, STATUS_MISMATCH, "%s: the recipe is empty", raw->file);
  TRY(expect_mapping(reader, root, "the recipe"));
  TRY(place(&raw->top.where, reader, root));
  for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
       pair < root->data.mapping.pairs.top; pair++)
    TRY(read_top_pair(reader, pair));
  return STATUS_OK;
}

static enum status load(struct raw_recipe *raw, yaml_parser_t *parser, yaml_document_t *document) {
  if (yaml_parser_load(parser, document)) return STATUS_OK;
  FAIL(STATUS_MISMATCH, "%s:%zu: not valid YAML: %s%s%s", raw->file, parser->problem_mark.line + 1,
       parser->problem ? parser->problem : "unknown problem", parser->context ? " " : "",
       parser->context ? parser->context : "");
}

enum status raw_read(struct raw_recipe *raw, const struct text *bytes) {
  raw->top.name = "";
  raw->defaults.name = "defaults";
  yaml_parser_t parser;
  yaml_document_t document;
  CHECK(yaml_parser_initialize(&parser), STATUS_ENVIRONMENT, "out of memory: a YAML parser");
  yaml_parser_set_input_string(&parser, (const unsigned char *)bytes->bytes, bytes->length);
  enum status status = load(raw, &parser, &document);
  if (status == STATUS_OK) {
    status = read_document(raw, &document);
    yaml_document_delete(&document);
  }
  yaml_parser_delete(&parser);
  TRY(status);
  return STATUS_OK;
}
