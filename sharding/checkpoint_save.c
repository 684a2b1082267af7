/* checkpoint.h: saving. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/descriptor.h"
#include "pipeline/base/file.h"
#include "sharding/checkpoint.h"
#include "sharding/checkpoint_write.h"

static const uint64_t FILE_BYTES = (uint64_t)1 << 30;

struct save {
  const struct checkpoint *checkpoint;
  const struct checkpoint_items *items;
  const struct scalars *state;
  int64_t step;
  char part[PATH_MAX];
  struct checkpoint_layout layout;
  struct checkpoint_held *held; /* owned; [ranks][items] */
  struct checkpoint_runs runs;
  struct checkpoint_write write;
};

static bool is_first(const struct save *save) {
  return save->checkpoint->comm->rank == 0;
}

static enum status make_layout(struct save *save) {
  const int64_t count = save->items->count;
  const uint64_t bytes = save->checkpoint->file_bytes;
  struct safetensors_tensor *tensors = calloc((size_t)count + 1, sizeof *tensors);
  CHECK(tensors, STATUS_ENVIRONMENT, "out of memory: %lld tensors", (long long)count);
  for (int64_t i = 0; i < count; i++) tensors[i] = checkpoint_runs_tensor(&save->items->items[i]);
  const enum status status =
      checkpoint_layout_make(&save->layout, tensors, count, bytes ? bytes : FILE_BYTES);
  free(tensors);
  return status;
}

static enum status plan_locally(struct save *save) {
  const struct checkpoint *checkpoint = save->checkpoint;
  const size_t count = (size_t)save->items->count;
  save->held = calloc((size_t)checkpoint->comm->size * count + 1, sizeof *save->held);
  CHECK(save->held, STATUS_ENVIRONMENT, "out of memory: the plan of a checkpoint");
  struct checkpoint_held *mine = save->held + (size_t)checkpoint->comm->rank * count;
  for (size_t i = 0; i < count; i++)
    mine[i] = (struct checkpoint_held){.first_row = save->items->items[i].first_row,
                                       .rows = save->items->items[i].rows};
  TRY(checkpoint_folder_part(save->part, checkpoint->folder, save->step, checkpoint->run_id));
  return make_layout(save);
}

/* Ranks that registered other items would wait for one another for ever. */
static enum status check_same(const struct save *save) {
  struct hash_stream *stream = hash_open();
  uint64_t hashes[2] = {0, 0}; /* all ranks have the same when the largest equals the smallest */
  CHECK(stream, STATUS_ENVIRONMENT, "out of memory");
  for (int64_t i = 0; i < save->layout.file_count; i++)
    hash_add(stream, save->layout.files[i].header.bytes, save->layout.files[i].header.length);
  hashes[0] = hash_result(stream).low >> 1;
  hashes[1] = INT64_MAX - hashes[0];
  hash_close(stream);
  const uint64_t mine = hashes[0];
  TRY(comm_allreduce(save->checkpoint->comm, hashes, 2, DTYPE_I64, COMM_MAX));
  CHECK(hashes[0] == mine && hashes[1] == INT64_MAX - mine, STATUS_INTERNAL,
        "the ranks gave different tensors to a checkpoint");
  return STATUS_OK;
}

/* Every rank learns what the others hold and makes the same plan. */
static enum status plan(struct save *save) {
  struct comm *comm = save->checkpoint->comm;
  const int64_t count = save->items->count;
  TRY(comm_agree(comm, plan_locally(save)));
  TRY(comm_agree(comm, check_same(save)));
  TRY(comm_allgather(comm, save->held, save->held + comm->rank * count,
                     count * (int64_t)sizeof *save->held));
  return comm_agree(
      comm, checkpoint_runs_make(&save->runs, &save->layout, save->items, save->held, comm->size));
}

static enum status create_file(const struct save *save, const struct checkpoint_file *file) {
  char path[PATH_MAX];
  int fd;
  TRY(manifest_join(path, save->part, file->name));
  TRY(descriptor_create(&fd, path));
  const enum status status = descriptor_write(fd, file->header.bytes, 0, file->header.length, path);
  close(fd);
  return status;
}

/* One rank makes the folder and its files; the others only open them. */
static enum status create(const struct save *save) {
  if (!is_first(save)) return STATUS_OK;
  TRY(file_remove(save->part));
  TRY(file_make_folder(save->part));
  for (int64_t i = 0; i < save->layout.file_count; i++)
    TRY(create_file(save, &save->layout.files[i]));
  return file_sync_folder(save->part);
}

static enum status write_header(const struct checkpoint_file *file, const char *path) {
  int fd;
  TRY(descriptor_reopen(&fd, path));
  const enum status status = descriptor_write(fd, file->header.bytes, 0, file->header.length, path);
  const enum status flushed = descriptor_finish(&fd, path);
  return status == STATUS_OK ? flushed : status;
}

/* Completes one file with the hash of its data, and lists it. */
static enum status complete_file(const struct save *save, struct checkpoint_file *file,
                                 const uint64_t *hashes, struct manifest *manifest) {
  char path[PATH_MAX], hex[HASH_HEX_BYTES];
  const int64_t count = checkpoint_write_blocks(file);
  struct blocks blocks = {.file_bytes = file->header.length + file->data_bytes,
                          .first_bytes = file->header.length,
                          .block_bytes = BLOCKS_BYTES};
  TRY(manifest_join(path, save->part, file->name));
  hash_to_hex(hex, hash_bytes128(hashes, (size_t)count * sizeof *hashes));
  memcpy(file->header.bytes + file->hash_at, hex, HASH_HEX_BYTES - 1);
  TRY(write_header(file, path));
  enum status status = blocks_add(&blocks, file->header.bytes, file->header.length);
  for (int64_t i = 0; i < count && status == STATUS_OK; i++)
    status = blocks_add_hash(&blocks, hashes[i]);
  if (status == STATUS_OK) status = manifest_add_output(manifest, file->name, &blocks);
  blocks_free(&blocks);
  return status;
}

static enum status describe(const struct save *save, struct manifest *manifest) {
  const struct checkpoint *checkpoint = save->checkpoint;
  int64_t parent = -1;
  if (checkpoint_folder_latest(checkpoint->folder, &parent) != STATUS_OK) parent = -1;
  TRY(manifest_set_text(&manifest->kind, "checkpoint"));
  snprintf(manifest->config_hash, HASH_HEX_BYTES, "%s",
           checkpoint->config_hash ? checkpoint->config_hash : "");
  manifest->world = checkpoint->comm->size;
  TRY(scalars_set_integer(&manifest->facts, "step", save->step));
  TRY(scalars_set_integer(&manifest->facts, "parent_step", parent));
  TRY(scalars_set_text(&manifest->facts, "run_id", checkpoint->run_id));
  if (checkpoint->data_fingerprint)
    TRY(scalars_set_text(&manifest->facts, "data_fingerprint", checkpoint->data_fingerprint));
  return save->state ? scalars_copy(&manifest->state, save->state) : STATUS_OK;
}

static enum status complete_all(struct save *save, struct manifest *manifest) {
  const uint64_t *hashes = save->write.hashes;
  TRY(describe(save, manifest));
  for (int64_t i = 0; i < save->layout.file_count; i++) {
    TRY(complete_file(save, &save->layout.files[i], hashes, manifest));
    hashes += checkpoint_write_blocks(&save->layout.files[i]);
  }
  TRY(file_sync_folder(save->part));
  TRY(manifest_write(manifest, save->part));
  TRY(checkpoint_folder_publish(save->checkpoint->folder, save->step, save->checkpoint->run_id));
  /* A folder that cannot be tidied is one that cannot be written: the save is tried again. */
  if (checkpoint_folder_retain(save->checkpoint->folder, &save->checkpoint->keep) != STATUS_OK)
    return error_pass(STATUS_WRITE, __FILE__, __LINE__, __func__);
  return STATUS_OK;
}

static enum status complete(struct save *save) {
  struct manifest manifest = {0};
  if (!is_first(save)) return STATUS_OK;
  const enum status status = complete_all(save, &manifest);
  manifest_free(&manifest);
  return status;
}

static enum status run(struct save *save) {
  struct comm *comm = save->checkpoint->comm;
  TRY(plan(save));
  TRY(comm_agree(comm, create(save)));
  save->write = (struct checkpoint_write){.comm = comm,
                                          .part = save->part,
                                          .layout = &save->layout,
                                          .runs = &save->runs,
                                          .items = save->items};
  TRY(checkpoint_write_data(&save->write));
  return comm_agree(comm, complete(save));
}

/* Rank 0 looks, all know. */
static enum status is_published(const struct checkpoint *checkpoint, int64_t step,
                                bool *published) {
  unsigned char seen = 0;
  if (checkpoint->comm->rank == 0) seen = checkpoint_folder_has(checkpoint->folder, step);
  TRY(comm_broadcast(checkpoint->comm, &seen, 1, 0));
  *published = seen;
  return STATUS_OK;
}

enum status checkpoint_save(const struct checkpoint *checkpoint, int64_t step,
                            const struct checkpoint_items *items, const struct scalars *state) {
  struct save save = {.checkpoint = checkpoint, .items = items, .state = state, .step = step};
  bool published = false;
  TRY(is_published(checkpoint, step, &published));
  if (published) return STATUS_OK;
  const enum status status = run(&save);
  checkpoint_layout_free(&save.layout);
  checkpoint_runs_free(&save.runs);
  free(save.write.hashes);
  free(save.held);
  return status;
}
