#include "pipeline/artefact/preflight.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/descriptor.h"
#include "pipeline/base/file.h"
#include "pipeline/base/hash.h"

enum { PROBE_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20, SAVES = 2, MESSAGE_BYTES = 512 };

struct probe {
  const struct preflight *preflight;
  uint64_t bytes;
  char part[PATH_MAX], whole[PATH_MAX];
  uint64_t block[BLOCK_BYTES / sizeof(uint64_t)];
  unsigned char back[BLOCK_BYTES]; /* as it was read */
};

/* Bytes that neither compress nor repeat, so that a file system cannot make them smaller. */
static void fill(struct probe *probe, uint64_t offset) {
  for (uint64_t i = 0; i < BLOCK_BYTES / sizeof *probe->block; i++) {
    const uint64_t place = offset + i;
    probe->block[i] = hash_bytes_seeded(&place, sizeof place, place);
  }
}

static uint64_t block_at(const struct probe *probe, uint64_t offset) {
  const uint64_t left = probe->bytes - offset;
  return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

static enum status write_probe(struct probe *probe) {
  int fd;
  TRY(descriptor_create(&fd, probe->part));
  enum status status = STATUS_OK;
  for (uint64_t at = 0; at < probe->bytes && status == STATUS_OK; at += BLOCK_BYTES) {
    fill(probe, at);
    status = descriptor_write(fd, probe->block, at, block_at(probe, at), probe->part);
  }
  if (status == STATUS_OK) return descriptor_finish(&fd, probe->part);
  close(fd);
  return status;
}

static enum status compare(struct probe *probe, int fd, uint64_t at) {
  const uint64_t bytes = block_at(probe, at);
  TRY(descriptor_read(fd, probe->back, at, bytes, probe->whole));
  fill(probe, at);
  CHECK(memcmp(probe->back, probe->block, bytes) == 0, STATUS_WRITE,
        "'%s': bytes %" PRIu64 " to %" PRIu64 " come back other than they were written",
        probe->whole, at, at + bytes);
  return STATUS_OK;
}

static enum status read_probe(struct probe *probe) {
  int fd;
  TRY(descriptor_open(&fd, probe->whole));
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  enum status status = STATUS_OK;
  for (uint64_t at = 0; at < probe->bytes && status == STATUS_OK; at += BLOCK_BYTES)
    status = compare(probe, fd, at);
  close(fd);
  return status;
}

static enum status try_all(struct probe *probe) {
  TRY(file_make_folder(probe->preflight->folder));
  TRY(manifest_join(probe->part, probe->preflight->folder, "preflight.part"));
  TRY(manifest_join(probe->whole, probe->preflight->folder, "preflight"));
  TRY(write_probe(probe));
  TRY(file_rename(probe->part, probe->whole));
  TRY(read_probe(probe));
  return file_remove(probe->whole);
}

static enum status note_space(const struct preflight *preflight, struct text *notes) {
  struct statvfs info;
  char line[PATH_MAX + MESSAGE_BYTES], needed[24], there[24];
  if (statvfs(preflight->folder, &info) != 0) return STATUS_OK; /* it was written just now */
  const uint64_t bytes = (uint64_t)info.f_bavail * info.f_frsize;
  if (bytes < SAVES * preflight->bytes) {
    snprintf(line, sizeof line,
             "the next two saves need %s, but %s are free in '%s': make room there, or save less "
             "(keep_checkpoints, keep_every)\n",
             text_size(needed, SAVES * preflight->bytes), text_size(there, bytes),
             preflight->folder);
    TRY(text_add(notes, line));
  }
  if (info.f_files && info.f_favail < SAVES * preflight->files) { /* some have no such number */
    snprintf(line, sizeof line,
             "the next two saves need %" PRIu64 " inodes, but %" PRIu64
             " are free in '%s' (df -i): remove files there\n",
             SAVES * preflight->files, (uint64_t)info.f_favail, preflight->folder);
    TRY(text_add(notes, line));
  }
  return STATUS_OK;
}

enum status preflight_check(const struct preflight *preflight, struct text *notes) {
  char cause[MESSAGE_BYTES];
  struct probe *probe = calloc(1, sizeof *probe);
  CHECK(probe, STATUS_ENVIRONMENT, "out of memory: a block to write to '%s'", preflight->folder);
  probe->preflight = preflight;
  probe->bytes = preflight->bytes < PROBE_BYTES ? preflight->bytes : PROBE_BYTES;
  const enum status status = try_all(probe);
  if (status != STATUS_OK) {
    snprintf(cause, sizeof cause, "%s", error_message());
    (void)unlink(probe->part);
    (void)unlink(probe->whole);
  }
  free(probe);
  CHECK(status == STATUS_OK, STATUS_WRITE,
        "'%s' does not take what is to be saved there: %s; look at its free space, quota and "
        "permissions, or take another folder with --runs",
        preflight->folder, cause);
  return note_space(preflight, notes);
}
