#include "pipeline/driver/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/run_folder.h"

static enum status add_path(struct text *text, const char *key, const char *path,
                            struct content_cache *cache) {
  char hex[HASH_HEX_BYTES] = "none";
  if (*path) TRY(content_identity(hex, path, cache));
  return text_format(text, "%s: %s\n", key, hex);
}

static enum status add_paths(struct text *text, const struct option_row *row,
                             const struct option_texts *paths, struct content_cache *cache) {
  for (size_t i = 0; i < paths->count; i++) {
    char key[96];
    snprintf(key, sizeof key, "%s[%zu]", row->key, i);
    TRY(add_path(text, key, paths->values[i], cache));
  }
  return STATUS_OK;
}

static enum status add_option(struct text *text, const struct options *options, enum option option,
                              struct content_cache *cache) {
  const struct option_row *row = options_row(option);
  const void *value = (const char *)options + row->offset;
  if (row->type == OPTION_TYPE_PATHS) return add_paths(text, row, value, cache);
  if (row->type == OPTION_TYPE_PATH)
    return add_path(text, row->key, *(const char *const *)value, cache);
  TRY(text_format(text, "%s: ", row->key));
  TRY(options_format(text, options, option));
  return text_add(text, "\n");
}

static enum status add_options(struct text *text, const struct recipe_node *node,
                               struct content_cache *cache) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const enum option option = (enum option)i;
    if (!options_row(option)->changes_result) continue;
    if (!options_applies(&node->options, node->kind, option, NULL)) continue;
    if (add_option(text, &node->options, option, cache) != STATUS_OK) {
      struct text cause = {0};
      const enum status status = text_add(&cause, error_message());
      error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__, "%s: node '%s': %s: %s",
                  node->where, node->name, options_row(option)->key,
                  status == STATUS_OK ? cause.bytes : "unusable");
      text_free(&cause);
      return STATUS_MISMATCH;
    }
  }
  return STATUS_OK;
}

static enum status add_input(struct text *text, const struct recipe_node *input,
                             const char *run_folder) {
  struct run_folder folder;
  struct manifest manifest = {0};
  char hex[HASH_HEX_BYTES];
  TRY(run_folder_locate(&folder, run_folder, input->name));
  TRY(manifest_read(&manifest, folder.path));
  const enum status status = manifest_identity(hex, &manifest);
  manifest_free(&manifest);
  TRY(status);
  return text_format(text, "from %s: %s\n", input->name, hex);
}

enum status fingerprint_make(struct text *text, const struct recipe *recipe,
                             const struct recipe_node *node, const char *run_folder,
                             struct content_cache *cache) {
  TRY(text_format(text, "format: %d\nrun: %s\n", (int)FINGERPRINT_FORMAT, kind_name(node->kind)));
  if (kind_rules(node->kind) > 1) TRY(text_format(text, "rules: %d\n", kind_rules(node->kind)));
  TRY(add_options(text, node, cache));
  for (size_t i = 0; i < node->input_count; i++)
    TRY(add_input(text, &recipe->nodes[node->inputs[i]], run_folder));
  return STATUS_OK;
}

/* A line "key: value" of a fingerprint, without its newline. */
struct line {
  const char *text;
  int key, length;
};

static struct line line_at(const char *text) {
  const char *colon = strstr(text, ": ");
  const int length = (int)strcspn(text, "\n");
  const int key = colon && colon - text < length ? (int)(colon - text) : length;
  return (struct line){text, key, length};
}

static const char *next_line(const char *text) {
  text += strcspn(text, "\n");
  return *text ? text + 1 : text;
}

static bool find_line(struct line *found, const char *text, struct line wanted) {
  for (; *text; text = next_line(text)) {
    *found = line_at(text);
    if (found->key == wanted.key && memcmp(found->text, wanted.text, (size_t)wanted.key) == 0)
      return true;
  }
  return false;
}

static const char *value_of(struct line line) {
  return line.key < line.length ? line.text + line.key + 2 : line.text + line.key;
}

static int value_length(struct line line) {
  return line.key < line.length ? line.length - line.key - 2 : 0;
}

/* Whether the value is a hash, which says nothing to people. */
static bool is_hash(struct line line) {
  return value_length(line) == HASH_HEX_BYTES - 1 &&
         strspn(value_of(line), "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

static enum status add_change(struct text *text, struct line old, struct line new) {
  if (is_hash(old) && is_hash(new))
    return text_format(text, "%.*s: its content changed\n", new.key, new.text);
  return text_format(text, "%.*s: %.*s -> %.*s\n", new.key, new.text, value_length(old),
                     value_of(old), value_length(new), value_of(new));
}

static bool same(struct line a, struct line b) {
  return a.length == b.length && memcmp(a.text, b.text, (size_t)a.length) == 0;
}

enum status fingerprint_difference(struct text *text, const char *old, const char *new) {
  struct line other;
  for (const char *at = new; *at; at = next_line(at)) {
    const struct line line = line_at(at);
    if (!find_line(&other, old, line))
      TRY(text_format(text, "%.*s is new\n", line.length, line.text));
    else if (!same(line, other))
      TRY(add_change(text, other, line));
  }
  for (const char *at = old; *at; at = next_line(at)) {
    const struct line line = line_at(at);
    if (!find_line(&other, new, line))
      TRY(text_format(text, "%.*s is gone\n", line.length, line.text));
  }
  return STATUS_OK;
}
