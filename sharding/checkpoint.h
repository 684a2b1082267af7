/* Checkpoints: global tensors to files and back, from any layout to any layout.
 *
 * Every rank registers the same list of items, each with its own rows. Rows may be held by several
 * ranks (the copies are equal): one of them writes them. Each row must be held by someone. The
 * files are the same bytes for any layout (pipeline/artefact/checkpoint_layout.h).
 *
 * Saving writes step-N.part.<run id>, flushes each file and the folder, writes the manifest last,
 * renames, flushes the parent and replaces `latest`; a published step is never written again.
 * Loading takes the newest step that is not marked damaged, compares sizes, and checks every block
 * as it is read; a damaged step is marked and the one before it is taken.
 */
#ifndef SHARDING_CHECKPOINT_H
#define SHARDING_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/safetensors.h"
#include "pipeline/artefact/scalars.h"
#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

struct comm;

struct checkpoint_item {
  const char *name; /* borrowed */
  enum dtype dtype;
  int dimensions;                            /* 0: a single number, which is one row */
  int64_t shape[SAFETENSORS_MAX_DIMENSIONS]; /* global */
  int64_t first_row, rows; /* of the first axis, held by this rank; rows may be 0 */
  void *data;              /* these rows, contiguous */
};

struct checkpoint_items {
  const struct checkpoint_item *items; /* same names, types, shapes and order on all ranks */
  int64_t count;
};

struct checkpoint {
  struct comm *comm;            /* borrowed; all ranks of the job */
  const char *folder;           /* borrowed; of all steps; the same on all ranks */
  const char *run_id;           /* borrowed; unique to this start of the job; NULL: only reads */
  const char *config_hash;      /* borrowed; another one at loading is a MISMATCH; NULL: any */
  const char *data_fingerprint; /* borrowed; likewise (order_fingerprint) */
  bool accept_other_data;       /* take a checkpoint of other data all the same */
  struct checkpoint_retention keep; /* published steps that stay */
  uint64_t file_bytes;              /* about the size of a file; 0: 1 GiB */
  struct text *notes; /* may be NULL; rank 0 adds a line for each thing worth logging: a step passed
                         over, other data accepted */
};

/* Saves. `state` (rank 0's counts; may be NULL) goes into the manifest. A step that is published
 * and sound is left as it is, with success. One job at a time may save to a folder. Collective over
 * comm: all ranks return the same status. WRITE when any rank could not write: training may go on,
 * the last good step stays. MISMATCH when a row is held by no rank. */
enum status checkpoint_save(const struct checkpoint *checkpoint, int64_t step,
                            const struct checkpoint_items *items, const struct scalars *state);

/* Loads the newest sound step into the items' data and `state` (may be NULL; zeroed before). *step
 * = -1 when the folder holds no step at all: a fresh start. Items may be a part of what the files
 * hold. What dead runs left behind is removed. Collective over comm: all ranks return the same
 * status. DAMAGED when steps exist and none is sound; MISMATCH when an item is missing or of
 * another type or shape, or configuration or data differ (both values are given). */
enum status checkpoint_load(const struct checkpoint *checkpoint, int64_t *step,
                            const struct checkpoint_items *items, struct scalars *state);

#endif
