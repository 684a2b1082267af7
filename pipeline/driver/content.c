#include "pipeline/driver/content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"

enum { HASH_BLOCK_BYTES = 1 << 18 };

void content_cache_read(struct content_cache *cache, const char *file) {
  if (!file_exists(file)) return;
  if (file_read(&cache->lines, file) != STATUS_OK) text_clear(&cache->lines);
  error_clear();
}

void content_cache_close(struct content_cache *cache, const char *file) {
  if (cache->changed && file_write(file, cache->lines.bytes, cache->lines.length) != STATUS_OK)
    error_clear();
  text_free(&cache->lines);
}

/* What follows the hash in the cache's line of this file. */
static void describe(char out[PATH_MAX + 80], const char *path, const struct stat *info) {
  snprintf(out, PATH_MAX + 80, " %lld %lld %ld %s\n", (long long)info->st_size,
           (long long)info->st_mtim.tv_sec, info->st_mtim.tv_nsec, path);
}

static bool recall(char hex[HASH_HEX_BYTES], const struct content_cache *cache,
                   const char *description) {
  if (!cache || !cache->lines.bytes) return false;
  const char *found = strstr(cache->lines.bytes, description);
  if (!found || found - cache->lines.bytes < HASH_HEX_BYTES - 1) return false;
  memcpy(hex, found - (HASH_HEX_BYTES - 1), HASH_HEX_BYTES - 1);
  hex[HASH_HEX_BYTES - 1] = '\0';
  return strspn(hex, "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

static enum status remember(struct content_cache *cache, const char *hex, const char *description) {
  if (!cache) return STATUS_OK;
  cache->changed = true;
  TRY(text_add(&cache->lines, hex));
  return text_add(&cache->lines, description);
}

static enum status hash_descriptor(struct hash_stream *stream, int fd, const char *path) {
  static _Thread_local char block[HASH_BLOCK_BYTES];
  for (;;) {
    const ssize_t got = read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(errno));
    if (got == 0) return STATUS_OK;
    hash_add(stream, block, (size_t)got);
  }
}

static enum status hash_file(char hex[HASH_HEX_BYTES], const char *path) {
  struct hash_stream *stream = hash_open();
  CHECK(stream, STATUS_ENVIRONMENT, "out of memory: a hash");
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  enum status status = STATUS_OK;
  if (fd < 0)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__, "cannot open '%s': %s",
                         path, strerror(errno));
  if (status == STATUS_OK) status = hash_descriptor(stream, fd, path);
  if (fd >= 0) close(fd);
  if (status == STATUS_OK) hash_to_hex(hex, hash_result(stream));
  hash_close(stream);
  return status;
}

static enum status file_identity(char hex[HASH_HEX_BYTES], const char *path,
                                 const struct stat *info, struct content_cache *cache) {
  char description[PATH_MAX + 80];
  describe(description, path, info);
  if (recall(hex, cache, description)) return STATUS_OK;
  TRY(hash_file(hex, path));
  return remember(cache, hex, description);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static enum status add_entry(struct text *list, const char *folder, const char *name,
                             struct content_cache *cache) {
  char path[PATH_MAX], hex[HASH_HEX_BYTES];
  CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", folder, name);
  TRY(content_identity(hex, path, cache));
  return text_format(list, "%s %s\n", hex, name);
}

static enum status folder_identity(char hex[HASH_HEX_BYTES], const char *path,
                                   struct content_cache *cache) {
  struct dirent **entries;
  const int count = scandir(path, &entries, is_visible, by_name);
  CHECK(count >= 0, STATUS_ENVIRONMENT, "cannot list '%s': %s", path, strerror(errno));
  struct text list = {0};
  enum status status = text_add(&list, "folder\n");
  for (int i = 0; i < count; i++) {
    if (status == STATUS_OK) status = add_entry(&list, path, entries[i]->d_name, cache);
    free(entries[i]);
  }
  free(entries);
  if (status == STATUS_OK) hash_to_hex(hex, hash_bytes128(list.bytes, list.length));
  text_free(&list);
  return status;
}

enum status content_identity(char hex[HASH_HEX_BYTES], const char *path,
                             struct content_cache *cache) {
  struct stat info;
  CHECK(stat(path, &info) == 0, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT,
        "cannot look at '%s': %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return folder_identity(hex, path, cache);
  CHECK(S_ISREG(info.st_mode), STATUS_MISMATCH, "'%s' is neither a file nor a folder", path);
  return file_identity(hex, path, &info, cache);
}
