#include "pipeline/driver/publication.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/build.h"
#include "pipeline/driver/content.h"
#include "pipeline/driver/fingerprint.h"
#include "pipeline/driver/run.h"

static enum status make_fingerprint(struct publication *publication) {
  char file[PATH_MAX];
  struct content_cache cache = {0};
  CHECK(snprintf(file, sizeof file, "%s/%s", publication->run_folder, RUN_CACHE) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", publication->run_folder);
  content_cache_read(&cache, file);
  const enum status status = fingerprint_make(&publication->fingerprint, publication->recipe,
                                              publication->node, publication->run_folder, &cache);
  content_cache_close(&cache, file);
  return status;
}

enum status publication_begin(struct publication *publication, const struct recipe *recipe,
                              const struct recipe_node *node, const char *run_folder) {
  *publication = (struct publication){.recipe = recipe, .node = node, .run_folder = run_folder};
  TRY(run_folder_locate(&publication->folder, run_folder, node->name));
  TRY(make_fingerprint(publication));
  return run_folder_begin(&publication->folder, publication->fingerprint.bytes,
                          &publication->start);
}

/* The identity of a finished node, from its manifest. */
static enum status identity_of(char hex[HASH_HEX_BYTES], const struct publication *publication,
                               const char *name) {
  struct run_folder folder;
  struct manifest manifest = {0};
  TRY(run_folder_locate(&folder, publication->run_folder, name));
  enum status status = manifest_read(&manifest, folder.path);
  if (status == STATUS_OK) status = manifest_identity(hex, &manifest);
  manifest_free(&manifest);
  return status;
}

static enum status add_inputs(struct publication *publication) {
  for (size_t i = 0; i < publication->node->input_count; i++) {
    const char *name = publication->recipe->nodes[publication->node->inputs[i]].name;
    char hex[HASH_HEX_BYTES];
    TRY(identity_of(hex, publication, name));
    TRY(manifest_add_input(&publication->manifest, name, hex));
  }
  return STATUS_OK;
}

enum status publication_finish(struct publication *publication, int64_t world) {
  struct manifest *manifest = &publication->manifest;
  const struct text *fingerprint = &publication->fingerprint;
  TRY(manifest_set_text(&manifest->kind, kind_name(publication->node->kind)));
  TRY(manifest_set_text(&manifest->node, publication->node->name));
  TRY(manifest_set_text(&manifest->build, build_id()));
  hash_to_hex(manifest->config_hash, hash_bytes128(fingerprint->bytes, fingerprint->length));
  manifest->world = world;
  TRY(add_inputs(publication));
  return run_folder_publish(&publication->folder, manifest);
}

void publication_free(struct publication *publication) {
  text_free(&publication->fingerprint);
  manifest_free(&publication->manifest);
}
