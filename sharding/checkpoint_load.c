/* checkpoint.h: loading. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/checkpoint_reader.h"
#include "pipeline/base/file.h"
#include "sharding/checkpoint.h"
#include "sharding/checkpoint_runs.h"
#include "sharding/comm.h"

struct load {
  struct comm *comm;
  const struct checkpoint *checkpoint; /* NULL: a step of another job */
  const struct checkpoint_items *items;
  struct scalars *state;
  char folder[PATH_MAX]; /* of the step */
};

static bool is_first(const struct load *load) {
  return load->comm->rank == 0;
}

/* One rank reads the manifest and compares sizes; all get its text. */
static enum status read_manifest(const struct load *load, struct text *text) {
  struct manifest manifest = {0};
  if (!is_first(load)) return STATUS_OK;
  char path[PATH_MAX];
  TRY(manifest_join(path, load->folder, MANIFEST_NAME));
  CHECK(file_exists(path), STATUS_DAMAGED, "'%s' is missing", path);
  TRY(file_read(text, path));
  TRY(manifest_parse(&manifest, text->bytes, text->length, path));
  const enum status status = manifest_verify(&manifest, load->folder, false);
  manifest_free(&manifest);
  return status;
}

static enum status make_room(struct text *text, int64_t bytes) {
  text_clear(text);
  while ((int64_t)text->length < bytes) {
    char zeros[4096] = {0};
    const int64_t left = bytes - (int64_t)text->length;
    TRY(text_add_bytes(text, zeros, left < 4096 ? (size_t)left : sizeof zeros));
  }
  return STATUS_OK;
}

static enum status share_manifest(const struct load *load, struct text *text) {
  TRY(comm_agree(load->comm, read_manifest(load, text)));
  int64_t bytes = (int64_t)text->length;
  TRY(comm_broadcast(load->comm, &bytes, sizeof bytes, 0));
  TRY(comm_agree(load->comm, is_first(load) ? STATUS_OK : make_room(text, bytes)));
  return comm_broadcast(load->comm, text->bytes, bytes, 0);
}

static enum status open_reader(const struct load *load, struct checkpoint_reader *reader,
                               const struct text *text) {
  struct manifest manifest = {0};
  TRY(manifest_parse(&manifest, text->bytes, text->length, load->folder));
  return checkpoint_reader_take(reader, load->folder, &manifest);
}

static enum status check_config(const struct load *load, const struct checkpoint_reader *reader) {
  const char *wanted = load->checkpoint->config_hash, *found = reader->manifest.config_hash;
  CHECK(!wanted || strcmp(wanted, found) == 0, STATUS_MISMATCH,
        "'%s' was made with the configuration %s, this job has %s", load->folder, found, wanted);
  return STATUS_OK;
}

static enum status check_data(const struct load *load, const struct checkpoint_reader *reader) {
  const struct checkpoint *checkpoint = load->checkpoint;
  const char *wanted = checkpoint->data_fingerprint, *found = "none";
  const struct scalar *fact = scalars_find(&reader->manifest.facts, "data_fingerprint");
  if (fact && fact->kind == SCALAR_TEXT) found = fact->text;
  if (!wanted || strcmp(wanted, found) == 0) return STATUS_OK;
  CHECK(checkpoint->accept_other_data, STATUS_MISMATCH,
        "'%s' was made with the data %s, this job has %s", load->folder, found, wanted);
  if (!checkpoint->notes || !is_first(load)) return STATUS_OK;
  return text_format(checkpoint->notes,
                     "accepted '%s', made with the data %s, for a job with the data %s\n",
                     load->folder, found, wanted);
}

static enum status read_item(const struct load *load, const struct checkpoint_reader *reader,
                             struct source_cache *cache, const struct checkpoint_item *item) {
  const struct safetensors_tensor wanted = checkpoint_runs_tensor(item);
  const struct safetensors_tensor *found = checkpoint_reader_find(reader, item->name);
  char expects[SAFETENSORS_DESCRIPTION], has[SAFETENSORS_DESCRIPTION];
  CHECK(found, STATUS_MISMATCH, "'%s' has no tensor '%s'", load->folder, item->name);
  CHECK(found->dtype == wanted.dtype && found->dimensions == wanted.dimensions &&
            memcmp(found->shape, wanted.shape, (size_t)wanted.dimensions * sizeof *found->shape) ==
                0,
        STATUS_MISMATCH, "'%s': tensor '%s' is %s, this job has %s", load->folder, item->name,
        safetensors_describe(has, found), safetensors_describe(expects, &wanted));
  const struct checkpoint_rows rows = {.first = item->first_row, .count = item->rows};
  return item->rows ? checkpoint_reader_read(reader, cache, found, rows, item->data) : STATUS_OK;
}

static enum status read_items(const struct load *load, const struct checkpoint_reader *reader) {
  struct source_cache cache = {0};
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < load->items->count && status == STATUS_OK; i++)
    status = read_item(load, reader, &cache, &load->items->items[i]);
  source_cache_free(&cache);
  if (status == STATUS_OK && load->state)
    status = scalars_copy(load->state, &reader->manifest.state);
  return status;
}

static enum status use_reader(const struct load *load, const struct text *text) {
  struct checkpoint_reader reader = {0};
  TRY(open_reader(load, &reader, text));
  enum status status = check_config(load, &reader);
  if (status == STATUS_OK) status = check_data(load, &reader);
  if (status == STATUS_OK) status = read_items(load, &reader);
  checkpoint_reader_close(&reader);
  return status;
}

/* Loads the step in load->folder; all ranks return the same status. */
static enum status load_one(const struct load *load) {
  struct text text = {0};
  enum status status = share_manifest(load, &text);
  if (status == STATUS_OK) status = comm_agree(load->comm, use_reader(load, &text));
  text_free(&text);
  return status;
}

struct choice {
  int64_t step;   /* -1: none left */
  int64_t passed; /* steps that are damaged */
};

/* One rank looks into the folder and decides for all. */
static enum status choose(const struct checkpoint *checkpoint, struct choice *choice) {
  struct checkpoint_steps steps;
  if (checkpoint->comm->rank != 0) return STATUS_OK;
  TRY(checkpoint_folder_list(&steps, checkpoint->folder));
  const int64_t before = choice->step; /* only steps below it, when it was tried */
  choice->step = -1;
  for (int64_t i = 0; i < steps.count && choice->step < 0; i++) {
    const bool tried = before >= 0 && steps.items[i].step >= before;
    if (!tried && !steps.items[i].damaged)
      choice->step = steps.items[i].step;
    else
      choice->passed++;
  }
  checkpoint_folder_free(&steps);
  return STATUS_OK;
}

static enum status next_choice(const struct checkpoint *checkpoint, struct choice *choice) {
  choice->passed = 0;
  TRY(comm_agree(checkpoint->comm, choose(checkpoint, choice)));
  return comm_broadcast(checkpoint->comm, choice, sizeof *choice, 0);
}

/* Marks a step that turned out to be damaged, for later starts and for the log. */
static enum status pass_over(const struct checkpoint *checkpoint, int64_t step) {
  char reason[4096];
  if (checkpoint->comm->rank != 0) return STATUS_OK;
  snprintf(reason, sizeof reason, "%s", error_message());
  if (checkpoint->notes)
    TRY(text_format(checkpoint->notes, "checkpoint step-%" PRId64 " is passed over: %s\n", step,
                    reason));
  return checkpoint->run_id ? checkpoint_folder_mark(checkpoint->folder, step, reason) : STATUS_OK;
}

static enum status sweep(const struct checkpoint *checkpoint) {
  if (checkpoint->comm->rank != 0 || !checkpoint->run_id) return STATUS_OK;
  return checkpoint_folder_sweep(checkpoint->folder, checkpoint->run_id, 0);
}

enum status checkpoint_load(const struct checkpoint *checkpoint, int64_t *step,
                            const struct checkpoint_items *items, struct scalars *state) {
  struct load load = {
      .comm = checkpoint->comm, .checkpoint = checkpoint, .items = items, .state = state};
  struct choice choice = {.step = -1};
  TRY(comm_agree(load.comm, sweep(checkpoint)));
  for (;;) {
    TRY(next_choice(checkpoint, &choice));
    *step = choice.step;
    CHECK(choice.step >= 0 || !choice.passed, STATUS_DAMAGED,
          "none of the %" PRId64 " checkpoints in '%s' is sound", choice.passed,
          checkpoint->folder);
    if (choice.step < 0) return STATUS_OK;
    TRY(checkpoint_folder_step(load.folder, checkpoint->folder, choice.step));
    const enum status status = load_one(&load);
    if (status != STATUS_DAMAGED) return status;
    if (state) scalars_free(state);
    TRY(comm_agree(load.comm, pass_over(checkpoint, choice.step)));
  }
}
