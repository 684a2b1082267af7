#include "stages/train/train_saved.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/log.h"
#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/preflight.h"
#include "pipeline/base/file.h"
#include "sharding/checkpoint.h"
#include "stages/train/train_items.h"

static const char RESERVE[] = "reserve"; /* in the folder of the checkpoints */

static enum status folder_of(char path[PATH_MAX], const struct stage *stage, const char *name) {
  const int length = snprintf(path, PATH_MAX, "%s/%s", stage->folder, name);
  CHECK(length < PATH_MAX, STATUS_MISMATCH, "%s: the path is too long", stage->folder);
  return STATUS_OK;
}

static enum status element_of_newest(int64_t *element, const char *folder) {
  char path[PATH_MAX];
  struct manifest manifest = {0};
  const char *name;
  enum dtype found;
  struct checkpoint_steps steps = {0};
  TRY(checkpoint_folder_list(&steps, folder));
  const int64_t step = steps.count > 0 ? steps.items[0].step : -1;
  checkpoint_folder_free(&steps);
  if (step < 0) return STATUS_OK;
  TRY(checkpoint_folder_step(path, folder, step));
  enum status status = manifest_read(&manifest, path);
  if (status == STATUS_OK) status = scalars_get_text(&manifest.state, "element", &name);
  if (status == STATUS_OK && dtype_find(&found, name)) *element = (int64_t)found;
  manifest_free(&manifest);
  return status;
}

enum status train_saved_element(enum dtype *element, const struct stage *stage) {
  char folder[PATH_MAX];
  int64_t found = DTYPE_COUNT;
  enum status status = folder_of(folder, stage, TRAIN_CHECKPOINTS);
  if (status == STATUS_OK && stage->comm->rank == 0) {
    /* A damaged one is dealt with when it is loaded. */
    if (element_of_newest(&found, folder) != STATUS_OK) error_clear();
  }
  TRY(comm_agree(stage->comm, status));
  TRY(comm_broadcast(stage->comm, &found, (int64_t)sizeof found, 0));
  *element = (enum dtype)found;
  return STATUS_OK;
}

static struct checkpoint open_checkpoint(const struct train *train, const char *folder) {
  return (struct checkpoint){.comm = train->grid.world,
                             .folder = folder,
                             .run_id = train->run_id,
                             .config_hash = train->config_hash,
                             .data_fingerprint = train->fingerprint,
                             .keep = {.newest = train->options->keep_checkpoints,
                                      .every = train->options->keep_every,
                                      .best = train->options->keep_best ? train->best.step : -1}};
}

/* Integers of the state and where they live. */
struct count {
  const char *name;
  int64_t *value;
};

enum { COUNTS = 7 };

static void list_counts(struct count counts[COUNTS], struct train *train) {
  const struct count all[COUNTS] = {
      {"step", &train->counts.step},
      {"tokens", &train->counts.tokens},
      {"skipped", &train->counts.skipped},
      {"skipped_in_row", &train->counts.skipped_in_row},
      {"updates", &train->optimizer.updates},
      {"averaged", &train->optimizer.averaged},
      {"accepted_losses", &train->health.count},
  };
  memcpy(counts, all, sizeof all);
}

enum status train_saved_state(struct scalars *state, struct train *train) {
  struct count counts[COUNTS];
  list_counts(counts, train);
  for (int i = 0; i < COUNTS; i++)
    TRY(scalars_set_integer(state, counts[i].name, *counts[i].value));
  TRY(scalars_set_text(state, "element", dtype_name(train->kernels.element)));
  TRY(scalars_set_text(state, "tokenizer_hash", train->tokenizer_hash));
  TRY(scalars_set_text(state, "base_hash", train->base_hash));
  TRY(scalars_set_integer(state, "parameters", params_count(&train->params)));
  return model_save_facts(state, &train->facts);
}

static enum status set_state(struct scalars *state, struct train *train) {
  TRY(train_saved_state(state, train));
  if (!train->options->keep_best || train->best.step < 0) return STATUS_OK;
  TRY(scalars_set_integer(state, "best_step", train->best.step));
  return scalars_set_real(state, "best_loss", train->best.loss);
}

/* Takes the step that is about to be saved as the best one, if it is. */
static void consider(struct train_best *best, int64_t step) {
  if (best->validated != step || (best->step >= 0 && !(best->validated_loss < best->loss))) return;
  best->step = step;
  best->loss = best->validated_loss;
}

static enum status save(struct train *train, const struct checkpoint *checkpoint,
                        struct scalars *state) {
  struct checkpoint_items items;
  const size_t mark = arena_mark(&train->declarations);
  train_items_list(&items, train, false, &train->declarations);
  enum status status = comm_agree(train->grid.world, set_state(state, train));
  if (status == STATUS_OK) status = checkpoint_save(checkpoint, train->counts.step, &items, state);
  arena_reset(&train->declarations, mark);
  return status;
}

enum status train_saved_write(struct train *train) {
  char folder[PATH_MAX];
  struct scalars state = {0};
  const struct train_best before = train->best;
  TRY(folder_of(folder, train->stage, TRAIN_CHECKPOINTS));
  consider(&train->best, train->counts.step);
  const struct checkpoint checkpoint = open_checkpoint(train, folder);
  const enum status status = save(train, &checkpoint, &state);
  if (status != STATUS_OK) train->best = before; /* which is there still */
  scalars_free(&state);
  return status;
}

/* Of one checkpoint. */
static uint64_t bytes_of(const struct checkpoint_items *items) {
  uint64_t bytes = 0;
  for (int64_t i = 0; i < items->count; i++) {
    uint64_t elements = 1;
    for (int d = 0; d < items->items[i].dimensions; d++)
      elements *= (uint64_t)items->items[i].shape[d];
    bytes += elements * dtype_bytes(items->items[i].dtype);
  }
  return bytes;
}

enum { OTHER_BYTES = 4 << 20 }; /* headers, manifest, records that wait */

static enum status set_reserve(const struct train *train, const char *folder, uint64_t bytes) {
  char path[PATH_MAX];
  TRY(manifest_join(path, folder, RESERVE));
  return train->options->save_reserve ? file_reserve(path, bytes + OTHER_BYTES) : file_remove(path);
}

static enum status try_place(struct train *train, const struct preflight *preflight,
                             struct text *notes) {
  TRY(preflight_check(preflight, notes));
  return set_reserve(train, preflight->folder, preflight->bytes);
}

enum status train_saved_preflight(struct train *train) {
  char folder[PATH_MAX];
  struct text notes = {0};
  struct checkpoint_items items;
  enum { FILE_BYTES = 1 << 30, OTHERS = 3 }; /* pipeline/docs/formats.md, Checkpoints */
  TRY(folder_of(folder, train->stage, TRAIN_CHECKPOINTS));
  const size_t mark = arena_mark(&train->declarations);
  train_items_list(&items, train, false, &train->declarations);
  const uint64_t bytes = bytes_of(&items);
  arena_reset(&train->declarations, mark);
  const struct preflight preflight = {
      .folder = folder, .bytes = bytes, .files = bytes / FILE_BYTES + 1 + OTHERS};
  const bool asks = train->grid.world->rank == 0;
  enum status status = asks ? try_place(train, &preflight, &notes) : STATUS_OK;
  log_warn_lines(train->stage->log, &notes);
  text_free(&notes);
  return comm_agree(train->grid.world, status);
}

static enum status drop(struct train *train, bool *dropped) {
  char folder[PATH_MAX], path[PATH_MAX];
  TRY(folder_of(folder, train->stage, TRAIN_CHECKPOINTS));
  TRY(manifest_join(path, folder, RESERVE));
  *dropped = file_exists(path);
  return file_remove(path);
}

enum status train_saved_drop_reserve(struct train *train, bool *dropped) {
  struct comm *world = train->grid.world;
  *dropped = false;
  TRY(comm_agree(world, world->rank == 0 ? drop(train, dropped) : STATUS_OK));
  return comm_broadcast(world, dropped, (int64_t)sizeof *dropped, 0);
}

static enum status take_state(struct train *train, const struct scalars *state) {
  struct count counts[COUNTS];
  const char *base;
  list_counts(counts, train);
  for (int i = 0; i < COUNTS; i++) TRY(scalars_get_integer(state, counts[i].name, counts[i].value));
  if (scalars_find(state, "best_step")) { /* with keep_best, once one was validated */
    TRY(scalars_get_integer(state, "best_step", &train->best.step));
    TRY(scalars_get_real(state, "best_loss", &train->best.loss));
  }
  TRY(scalars_get_text(state, "base_hash", &base));
  CHECK(strcmp(base, train->base_hash) == 0, STATUS_MISMATCH,
        "the checkpoint distils weights %s, but %s holds %s", base, train->base_folder,
        train->base_hash);
  return STATUS_OK;
}

enum status train_saved_read(struct train *train, bool *found) {
  char folder[PATH_MAX];
  struct scalars state = {0};
  struct text notes = {0};
  struct checkpoint_items items;
  int64_t step = -1;
  TRY(folder_of(folder, train->stage, TRAIN_CHECKPOINTS));
  struct checkpoint checkpoint = open_checkpoint(train, folder);
  checkpoint.notes = &notes;
  const size_t mark = arena_mark(&train->declarations);
  train_items_list(&items, train, false, &train->declarations);
  enum status status = checkpoint_load(&checkpoint, &step, &items, &state);
  arena_reset(&train->declarations, mark);
  log_warn_lines(train->stage->log, &notes);
  text_free(&notes);
  *found = step >= 0;
  if (status == STATUS_OK && *found)
    status = comm_agree(train->grid.world, take_state(train, &state));
  scalars_free(&state);
  return status;
}
