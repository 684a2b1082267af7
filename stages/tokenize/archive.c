#include "stages/tokenize/archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "pipeline/base/descriptor.h"
#include "pipeline/base/file.h"
#include "stages/tokenize/archive_handle.h"
#include "stages/tokenize/gunzip.h"
#include "stages/tokenize/zip_directory.h"

enum { BLOCK = 256 << 10, HEAD = 4096, DEPTH = 8, RETRIES = 100 };
enum { BOMB_RATIO = 2000, BOMB_BYTES = 256 << 20 };

/* An archive that is being read; inside an entry of `outer` when that is not NULL. */
struct level {
  struct archive *archive;
  struct splitter *splitter; /* borrowed */
  struct level *outer;       /* borrowed */
  struct gunzip *gunzip;     /* between the outer entry and this archive; NULL: none */
  int depth;
  struct text name;      /* "FILE", "FILE: ENTRY", "FILE: ENTRY: INNER ENTRY" */
  size_t prefix;         /* length of the part of `name` that is not the entry's */
  uint64_t packed_bytes; /* of the file */
  uint64_t bytes;        /* unpacked so far, of all entries, and of archives inside them */
  bool bomb;             /* nothing more is read, whatever the sink says */
  uint64_t entry_bytes;  /* unpacked so far, of the present entry */
  size_t count;          /* bytes in `block` */
  uint64_t entries;      /* so far */
  size_t tail_count;
  bool kept; /* `block` was looked at and not yet handed on */
  char block[BLOCK];
  unsigned char tail[ZIP_DIRECTORY_TAIL]; /* the last bytes of the archive so far */
};

static enum status refuse(const struct level *level, const char *what) {
  FAIL(STATUS_DAMAGED, "%s: byte %llu: %s", level->name.bytes,
       (unsigned long long)level->entry_bytes, what ? what : "the archive cannot be read");
}

static struct level *root_of(struct level *level) {
  while (level->outer) level = level->outer;
  return level;
}

/* Counts what was unpacked at all levels together: archives in archives are bombs too. */
static enum status check_bomb(struct level *level) {
  struct level *root = root_of(level);
  root->bytes += level->count;
  root->bomb = root->bytes >= BOMB_BYTES && root->bytes / BOMB_RATIO >= root->packed_bytes;
  if (!root->bomb) return STATUS_OK;
  return refuse(level, "unpacks to more than 2000 times its size; this is a decompression bomb");
}

/* Warnings about sums and sizes are damage; others are counted. */
static bool is_harmless(struct archive *archive) {
  const char *what = archive_error_string(archive);
  return !what || (!strstr(what, "CRC") && !strstr(what, "size") && !strstr(what, "checksum"));
}

/* Reads the next block of the present entry; count = 0 at its end. */
static enum status next_block(struct level *level) {
  la_ssize_t got = ARCHIVE_RETRY;
  for (int i = 0; i < RETRIES && (got == ARCHIVE_RETRY || got == ARCHIVE_WARN); i++) {
    got = archive_read_data(level->archive, level->block, BLOCK);
    if (got == ARCHIVE_WARN && !is_harmless(level->archive)) break;
    level->splitter->warnings += got == ARCHIVE_WARN;
  }
  if (got < 0) return refuse(level, archive_error_string(level->archive));
  level->count = (size_t)got;
  level->entry_bytes += level->count;
  return check_bomb(level);
}

static enum status check_size(const struct level *level, struct archive_entry *entry) {
  char what[128];
  if (!entry || !archive_entry_size_is_set(entry)) return STATUS_OK;
  const uint64_t declared = (uint64_t)archive_entry_size(entry);
  if (declared == level->entry_bytes) return STATUS_OK;
  snprintf(what, sizeof what, "the entry ends here but its header says %llu bytes",
           (unsigned long long)declared);
  return refuse(level, what);
}

/* `entry` is NULL for what is not an archive's. */
static enum status feed_text(struct level *level, struct archive_entry *entry) {
  struct splitter *splitter = level->splitter;
  splitter->name = level->name.bytes;
  splitter->offset = 0;
  splitter->limit = UINT64_MAX;
  splitter->done = false;
  while (level->count) {
    TRY(splitter_feed(splitter, level->block, level->count));
    TRY(next_block(level));
  }
  TRY(check_size(level, entry));
  return splitter_finish(splitter);
}

static enum status read_entries(struct level *level);

/* The bytes of an entry, the block that was looked at first. */
static enum status next_outer(void *state, const char **bytes, size_t *count) {
  struct level *outer = state;
  if (!outer->kept) TRY(next_block(outer));
  outer->kept = false;
  *bytes = outer->block;
  *count = outer->count;
  return STATUS_OK;
}

static void keep_tail(struct level *level, const char *bytes, size_t count) {
  if (count > sizeof level->tail) bytes += count - sizeof level->tail, count = sizeof level->tail;
  const size_t room = sizeof level->tail - count;
  const size_t keep = level->tail_count < room ? level->tail_count : room;
  memmove(level->tail, level->tail + level->tail_count - keep, keep);
  if (count) memcpy(level->tail + keep, bytes, count);
  level->tail_count = keep + count;
}

/* The next bytes of an archive inside another one. */
static enum status next_packed(struct level *inner, const char **block, size_t *count) {
  if (inner->gunzip)
    TRY(gunzip_next(inner->gunzip, block, count));
  else
    TRY(next_outer(inner->outer, block, count));
  keep_tail(inner, *block, *count);
  return STATUS_OK;
}

/* Gives libarchive the bytes of the outer entry. */
static la_ssize_t read_outer(struct archive *archive, void *state, const void **bytes) {
  const char *block = NULL;
  size_t count = 0;
  const enum status status = next_packed(state, &block, &count);
  *bytes = block;
  if (status == STATUS_OK) return (la_ssize_t)count;
  archive_set_error(archive, EIO, "%s", error_message());
  return ARCHIVE_FATAL;
}

static enum status level_open(struct level **out, struct level *outer, struct splitter *splitter,
                              const char *name) {
  struct level *level = malloc(sizeof *level);
  CHECK(level, STATUS_ENVIRONMENT, "out of memory: an archive reader");
  memset(level, 0, offsetof(struct level, block));
  level->archive = archive_handle_new();
  level->splitter = splitter;
  level->outer = outer;
  level->depth = outer ? outer->depth + 1 : 0;
  level->packed_bytes = outer ? outer->packed_bytes : 0;
  level->prefix = strlen(name);
  *out = level;
  TRY(text_add(&level->name, name));
  CHECK(level->archive, STATUS_ENVIRONMENT, "out of memory: an archive reader");
  return STATUS_OK;
}

static void level_close(struct level *level) {
  if (!level) return;
  archive_read_free(level->archive);
  gunzip_close(level->gunzip);
  text_free(&level->name);
  free(level);
}

/* An archive may end before its gzip stream does: only the end of that proves the sums. */
static enum status check_rest(struct level *inner) {
  const char *bytes;
  size_t count = 1;
  while (count)
    if (gunzip_next(inner->gunzip, &bytes, &count) != STATUS_OK)
      return refuse(inner, error_message());
  return STATUS_OK;
}

static enum status open_inner(struct level *inner) {
  struct level *outer = inner->outer;
  outer->kept = true;
  if (gunzip_is_gzip(outer->block, outer->count))
    TRY(gunzip_open(&inner->gunzip, (struct gunzip_source){next_outer, outer}));
  if (archive_read_open(inner->archive, inner, NULL, read_outer, NULL) != ARCHIVE_OK)
    return refuse(inner, archive_error_string(inner->archive));
  TRY(read_entries(inner));
  return inner->gunzip ? check_rest(inner) : STATUS_OK;
}

/* The entry is not text: an archive or compressed text is opened in turn, other content skipped. */
static enum status read_inner(struct level *outer) {
  if (outer->depth == DEPTH) return refuse(outer, "archives are nested too deep");
  struct level *inner = NULL;
  enum status status = level_open(&inner, outer, outer->splitter, outer->name.bytes);
  if (status == STATUS_OK) status = open_inner(inner);
  level_close(inner);
  return status;
}

static enum status read_content(struct level *level, struct archive_entry *entry) {
  TRY(next_block(level));
  const size_t head = level->count < HEAD ? level->count : HEAD;
  if (!archive_handle_is_text(level->block, head)) return read_inner(level);
  return feed_text(level, entry);
}

static enum status name_entry(struct level *level, struct archive_entry *entry) {
  level->name.length = level->prefix;
  level->entry_bytes = 0;
  if (archive_format(level->archive) == ARCHIVE_FORMAT_RAW) return text_add(&level->name, "");
  const char *name = archive_entry_pathname(entry);
  level->splitter->warnings += name == NULL;
  TRY(text_add(&level->name, ": "));
  return text_add(&level->name, name ? name : "(an entry whose name cannot be read)");
}

/* Whether an entry of an archive is to be read, by its name. */
static enum status wants_entry(struct level *level, bool *wanted) {
  struct splitter *splitter = level->splitter;
  *wanted = splitter_wants(splitter->entries, level->name.bytes);
  if (!*wanted || splitter->boundary != BOUNDARY_SAMPLE) return STATUS_OK;
  return sample_begin(splitter, level->name.bytes, level->prefix + 2, wanted);
}

/* Folders have no text of their own, nor have links, which are counted. */
static enum status take_other(struct level *level, struct archive_entry *entry) {
  const bool folder = archive_entry_filetype(entry) == AE_IFDIR;
  const bool link = archive_entry_hardlink(entry) || archive_entry_filetype(entry) == AE_IFLNK;
  level->splitter->links += link;
  if (folder || link || archive_entry_size(entry) <= 0) return STATUS_OK;
  return refuse(level, "it has content but is neither a file nor a link");
}

static enum status take_entry(struct level *level, struct archive_entry *entry) {
  bool wanted = true;
  TRY(name_entry(level, entry));
  const bool regular = archive_entry_filetype(entry) == AE_IFREG;
  if (!regular || archive_entry_hardlink(entry)) return take_other(level, entry);
  if (archive_format(level->archive) != ARCHIVE_FORMAT_RAW) TRY(wants_entry(level, &wanted));
  return wanted ? read_content(level, entry) : STATUS_OK;
}

static enum status take_or_refuse(struct level *level, struct archive_entry *entry) {
  const enum status status = take_entry(level, entry);
  if (status == STATUS_OK || root_of(level)->bomb) return status;
  return splitter_refuse(level->splitter, status,
                         (struct refusal){.name = level->name.bytes, .offset = level->entry_bytes});
}

/* What libarchive does not know: text in another encoding, or something to leave out. */
static enum status take_unknown(struct level *level) {
  TRY(next_block(level));
  if (gunzip_is_gzip(level->block, level->count)) return read_inner(level);
  if (!level->outer) return refuse(level, "neither text nor an archive");
  if (!archive_handle_is_binary(level->block, level->count)) return feed_text(level, NULL);
  level->splitter->binary++;
  return STATUS_OK;
}

/* The last bytes of a zip: of the file, or of what is left of the entry that it is in. */
static enum status read_tail(struct level *level) {
  int fd;
  for (size_t count = 1; level->outer && count;) {
    const char *block;
    TRY(next_packed(level, &block, &count));
  }
  if (level->outer) return STATUS_OK;
  const uint64_t bytes = level->packed_bytes;
  level->tail_count = bytes < sizeof level->tail ? (size_t)bytes : sizeof level->tail;
  TRY(descriptor_open(&fd, level->name.bytes));
  const enum status status = descriptor_read(fd, level->tail, bytes - level->tail_count,
                                             level->tail_count, level->name.bytes);
  close(fd);
  return status;
}

static enum status check_zip(struct level *level) {
  char what[128];
  uint64_t listed = 0;
  TRY(read_tail(level));
  if (!zip_directory_entries(&listed, level->tail, level->tail_count))
    return refuse(level, "the zip ends without its directory: it was cut off");
  if (listed == level->entries || listed == level->entries % 65536) return STATUS_OK;
  snprintf(what, sizeof what, "the zip's directory lists %llu entries, %llu of them can be read",
           (unsigned long long)listed, (unsigned long long)level->entries);
  return refuse(level, what);
}

/* libarchive takes a tar that was cut between two entries for a whole one, and passes over entries
 * of a zip. */
static enum status check_end(struct level *level) {
  const int format = archive_format(level->archive) & ARCHIVE_FORMAT_BASE_MASK;
  level->name.length = level->prefix;
  level->name.bytes[level->prefix] = '\0';
  level->entry_bytes = 0;
  if (format == ARCHIVE_FORMAT_ZIP) return check_zip(level);
  if (format != ARCHIVE_FORMAT_TAR) return STATUS_OK;
  const la_int64_t end = archive_read_header_position(level->archive);
  level->entry_bytes = (uint64_t)end;
  if (archive_filter_bytes(level->archive, 0) > end) return STATUS_OK;
  return refuse(level, "the tar ends without its end mark: it was cut off here");
}

/* The header of an entry is broken; libarchive looks for the next one, block by block. */
static enum status refuse_header(struct level *level) {
  level->name.length = level->prefix;
  level->name.bytes[level->prefix] = '\0';
  level->entry_bytes = (uint64_t)archive_read_header_position(level->archive);
  const enum status status = refuse(level, archive_error_string(level->archive));
  return splitter_refuse(level->splitter, status,
                         (struct refusal){.name = level->name.bytes, .offset = level->entry_bytes});
}

static enum status read_entries(struct level *level) {
  struct archive_entry *entry;
  for (bool lost = false;;) {
    const int result = archive_read_next_header(level->archive, &entry);
    if (result == ARCHIVE_EOF) TRY(sample_end(level->splitter));
    if (result == ARCHIVE_EOF) return check_end(level);
    if (result == ARCHIVE_RETRY && !lost) TRY(refuse_header(level));
    lost = result == ARCHIVE_RETRY;
    if (lost) continue;
    if (result < ARCHIVE_WARN) return refuse(level, archive_error_string(level->archive));
    level->entries++;
    level->splitter->warnings += result == ARCHIVE_WARN;
    if (!archive_handle_is_packed(level->archive)) return take_unknown(level);
    TRY(take_or_refuse(level, entry));
  }
}

static enum status read_file(struct level *level, const char *path) {
  TRY(file_size(&level->packed_bytes, path));
  if (archive_read_open_filename(level->archive, path, BLOCK) != ARCHIVE_OK)
    return refuse(level, archive_error_string(level->archive));
  return read_entries(level);
}

enum status archive_read(const char *path, struct splitter *splitter) {
  struct archive_locale scope;
  struct level *level = NULL;
  TRY(archive_locale_enter(&scope));
  enum status status = level_open(&level, NULL, splitter, path);
  if (status == STATUS_OK) status = read_file(level, path);
  level_close(level);
  archive_locale_leave(&scope);
  splitter->name = path;
  TRY(status);
  return STATUS_OK;
}
