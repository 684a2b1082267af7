#include "pipeline/artefact/output_json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"

enum { DIGITS = 16 };

static enum status format_hashes(struct text *text, const struct blocks *blocks) {
  TRY(text_add(text, ""));
  for (int64_t i = 0; i < blocks->count; i++)
    TRY(text_format(text, "%016llx", (unsigned long long)blocks->hashes[i]));
  return STATUS_OK;
}

enum status output_json_make(json_t **object, const char *path, const struct blocks *blocks) {
  struct text text = {0};
  const enum status status = format_hashes(&text, blocks);
  *object = status == STATUS_OK ? json_pack("{s:s, s:I, s:I, s:I, s:s}", "path", path, "bytes",
                                            (json_int_t)blocks->file_bytes, "first_bytes",
                                            (json_int_t)blocks->first_bytes, "block_bytes",
                                            (json_int_t)blocks->block_bytes, "blocks", text.bytes)
                                : NULL;
  text_free(&text);
  TRY(status);
  CHECK(*object, STATUS_ENVIRONMENT, "out of memory, or the path '%s' is not UTF-8", path);
  return STATUS_OK;
}

static bool parse_hash(uint64_t *hash, const char *digits) {
  *hash = 0;
  for (int i = 0; i < DIGITS; i++) {
    const char *known = "0123456789abcdef", *found = strchr(known, digits[i]);
    if (!digits[i] || !found) return false;
    *hash = *hash << 4 | (uint64_t)(found - known);
  }
  return true;
}

static enum status get_size(const json_t *object, const char *key, uint64_t *value,
                            const char *where) {
  const json_t *item = json_object_get(object, key);
  CHECK(json_is_integer(item) && json_integer_value(item) >= 0, STATUS_DAMAGED,
        "'%s': an output has no size '%s'", where, key);
  *value = (uint64_t)json_integer_value(item);
  return STATUS_OK;
}

/* Paths stay inside the folder. */
static bool is_inside(const char *path) {
  const size_t length = strlen(path);
  return path[0] && path[0] != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
         !strstr(path, "/../") && (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

static enum status get_shape(const json_t *object, struct blocks *blocks, const char *where) {
  TRY(get_size(object, "bytes", &blocks->file_bytes, where));
  TRY(get_size(object, "first_bytes", &blocks->first_bytes, where));
  TRY(get_size(object, "block_bytes", &blocks->block_bytes, where));
  CHECK(blocks->block_bytes, STATUS_DAMAGED, "'%s': blocks of 0 bytes", where);
  return STATUS_OK;
}

static enum status get_hashes(struct blocks *blocks, const char *digits, const char *path,
                              const char *where) {
  const size_t length = strlen(digits);
  for (size_t at = 0; at + DIGITS <= length; at += DIGITS) {
    uint64_t hash;
    CHECK(parse_hash(&hash, digits + at), STATUS_DAMAGED,
          "'%s': output '%s' has a hash that is no number", where, path);
    TRY(blocks_add_hash(blocks, hash));
  }
  const bool complete = (size_t)blocks->count * DIGITS == length &&
                        (!blocks->first_bytes || blocks->count == blocks_expected(blocks));
  CHECK(complete, STATUS_DAMAGED, "'%s': output '%s' lists %lld hashes, its size needs others",
        where, path, (long long)blocks->count);
  return STATUS_OK;
}

enum status output_json_read(const json_t *object, const char **path, struct blocks *blocks,
                             const char *where) {
  struct blocks made = {0};
  *path = json_string_value(json_object_get(object, "path"));
  const char *digits = json_string_value(json_object_get(object, "blocks"));
  CHECK(*path && digits && is_inside(*path), STATUS_DAMAGED,
        "'%s': an output has no 'blocks', or no 'path' inside the folder", where);
  TRY(get_shape(object, &made, where));
  const enum status status = get_hashes(&made, digits, *path, where);
  if (status != STATUS_OK) blocks_free(&made);
  TRY(status);
  *blocks = made;
  return STATUS_OK;
}
