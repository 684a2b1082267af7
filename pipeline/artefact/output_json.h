/* One output of a manifest as JSON: {"path", "bytes", "first_bytes", "block_bytes", "blocks"}; the
 * blocks' hashes are 16 hexadecimal digits each, one after another. */
#ifndef PIPELINE_ARTEFACT_OUTPUT_JSON_H
#define PIPELINE_ARTEFACT_OUTPUT_JSON_H

#include "pipeline/artefact/blocks.h"
#include "pipeline/base/error.h"

struct json_t;

/* Makes a new object. Local. ENVIRONMENT when memory is out. */
enum status output_json_make(struct json_t **object, const char *path, const struct blocks *blocks);

/* Reads one; `path` is borrowed from the object. Local. DAMAGED for anything but a sound list. */
enum status output_json_read(const struct json_t *object, const char **path, struct blocks *blocks,
                             const char *where);

#endif
