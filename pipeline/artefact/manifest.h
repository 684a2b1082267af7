/* manifest.json: what a finished folder holds, and from what it was made. Written last, in one
 * rename; a folder without one is not finished.
 */
#ifndef PIPELINE_ARTEFACT_MANIFEST_H
#define PIPELINE_ARTEFACT_MANIFEST_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/blocks.h"
#include "pipeline/artefact/scalars.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

#define MANIFEST_NAME "manifest.json"
enum { MANIFEST_VERSION = 1 };

struct manifest_input {
  char *name;                /* owned; a node, or a path outside the run */
  char hash[HASH_HEX_BYTES]; /* of its manifest, or of its content */
};

struct manifest_output {
  char *path; /* owned; relative to the folder */
  struct blocks blocks;
};

/* Zero-initialise. Strings are owned; set them with manifest_set_text. */
struct manifest {
  char *kind;  /* stage kind */
  char *node;  /* name in the recipe */
  char *build; /* build id of the code */
  char config_hash[HASH_HEX_BYTES];
  int64_t world; /* ranks that made it */
  int64_t input_count;
  struct manifest_input *inputs;
  int64_t output_count; /* sorted by path when written */
  struct manifest_output *outputs;
  struct scalars facts;   /* what readers need to know: rows, vocabulary, tokenizer hash ... */
  struct scalars timings; /* seconds by name */
  struct scalars state;   /* of a checkpoint: step, schedules, counts */
};

/* Replaces an owned string member by a copy. Local. ENVIRONMENT when memory is out. */
enum status manifest_set_text(char **member, const char *value);

/* Adds an input. `hash` is 32 hexadecimal digits. Local. */
enum status manifest_add_input(struct manifest *manifest, const char *name, const char *hash);

/* Adds an output; takes over `blocks` (which is zeroed). Local. */
enum status manifest_add_output(struct manifest *manifest, const char *path, struct blocks *blocks);

/* Hashes the file folder/path and adds it: for outputs not written through a sink. Local. */
enum status manifest_add_file(struct manifest *manifest, const char *folder, const char *path);

/* A description of one output beside the file it describes ("PATH.done"), so that files written by
 * many ranks or by an earlier start are found again; manifest_collect adds all of a folder (sorted)
 * and manifest_forget removes the side files. Local. WRITE, DAMAGED. */
enum status manifest_write_done(const char *folder, const char *path, const struct blocks *blocks);
bool manifest_is_done(const char *folder, const char *path);
enum status manifest_collect(struct manifest *manifest, const char *folder);
enum status manifest_forget(const struct manifest *manifest, const char *folder);

/* Writes folder/manifest.json through a rename. Outputs are sorted. Local. WRITE on failure. */
enum status manifest_write(struct manifest *manifest, const char *folder);

/* Reads folder/manifest.json into a zeroed manifest. Local. MISMATCH when there is none, DAMAGED
 * when it cannot be understood (file, line, key). */
enum status manifest_read(struct manifest *manifest, const char *folder);

/* To and from the text of the file; `where` is for messages. Local. DAMAGED as manifest_read. */
enum status manifest_format(struct text *text, struct manifest *manifest);
enum status manifest_parse(struct manifest *manifest, const char *bytes, size_t count,
                           const char *where);

/* Compares the folder with its manifest: all sizes first, then (with `hashes`) every block. Local.
 * DAMAGED names the file and the block; nothing else is changed. */
enum status manifest_verify(const struct manifest *manifest, const char *folder, bool hashes);

/* The identity of the finished node: a hash of kind, configuration, inputs and outputs; not of
 * world, build, timings or facts. Local. */
enum status manifest_identity(char hex[HASH_HEX_BYTES], struct manifest *manifest);

/* Puts outputs in the order of their paths. Local. */
void manifest_sort(struct manifest *manifest);

/* folder/name. Local. MISMATCH when too long. */
enum status manifest_join(char path[PATH_MAX], const char *folder, const char *name);

/* The output called `path`, or NULL. Borrowed. Local. */
const struct manifest_output *manifest_find(const struct manifest *manifest, const char *path);

void manifest_free(struct manifest *manifest);

#endif
