#include "pipeline/config/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"
#include "pipeline/config/pool.h"
#include "pipeline/config/recipe_raw.h"

enum { NAME_DIGITS = 16 };

/* What configurations differ in: one alternative of each axis makes one of them. */
struct axis {
  size_t count;
  const char *const *alternatives; /* settings, "key=value key=value" each */
};

struct expansion {
  struct sweep *sweep;
  const struct recipe *recipe;
  const struct recipe_node *node; /* the sweep node */
  const char *place;              /* "r.yaml:12: node 'lambdas'" */
  size_t axis_count;
  struct axis axes[SWEEP_KEYS + 1];
  const char *own[SWEEP_KEYS]; /* what the recipe has */
};

/* One setting, understood. */
struct sweep_setting {
  size_t key;
  const char *value;
};

static enum status find_node(const struct recipe_node **node, const struct expansion *x,
                             const char *key) {
  char name[RECIPE_NAME_BYTES];
  const size_t length = strcspn(key, ".");
  CHECK(key[length] == '.' && length > 0 && length < sizeof name, STATUS_MISMATCH,
        "%s: expected node.key, found '%s'", x->place, key);
  memcpy(name, key, length);
  name[length] = '\0';
  TRY(recipe_find(node, x->recipe, name));
  CHECK(recipe_depends(x->recipe, x->node, *node), STATUS_MISMATCH,
        "%s: '%s': the sweep is not from node '%s', directly or through others", x->place, key,
        name);
  return STATUS_OK;
}

static enum status find_option(const struct recipe_node **node, enum option *option,
                               const struct expansion *x, const char *key) {
  TRY(find_node(node, x, key));
  const char *own = strchr(key, '.') + 1;
  const unsigned kind = 1u << (*node)->kind;
  *option = options_find(own);
  if (*option == OPTION_COUNT || !(options_row(*option)->kinds & kind)) {
    const char *nearest = options_nearest(own, kind);
    FAIL(STATUS_MISMATCH, "%s: '%s': unknown option of a node that runs %s%s%s%s", x->place, key,
         kind_name((*node)->kind), nearest ? "; did you mean '" : "", nearest ? nearest : "",
         nearest ? "'?" : "");
  }
  CHECK(options_row(*option)->changes_result, STATUS_MISMATCH,
        "%s: '%s' cannot change what is made: all configurations would be the same", x->place, key);
  return STATUS_OK;
}

static bool is_text(enum option option) {
  const enum option_type type = options_row(option)->type;
  return type == OPTION_TYPE_TEXT || type == OPTION_TYPE_PATH || type == OPTION_TYPE_PATHS;
}

/* The value as a recipe would write it, checked; texts stay as they are. */
static enum status canonical(const char **value, const struct expansion *x,
                             const struct recipe_node *node, enum option option,
                             const char *written) {
  struct options options = node->options;
  struct text text = {0};
  struct option_text parsed = {.where = node->where};
  if (written) {
    TRY(raw_value(&parsed, x->sweep->pool, written));
    TRY(pool_format(&parsed.where, x->sweep->pool, "%s: %s", x->place, node->name));
    TRY(options_set(&options, option, parsed));
    if (is_text(option)) return pool_text(value, x->sweep->pool, written);
  }
  enum status status = options_format(&text, &options, option);
  if (status == STATUS_OK) status = pool_text(value, x->sweep->pool, text.bytes);
  text_free(&text);
  return status;
}

/* The number of a key, new or known. */
static enum status find_key(size_t *index, struct expansion *x, const char *key) {
  struct sweep *sweep = x->sweep;
  for (*index = 0; *index < sweep->key_count; ++*index)
    if (strcmp(sweep->keys[*index], key) == 0) return STATUS_OK;
  CHECK(sweep->key_count < SWEEP_KEYS, STATUS_MISMATCH, "%s: more than %d keys", x->place,
        (int)SWEEP_KEYS);
  const struct recipe_node *node;
  enum option option;
  TRY(find_option(&node, &option, x, key));
  TRY(pool_text(&sweep->keys[sweep->key_count++], sweep->pool, key));
  return canonical(&x->own[*index], x, node, option, NULL);
}

/* Understands the setting at `at`, up to a space, and moves on. */
static enum status read_setting(struct sweep_setting *setting, struct expansion *x,
                                const char **at) {
  const char *written, *key;
  const struct recipe_node *node;
  enum option option;
  *at += strspn(*at, " ");
  const size_t length = raw_item(*at), name = strcspn(*at, "=");
  TRY(pool_bytes(&written, x->sweep->pool, *at, length));
  CHECK(name > 0 && name + 1 < length, STATUS_MISMATCH, "%s: expected node.key=value, found '%s'",
        x->place, *at);
  TRY(pool_bytes(&key, x->sweep->pool, *at, name));
  TRY(find_key(&setting->key, x, key));
  TRY(find_option(&node, &option, x, key));
  TRY(canonical(&setting->value, x, node, option, written + name + 1));
  *at += length + strspn(*at + length, " ");
  return STATUS_OK;
}

/* "base.width=[128,256]" as the alternatives "base.width=128" and "base.width=256". */
static enum status add_grid_axis(struct expansion *x, const char *written) {
  struct option_text values = {0};
  const char *equals = strchr(written, '=');
  CHECK(equals, STATUS_MISMATCH, "%s: grid: expected node.key=[value, ...], found '%s'", x->place,
        written);
  TRY(raw_value(&values, x->sweep->pool, equals + 1));
  CHECK(values.count > 0, STATUS_MISMATCH, "%s: grid: '%s': the list of values is empty", x->place,
        written);
  CHECK(x->axis_count < SWEEP_KEYS, STATUS_MISMATCH, "%s: grid: more than %d keys", x->place,
        (int)SWEEP_KEYS);
  void *piece;
  TRY(pool_take(&piece, x->sweep->pool, values.count * sizeof(char *)));
  const char **alternatives = piece;
  for (size_t i = 0; i < values.count; i++)
    TRY(pool_format(&alternatives[i], x->sweep->pool, "%.*s%s", (int)(equals + 1 - written),
                    written, values.items[i]));
  x->axes[x->axis_count++] = (struct axis){values.count, alternatives};
  return STATUS_OK;
}

static enum status find_axes(struct expansion *x) {
  const struct option_settings *list = &x->node->options.configurations;
  const struct option_settings *grid = &x->node->options.grid;
  CHECK(list->count + grid->count > 0, STATUS_MISMATCH,
        "%s: a sweep needs `grid:` or `configurations:`", x->place);
  if (list->count) x->axes[x->axis_count++] = (struct axis){list->count, list->values};
  for (size_t i = 0; i < grid->count; i++) TRY(add_grid_axis(x, grid->values[i]));
  x->sweep->count = 1;
  for (size_t i = 0; i < x->axis_count; i++) {
    x->sweep->count *= x->axes[i].count;
    CHECK(x->sweep->count <= SWEEP_CONFIGURATIONS, STATUS_MISMATCH,
          "%s: more than %d configurations", x->place, (int)SWEEP_CONFIGURATIONS);
  }
  return STATUS_OK;
}

static enum status add_settings(struct sweep_configuration *configuration, struct expansion *x,
                                const char *written) {
  while (*written) {
    struct sweep_setting setting;
    TRY(read_setting(&setting, x, &written));
    CHECK(!configuration->values[setting.key], STATUS_MISMATCH,
          "%s: '%s' is given twice for one configuration", x->place, x->sweep->keys[setting.key]);
    configuration->values[setting.key] = setting.value;
  }
  return STATUS_OK;
}

/* Configuration `index`: the last axis runs fastest. */
static enum status make_configuration(struct expansion *x, size_t index) {
  struct sweep_configuration *configuration = &x->sweep->configurations[index];
  void *piece;
  TRY(pool_take(&piece, x->sweep->pool, SWEEP_KEYS * sizeof(char *)));
  configuration->values = piece;
  size_t choice[SWEEP_KEYS + 1];
  for (size_t i = x->axis_count; i-- > 0; index /= x->axes[i].count)
    choice[i] = index % x->axes[i].count;
  for (size_t i = 0; i < x->axis_count; i++)
    TRY(add_settings(configuration, x, x->axes[i].alternatives[choice[i]]));
  return STATUS_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names a configuration by all its values, those that it leaves to the recipe included. */
static enum status name_configuration(struct expansion *x, struct sweep_configuration *c) {
  const char *lines[SWEEP_KEYS];
  char hex[HASH_HEX_BYTES];
  struct text all = {0}, given = {0};
  const struct sweep *sweep = x->sweep;
  enum status status = text_add(&given, "");
  for (size_t i = 0; i < sweep->key_count && status == STATUS_OK; i++) {
    const char *value = c->values[i] ? c->values[i] : x->own[i];
    status = pool_format(&lines[i], sweep->pool, "%s=%s\n", sweep->keys[i], value);
    if (status == STATUS_OK && c->values[i])
      status = text_format(&given, "%s%s=%s", given.length ? " " : "", sweep->keys[i], value);
  }
  if (status == STATUS_OK) qsort(lines, sweep->key_count, sizeof *lines, by_name);
  for (size_t i = 0; i < sweep->key_count && status == STATUS_OK; i++)
    status = text_add(&all, lines[i]);
  if (status == STATUS_OK) {
    hash_to_hex(hex, hash_bytes128(all.bytes, all.length));
    status = pool_bytes(&c->name, sweep->pool, hex, NAME_DIGITS);
  }
  if (status == STATUS_OK) status = pool_text(&c->settings, sweep->pool, given.bytes);
  text_free(&all);
  text_free(&given);
  return status;
}

static int by_configuration(const void *a, const void *b) {
  return strcmp((*(const struct sweep_configuration *const *)a)->name,
                (*(const struct sweep_configuration *const *)b)->name);
}

static enum status check_duplicates(const struct expansion *x) {
  const struct sweep *sweep = x->sweep;
  void *piece;
  TRY(pool_take(&piece, sweep->pool, sweep->count * sizeof(void *)));
  const struct sweep_configuration **sorted = piece;
  for (size_t i = 0; i < sweep->count; i++) sorted[i] = &sweep->configurations[i];
  qsort(sorted, sweep->count, sizeof *sorted, by_configuration);
  for (size_t i = 1; i < sweep->count; i++)
    CHECK(strcmp(sorted[i - 1]->name, sorted[i]->name) != 0, STATUS_MISMATCH,
          "%s: two configurations are the same: '%s'", x->place, sorted[i]->settings);
  return STATUS_OK;
}

static enum status expand(struct expansion *x) {
  struct sweep *sweep = x->sweep;
  void *piece;
  TRY(pool_format(&x->place, sweep->pool, "%s: node '%s'", x->node->where, x->node->name));
  TRY(find_axes(x));
  TRY(pool_take(&piece, sweep->pool, sweep->count * sizeof *sweep->configurations));
  sweep->configurations = piece;
  for (size_t i = 0; i < sweep->count; i++) TRY(make_configuration(x, i));
  for (size_t i = 0; i < sweep->count; i++) TRY(name_configuration(x, &sweep->configurations[i]));
  return check_duplicates(x);
}

enum status sweep_expand(struct sweep *sweep, const struct recipe *recipe,
                         const struct recipe_node *node) {
  struct expansion x = {.sweep = sweep, .recipe = recipe, .node = node};
  memset(sweep, 0, sizeof *sweep);
  TRY(pool_init(&sweep->pool));
  const enum status status = expand(&x);
  if (status != STATUS_OK) sweep_free(sweep);
  TRY(status);
  return STATUS_OK;
}

void sweep_free(struct sweep *sweep) {
  pool_free(sweep->pool);
  memset(sweep, 0, sizeof *sweep);
}
