/* Which bytes of which file hold which rows of which global tensor: a function of the tensors
 * alone, never of ranks, so that a checkpoint has the same bytes whatever the layout of the job.
 *
 * Tensors are put in the order of falling element size, then of name, one after another; a new file
 * begins where a file would grow beyond the limit, within a tensor at a row. A file holds at most
 * one piece of a tensor, under the tensor's name with the shape of the piece, and for tensors
 * in several pieces the metadata key "piece.NAME" = "first row/rows of the whole".
 */
#ifndef PIPELINE_ARTEFACT_CHECKPOINT_LAYOUT_H
#define PIPELINE_ARTEFACT_CHECKPOINT_LAYOUT_H

#include <stdint.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/text.h"

enum { CHECKPOINT_LAYOUT_FILE_NAME = 32 };

struct checkpoint_piece {
  int64_t tensor; /* index in the list given */
  int64_t file;
  int64_t first_row, rows; /* of the first axis; a single number is one row */
  uint64_t offset, bytes;  /* within the file's data section */
};

struct checkpoint_file {
  char name[CHECKPOINT_LAYOUT_FILE_NAME]; /* "tensors-00000.safetensors" */
  struct text header;                     /* as in the file; the data hash is 32 zeros */
  size_t hash_at;
  uint64_t data_bytes;
  int64_t first_piece, piece_count; /* pieces of a file are neighbours, in the order of offsets */
};

struct checkpoint_layout {
  int64_t piece_count, file_count;
  struct checkpoint_piece *pieces; /* owned */
  struct checkpoint_file *files;   /* owned */
};

/* Lays out `count` global tensors (offsets are ignored) in files of about `file_bytes`. Local.
 * MISMATCH for duplicate names and for what a safetensors reader would refuse. */
enum status checkpoint_layout_make(struct checkpoint_layout *layout,
                                   const struct safetensors_tensor *tensors, int64_t count,
                                   uint64_t file_bytes);

/* Rows of a global tensor: its first axis, or 1 for a single number. Local. */
int64_t checkpoint_layout_rows(const struct safetensors_tensor *tensor);

void checkpoint_layout_free(struct checkpoint_layout *layout);

#endif
