/* A published checkpoint seen as global tensors, whatever files and pieces hold them. No MPI.
 */
#ifndef PIPELINE_ARTEFACT_CHECKPOINT_READER_H
#define PIPELINE_ARTEFACT_CHECKPOINT_READER_H

#include <stdint.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/safetensors.h"

struct checkpoint_reader_piece {
  const struct safetensors *file;
  const struct safetensors_tensor *tensor;
  int64_t first_row, rows, whole_rows;
};

struct checkpoint_reader {
  char *folder; /* owned; of the step */
  struct manifest manifest;
  int64_t file_count;
  struct safetensors *files; /* owned */
  int64_t tensor_count;
  struct safetensors_tensor *tensors; /* owned; global shapes, sorted by name; names borrowed */
  int64_t piece_count;
  struct checkpoint_reader_piece *pieces; /* owned; sorted by name, then first row */
};

/* Opens a step: reads its manifest, compares all sizes, reads all headers and proves that pieces
 * cover each tensor. Data is checked when read. Local. MISMATCH when there is no such step, DAMAGED
 * names the file. */
enum status checkpoint_reader_open(struct checkpoint_reader *reader, const char *step_folder);

/* As checkpoint_reader_open, with a manifest that was read before (by another rank); takes it over.
 * Local. DAMAGED names the file. */
enum status checkpoint_reader_take(struct checkpoint_reader *reader, const char *step_folder,
                                   struct manifest *manifest);
void checkpoint_reader_close(struct checkpoint_reader *reader);

/* The global tensor called `name`, or NULL. Borrowed. Local. */
const struct safetensors_tensor *checkpoint_reader_find(const struct checkpoint_reader *reader,
                                                        const char *name);

struct checkpoint_rows {
  int64_t first, count; /* of the first axis */
};

/* Copies rows of a tensor that checkpoint_reader_find returned. Local. DAMAGED names file and
 * block.
 */
enum status checkpoint_reader_read(const struct checkpoint_reader *reader,
                                   struct source_cache *cache,
                                   const struct safetensors_tensor *tensor,
                                   struct checkpoint_rows rows, void *out);

#endif
