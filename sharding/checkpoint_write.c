#include "sharding/checkpoint_write.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/descriptor.h"
#include "pipeline/base/hash.h"

/* Where this rank is. */
struct walk {
  struct checkpoint_write *write;
  const struct checkpoint_file *file;
  char path[PATH_MAX];
  int fd;                /* -1 until this rank writes its first block of the file */
  int64_t run;           /* the first run that may reach into the present block */
  unsigned char *buffer; /* one block */
  enum status failed;    /* the first failure of writing, kept until all ranks agree */
};

int64_t checkpoint_write_blocks(const struct checkpoint_file *file) {
  return (int64_t)((file->data_bytes + BLOCKS_BYTES - 1) / BLOCKS_BYTES);
}

/* The part of a run inside a block that begins at `begin`. */
struct overlap {
  uint64_t at, bytes;        /* `at` within the block */
  const unsigned char *data; /* of the owner */
};

static struct overlap overlap_of(const struct walk *walk, const struct checkpoint_run *run,
                                 uint64_t begin, uint64_t bytes) {
  const uint64_t from = run->begin > begin ? run->begin : begin;
  const uint64_t run_end = run->begin + run->bytes, block_end = begin + bytes;
  const uint64_t end = run_end < block_end ? run_end : block_end;
  struct overlap overlap = {.at = from - begin, .bytes = end - from};
  if (run->owner != walk->write->comm->rank) return overlap;
  const struct checkpoint_item *item = &walk->write->items->items[run->item];
  const uint64_t held_from = (uint64_t)item->first_row * checkpoint_runs_row_bytes(item);
  overlap.data =
      (const unsigned char *)item->data + (run->item_offset + (from - run->begin) - held_from);
  return overlap;
}

/* Brings one run's bytes to the writer of the block. */
static enum status move(struct walk *walk, const struct checkpoint_run *run, struct overlap overlap,
                        int writer) {
  struct comm *comm = walk->write->comm;
  if (run->owner == comm->rank && writer == comm->rank)
    memcpy(walk->buffer + overlap.at, overlap.data, overlap.bytes);
  else if (run->owner == comm->rank)
    TRY(comm_send(comm, overlap.data, (int64_t)overlap.bytes, writer));
  else if (writer == comm->rank)
    TRY(comm_receive(comm, walk->buffer + overlap.at, (int64_t)overlap.bytes, run->owner));
  return STATUS_OK;
}

static enum status put(struct walk *walk, const void *block, uint64_t begin, uint64_t bytes) {
  if (walk->failed != STATUS_OK) return walk->failed;
  if (walk->fd < 0) TRY(descriptor_reopen(&walk->fd, walk->path));
  return descriptor_write(walk->fd, block, walk->file->header.length + begin, bytes, walk->path);
}

/* One block; returns only failures of communication. */
static enum status write_block(struct walk *walk, uint64_t begin, uint64_t *hash) {
  const struct checkpoint_runs *runs = walk->write->runs;
  const uint64_t left = walk->file->data_bytes - begin;
  const uint64_t bytes = left < BLOCKS_BYTES ? left : BLOCKS_BYTES;
  while (runs->runs[walk->run].begin + runs->runs[walk->run].bytes <= begin) walk->run++;
  const int writer = runs->runs[walk->run].owner;
  const struct overlap first = overlap_of(walk, &runs->runs[walk->run], begin, bytes);
  const bool whole = first.bytes == bytes;
  for (uint64_t done = 0, i = 0; done < bytes && !whole; i++) {
    const struct checkpoint_run *run = &runs->runs[walk->run + (int64_t)i];
    const struct overlap overlap = overlap_of(walk, run, begin, bytes);
    TRY(move(walk, run, overlap, writer));
    done += overlap.bytes;
  }
  if (writer != walk->write->comm->rank) return STATUS_OK;
  const void *block = whole ? first.data : walk->buffer;
  *hash = hash_bytes(block, bytes);
  walk->failed = put(walk, block, begin, bytes);
  return STATUS_OK;
}

static void close_file(struct walk *walk) {
  if (walk->fd < 0) return;
  if (walk->failed == STATUS_OK) walk->failed = descriptor_finish(&walk->fd, walk->path);
  if (walk->fd >= 0) close(walk->fd);
  walk->fd = -1;
}

/* The runs are sorted by file, so the walk goes on where the last file ended. */
static enum status write_file(struct walk *walk, int64_t index, uint64_t *hashes) {
  const struct checkpoint_runs *runs = walk->write->runs;
  walk->file = &walk->write->layout->files[index];
  if (walk->failed == STATUS_OK)
    walk->failed = manifest_join(walk->path, walk->write->part, walk->file->name);
  while (walk->run < runs->count && runs->runs[walk->run].file < index) walk->run++;
  enum status status = STATUS_OK;
  for (int64_t b = 0; b < checkpoint_write_blocks(walk->file) && status == STATUS_OK; b++)
    status = write_block(walk, (uint64_t)b * BLOCKS_BYTES, &hashes[b]);
  close_file(walk);
  return status;
}

static enum status write_files(struct walk *walk) {
  int64_t at = 0;
  for (int64_t i = 0; i < walk->write->layout->file_count; i++) {
    TRY(write_file(walk, i, walk->write->hashes + at));
    at += checkpoint_write_blocks(&walk->write->layout->files[i]);
  }
  return STATUS_OK;
}

static enum status allocate(struct walk *walk) {
  walk->buffer = malloc(BLOCKS_BYTES);
  walk->write->hashes = calloc((size_t)walk->write->block_count + 1, sizeof(uint64_t));
  CHECK(walk->buffer && walk->write->hashes, STATUS_ENVIRONMENT,
        "out of memory: the hashes of a checkpoint");
  return STATUS_OK;
}

enum status checkpoint_write_data(struct checkpoint_write *write) {
  struct walk walk = {.write = write, .fd = -1};
  for (int64_t i = 0; i < write->layout->file_count; i++)
    write->block_count += checkpoint_write_blocks(&write->layout->files[i]);
  enum status status = comm_agree(write->comm, allocate(&walk));
  if (status == STATUS_OK) status = write_files(&walk);
  if (status == STATUS_OK) status = comm_agree(write->comm, walk.failed);
  free(walk.buffer);
  TRY(status);
  /* Every hash is known to one rank and zero on the others. */
  return comm_allreduce(write->comm, write->hashes, write->block_count, DTYPE_I64, COMM_SUM);
}
