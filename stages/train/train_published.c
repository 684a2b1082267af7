#include "stages/train/train_published.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "sharding/checkpoint.h"
#include "stages/train/master.h"
#include "stages/train/train_items.h"
#include "stages/train/train_saved.h"

enum { PIECE = 2048 }; /* elements hashed at a time; a row is hashed in pieces from its start */

/* Adds the hashes of a row's pieces, keyed by tensor and place. */
static uint64_t hash_row(const float *row, int64_t cols, uint64_t key, int64_t first) {
  uint64_t sum = 0;
  for (int64_t at = 0; at < cols; at += PIECE) {
    const int64_t count = cols - at < PIECE ? cols - at : PIECE;
    sum += hash_bytes_seeded(row + at, (size_t)count * sizeof(*row),
                             key + (uint64_t)(first + at) * 0x9e3779b97f4a7c15u);
  }
  return sum;
}

static uint64_t hash_masters(const struct optimizer *optimizer, int64_t tensor, uint64_t key) {
  const struct param *param = optimizer->tensors[tensor].param;
  uint64_t sum = 0;
  for (int64_t row = 0; row < param->row_count; row++)
    for (int64_t at = 0; at < param->cols; at += PIECE) {
      float values[PIECE];
      const int64_t count = param->cols - at < PIECE ? param->cols - at : PIECE;
      optimizer_masters(optimizer, tensor, values, row * param->cols + at, count);
      sum += hash_row(values, count, key, (param->row_begin + row) * param->cols + at);
    }
  return sum;
}

static uint64_t hash_average(const struct optimizer_tensor *tensor, uint64_t key) {
  const struct param *param = tensor->param;
  uint64_t sum = 0;
  for (int64_t row = 0; tensor->average && row < param->row_count; row++)
    sum += hash_row(tensor->average + row * param->cols, param->cols, key,
                    (param->row_begin + row) * param->cols);
  return sum;
}

enum status train_published_hash(struct train *train, char hex[TRAIN_HASH_BYTES]) {
  uint64_t hash = 0;
  for (int64_t i = 0; i < train->trained_count; i++) {
    const struct optimizer_tensor *tensor = train->optimizer.tensors + i;
    if (!tensor->owned) continue;
    const uint64_t key = hash_bytes(tensor->param->name, strlen(tensor->param->name));
    hash += hash_masters(&train->optimizer, i, key) + hash_average(tensor, ~key);
  }
  /* Added modulo 2^64, as two halves that cannot overflow. */
  int64_t halves[2] = {(int64_t)(hash & 0xffffffffu), (int64_t)(hash >> 32)};
  TRY(comm_allreduce(train->grid.world, halves, 2, DTYPE_I64, COMM_SUM));
  hash = (uint64_t)halves[0] + ((uint64_t)halves[1] << 32);
  snprintf(hex, TRAIN_HASH_BYTES, "%016" PRIx64, hash);
  return STATUS_OK;
}

static enum status in_folder(char path[PATH_MAX], const struct stage *stage, const char *name) {
  CHECK(snprintf(path, PATH_MAX, "%s/%s", stage->folder, name) < PATH_MAX, STATUS_MISMATCH,
        "%s: the path is too long", stage->folder);
  return STATUS_OK;
}

enum { STEP_BYTES = 64 };

static void name_step(char name[STEP_BYTES], int64_t step) {
  snprintf(name, STEP_BYTES, MODEL_FOLDER "/step-%" PRId64, step);
}

/* Adds the arrays of weights/step-N, and of the last step the state in its manifest as facts.
 * Neither that manifest nor the metrics are outputs: they name the run and its times, and equal
 * runs have equal outputs. */
static enum status list_arrays(struct stage *stage, const struct manifest *arrays,
                               const char *name) {
  char path[PATH_MAX];
  for (int64_t i = 0; i < arrays->output_count; i++) {
    CHECK(snprintf(path, sizeof path, "%s/%s", name, arrays->outputs[i].path) < (int)sizeof path,
          STATUS_MISMATCH, "%s: the path is too long", name);
    TRY(manifest_add_file(stage->manifest, stage->folder, path));
  }
  return STATUS_OK;
}

static enum status list_step(struct stage *stage, int64_t step) {
  char name[STEP_BYTES], path[PATH_MAX];
  struct manifest arrays = {0};
  name_step(name, step);
  TRY(in_folder(path, stage, name));
  enum status status = manifest_read(&arrays, path);
  if (status == STATUS_OK) status = list_arrays(stage, &arrays, name);
  if (status == STATUS_OK && step == stage->options->steps)
    status = scalars_copy(&stage->manifest->facts, &arrays.state);
  manifest_free(&arrays);
  return status;
}

static enum status list_outputs(struct stage *stage) {
  const struct options *options = stage->options;
  if (stage->comm->rank != 0) return STATUS_OK;
  for (int64_t step = 1; step < options->steps; step++)
    if (train_published_is_due(options, step)) TRY(list_step(stage, step));
  return list_step(stage, options->steps);
}

static enum status clear(const struct stage *stage, const char *name) {
  char path[PATH_MAX];
  if (stage->comm->rank != 0) return STATUS_OK;
  TRY(in_folder(path, stage, name));
  return file_remove(path);
}

static enum status write_weights(struct train *train, const char *hash) {
  char folder[PATH_MAX];
  TRY(in_folder(folder, train->stage, MODEL_FOLDER));
  struct checkpoint_items items;
  struct scalars state = {0};
  const struct checkpoint checkpoint = {.comm = train->grid.world,
                                        .folder = folder,
                                        .run_id = train->run_id,
                                        .config_hash = train->config_hash,
                                        .data_fingerprint = train->fingerprint,
                                        .keep = {.newest = OPTION_ITEMS + 1, .best = -1}};
  const size_t mark = arena_mark(&train->declarations);
  train_items_list(&items, train, true, &train->declarations);
  enum status status = train_saved_state(&state, train);
  if (status == STATUS_OK) status = scalars_set_text(&state, "weights_hash", hash);
  status = comm_agree(train->grid.world, status);
  if (status == STATUS_OK)
    status = checkpoint_save(&checkpoint, train->counts.step, &items, &state);
  arena_reset(&train->declarations, mark);
  scalars_free(&state);
  return status;
}

bool train_published_is_due(const struct options *options, int64_t step) {
  bool due = false;
  for (size_t i = 0; i < options->publish_at.count; i++)
    due = due || options->publish_at.values[i] == step;
  return due && step < options->steps;
}

enum status train_published_step(struct train *train) {
  char hash[TRAIN_HASH_BYTES];
  TRY(train_published_hash(train, hash));
  return write_weights(train, hash);
}

/* Whether checkpoints stay when the training has ended. */
static bool keeps(const struct options *options) {
  return options->keep_best || options->keep_every > 0;
}

enum status train_published_write(struct train *train, const char *hash) {
  struct comm *world = train->grid.world;
  char name[STEP_BYTES];
  name_step(name, train->options->steps);
  TRY(comm_agree(world, clear(train->stage, name))); /* of a start that ended here */
  TRY(write_weights(train, hash));
  TRY(comm_agree(world, list_outputs(train->stage)));
  bool dropped;
  TRY(train_saved_drop_reserve(train, &dropped));
  if (keeps(train->options)) return STATUS_OK;
  return comm_agree(world, clear(train->stage, TRAIN_CHECKPOINTS));
}

static enum status is_published(bool *found, struct stage *stage) {
  char weights[PATH_MAX], checkpoints[PATH_MAX], name[STEP_BYTES];
  name_step(name, stage->options->steps);
  TRY(in_folder(weights, stage, name));
  TRY(in_folder(checkpoints, stage, TRAIN_CHECKPOINTS));
  *found = file_exists(weights) && (keeps(stage->options) || !file_exists(checkpoints));
  return *found ? list_outputs(stage) : STATUS_OK;
}

enum status train_published_find(bool *found, struct stage *stage) {
  *found = false;
  TRY(comm_agree(stage->comm, stage->comm->rank == 0 ? is_published(found, stage) : STATUS_OK));
  return comm_broadcast(stage->comm, found, (int64_t)sizeof *found, 0);
}
