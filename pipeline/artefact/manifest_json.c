/* manifest.h: the text of manifest.json. Its last key, "checksum", is the hash of all before it, so
 * that a flipped bit anywhere is found. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/output_json.h"
#include "pipeline/base/build.h"
#include "pipeline/base/file.h"

static const char FORMAT[] = "millrace.manifest";

static enum status checksum(char hex[HASH_HEX_BYTES], const json_t *object) {
  char *text = json_dumps(object, JSON_COMPACT);
  CHECK(text, STATUS_ENVIRONMENT, "out of memory");
  hash_to_hex(hex, hash_bytes128(text, strlen(text)));
  free(text);
  return STATUS_OK;
}

static enum status set(json_t *object, const char *key, json_t *value) {
  CHECK(json_object_set_new(object, key, value) == 0, STATUS_ENVIRONMENT,
        "out of memory, or '%s' is not UTF-8", key);
  return STATUS_OK;
}

static enum status set_head(json_t *root, const struct manifest *manifest) {
  TRY(set(root, "format", json_string(FORMAT)));
  TRY(set(root, "version", json_integer(MANIFEST_VERSION)));
  TRY(set(root, "kind", json_string(manifest->kind ? manifest->kind : "")));
  TRY(set(root, "node", json_string(manifest->node ? manifest->node : "")));
  TRY(set(root, "build", json_string(manifest->build ? manifest->build : build_id())));
  TRY(set(root, "config_hash", json_string(manifest->config_hash)));
  return set(root, "world", json_integer(manifest->world));
}

static enum status set_inputs(json_t *root, const struct manifest *manifest) {
  TRY(set(root, "inputs", json_array()));
  json_t *inputs = json_object_get(root, "inputs");
  for (int64_t i = 0; i < manifest->input_count; i++) {
    json_t *input =
        json_pack("{s:s, s:s}", "name", manifest->inputs[i].name, "hash", manifest->inputs[i].hash);
    CHECK(json_array_append_new(inputs, input) == 0, STATUS_ENVIRONMENT, "out of memory");
  }
  return STATUS_OK;
}

static enum status set_outputs(json_t *root, const struct manifest *manifest) {
  TRY(set(root, "outputs", json_array()));
  json_t *outputs = json_object_get(root, "outputs");
  for (int64_t i = 0; i < manifest->output_count; i++) {
    json_t *output;
    TRY(output_json_make(&output, manifest->outputs[i].path, &manifest->outputs[i].blocks));
    CHECK(json_array_append_new(outputs, output) == 0, STATUS_ENVIRONMENT, "out of memory");
  }
  return STATUS_OK;
}

static enum status set_scalars(json_t *root, const char *key, const struct scalars *scalars) {
  json_t *object;
  TRY(scalars_to_json(&object, scalars));
  return set(root, key, object);
}

static enum status build(json_t *root, struct manifest *manifest) {
  char hex[HASH_HEX_BYTES];
  manifest_sort(manifest);
  TRY(set_head(root, manifest));
  TRY(set_inputs(root, manifest));
  TRY(set_outputs(root, manifest));
  TRY(set_scalars(root, "facts", &manifest->facts));
  TRY(set_scalars(root, "timings", &manifest->timings));
  TRY(set_scalars(root, "state", &manifest->state));
  TRY(checksum(hex, root));
  return set(root, "checksum", json_string(hex));
}

enum status manifest_format(struct text *text, struct manifest *manifest) {
  json_t *root = json_object();
  CHECK(root, STATUS_ENVIRONMENT, "out of memory");
  enum status status = build(root, manifest);
  char *dump = status == STATUS_OK ? json_dumps(root, JSON_INDENT(1)) : NULL;
  json_decref(root);
  TRY(status);
  CHECK(dump, STATUS_ENVIRONMENT, "out of memory: a manifest");
  status = text_format(text, "%s\n", dump);
  free(dump);
  return status;
}

static enum status get_string(const json_t *root, const char *key, const char **value,
                              const char *where) {
  *value = json_string_value(json_object_get(root, key));
  CHECK(*value, STATUS_DAMAGED, "'%s' has no text '%s'", where, key);
  return STATUS_OK;
}

static enum status get_text(const json_t *root, const char *key, char **member, const char *where) {
  const char *value;
  TRY(get_string(root, key, &value, where));
  return manifest_set_text(member, value);
}

static enum status get_head(struct manifest *manifest, const json_t *root, const char *where) {
  const char *value;
  TRY(get_string(root, "format", &value, where));
  CHECK(strcmp(value, FORMAT) == 0, STATUS_DAMAGED, "'%s' has the format '%s', expected '%s'",
        where, value, FORMAT);
  const json_int_t version = json_integer_value(json_object_get(root, "version"));
  CHECK(version == MANIFEST_VERSION, STATUS_MISMATCH, "'%s' has version %lld, this build reads %d",
        where, (long long)version, MANIFEST_VERSION);
  TRY(get_text(root, "kind", &manifest->kind, where));
  TRY(get_text(root, "node", &manifest->node, where));
  TRY(get_text(root, "build", &manifest->build, where));
  TRY(get_string(root, "config_hash", &value, where));
  snprintf(manifest->config_hash, HASH_HEX_BYTES, "%s", value);
  manifest->world = json_integer_value(json_object_get(root, "world"));
  return STATUS_OK;
}

static enum status get_lists(struct manifest *manifest, const json_t *root, const char *where) {
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(root, "inputs"), i, item) {
    const char *name, *hash;
    TRY(get_string(item, "name", &name, where));
    TRY(get_string(item, "hash", &hash, where));
    CHECK(strlen(hash) == HASH_HEX_BYTES - 1, STATUS_DAMAGED,
          "'%s': input '%s' has the hash '%s', which has not 32 digits", where, name, hash);
    TRY(manifest_add_input(manifest, name, hash));
  }
  json_array_foreach(json_object_get(root, "outputs"), i, item) {
    const char *path;
    struct blocks blocks = {0};
    TRY(output_json_read(item, &path, &blocks, where));
    const bool again = manifest_find(manifest, path) != NULL;
    if (again) blocks_free(&blocks);
    CHECK(!again, STATUS_DAMAGED, "'%s' lists the output '%s' twice", where, path);
    const enum status status = manifest_add_output(manifest, path, &blocks);
    blocks_free(&blocks);
    TRY(status);
  }
  TRY(scalars_from_json(&manifest->facts, json_object_get(root, "facts"), where));
  TRY(scalars_from_json(&manifest->timings, json_object_get(root, "timings"), where));
  return scalars_from_json(&manifest->state, json_object_get(root, "state"), where);
}

/* The checksum comes off the object before its hash is taken. */
static enum status check_checksum(json_t *root, const char *where) {
  char found[HASH_HEX_BYTES], expected[HASH_HEX_BYTES];
  const char *value;
  TRY(get_string(root, "checksum", &value, where));
  snprintf(expected, sizeof expected, "%s", value);
  json_object_del(root, "checksum");
  TRY(checksum(found, root));
  CHECK(strcmp(found, expected) == 0, STATUS_DAMAGED,
        "'%s' is damaged: its checksum is %s, it says %s", where, found, expected);
  return STATUS_OK;
}

static enum status take(struct manifest *manifest, json_t *root, const char *where) {
  CHECK(json_is_object(root), STATUS_DAMAGED, "'%s' is not a JSON object", where);
  TRY(check_checksum(root, where));
  TRY(get_head(manifest, root, where));
  return get_lists(manifest, root, where);
}

enum status manifest_parse(struct manifest *manifest, const char *bytes, size_t count,
                           const char *where) {
  json_error_t error;
  json_t *root = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &error);
  CHECK(root, STATUS_DAMAGED, "'%s' is not sound JSON at line %d: %s", where, error.line,
        error.text);
  const enum status status = take(manifest, root, where);
  json_decref(root);
  if (status != STATUS_OK) manifest_free(manifest);
  return status;
}

enum status manifest_write(struct manifest *manifest, const char *folder) {
  char path[PATH_MAX];
  struct text text = {0};
  TRY(manifest_join(path, folder, MANIFEST_NAME));
  enum status status = manifest_format(&text, manifest);
  if (status == STATUS_OK) status = file_write(path, text.bytes, text.length);
  text_free(&text);
  return status;
}

enum status manifest_read(struct manifest *manifest, const char *folder) {
  char path[PATH_MAX];
  struct text text = {0};
  TRY(manifest_join(path, folder, MANIFEST_NAME));
  enum status status = file_read(&text, path);
  if (status == STATUS_OK) status = manifest_parse(manifest, text.bytes, text.length, path);
  text_free(&text);
  return status;
}
