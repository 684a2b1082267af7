#define _DEFAULT_SOURCE
#include "tests/common/archive_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stages/tokenize/inputs.h"

enum { KEPT_BYTES = 1 << 20 };

#define KIND(name, format, filter, check)                                                          \
  {                                                                                                \
    name, archive_write_set_format_##format, archive_write_add_filter_##filter,                    \
        ARCHIVE_CASE_##check                                                                       \
  }

const struct archive_case_kind archive_case_kinds[] = {KIND("gnu.tar", gnutar, none, HEADERS),
                                                       KIND("pax.tar", pax, none, HEADERS),
                                                       KIND("ustar.tar", ustar, none, HEADERS),
                                                       KIND("v7.tar", v7tar, none, HEADERS),
                                                       KIND("newc.cpio", cpio_newc, none, NONE),
                                                       KIND("zip", zip, none, ALL),
                                                       KIND("7z", 7zip, none, ALL),
                                                       KIND("tar.gz", gnutar, gzip, ALL),
                                                       KIND("tar.bz2", gnutar, bzip2, ALL),
                                                       KIND("tar.xz", gnutar, xz, ALL),
                                                       KIND("tar.lz", gnutar, lzip, ALL),
                                                       KIND("tar.lzma", gnutar, lzma, NONE),
                                                       KIND("tar.zst", gnutar, zstd, ALL),
                                                       KIND("tar.lz4", gnutar, lz4, NONE),
                                                       KIND("tar.Z", gnutar, compress, NOTHING),
                                                       KIND("cpio.xz", cpio_newc, xz, ALL),
                                                       {NULL, NULL, NULL, ARCHIVE_CASE_NONE}};

static void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "# %s\n", what);
  abort();
}

static void write_entry(struct archive *archive, const struct archive_case_entry *entry) {
  struct archive_entry *header = archive_entry_new();
  const size_t count = entry->content ? strlen(entry->content) : 0;
  archive_entry_set_pathname(header, entry->name);
  archive_entry_set_perm(header, 0644);
  archive_entry_set_filetype(header, entry->symbolic ? AE_IFLNK : AE_IFREG);
  if (entry->symbolic)
    archive_entry_set_symlink(header, entry->link);
  else if (entry->link)
    archive_entry_set_hardlink(header, entry->link);
  archive_entry_set_size(header, (la_int64_t)count);
  require(archive_write_header(archive, header) >= ARCHIVE_WARN, archive_error_string(archive));
  require(archive_write_data(archive, entry->content ? entry->content : "", count) ==
              (la_ssize_t)count,
          archive_error_string(archive));
  archive_entry_free(header);
}

void archive_case_write(const char *path, const struct archive_case_kind *kind,
                        const struct archive_case_entry *entries, int count) {
  struct archive *archive = archive_write_new();
  kind->format(archive);
  require(kind->filter(archive) == ARCHIVE_OK, archive_error_string(archive));
  require(archive_write_open_filename(archive, path) == ARCHIVE_OK, path);
  for (int i = 0; i < count; i++) write_entry(archive, &entries[i]);
  require(archive_write_close(archive) == ARCHIVE_OK, archive_error_string(archive));
  archive_write_free(archive);
}

struct report {
  enum status status;
  uint64_t warnings, binary, links, refused, documents, bytes, all, message;
};

struct reading {
  struct text all;
  struct text reasons;
  uint64_t refused, documents, bytes;
};

static enum status add_document(void *state, const char *bytes, size_t count) {
  struct reading *reading = state;
  reading->documents++;
  reading->bytes += count;
  if (reading->all.length > KEPT_BYTES) return STATUS_OK; /* memory is the reader's */
  TRY(text_add_bytes(&reading->all, bytes, count));
  return text_add(&reading->all, "|");
}

static enum status add_refusal(void *state, const struct refusal *refusal) {
  struct reading *reading = state;
  reading->refused++;
  return text_format(&reading->reasons, "%s\n", refusal->reason);
}

static enum status read_path(struct splitter *splitter, const char *path, bool tolerant) {
  struct inputs inputs = {0};
  const struct option_texts paths = {.count = 1, .values = {path}};
  const struct inputs_request request = {.paths = &paths,
                                         .boundary = splitter->boundary,
                                         .unit_bytes = UNIT_BYTES,
                                         .keeps_damaged = tolerant};
  TRY(inputs_list(&inputs, &request));
  enum status status = STATUS_OK;
  for (size_t i = 0; status == STATUS_OK && i < inputs.unit_count; i++)
    status = inputs_read(&inputs, &inputs.units[i], splitter);
  inputs_free(&inputs);
  return status;
}

static void send(int pipe, const void *bytes, size_t count) {
  for (const char *from = bytes; count;) {
    const ssize_t wrote = write(pipe, from, count);
    if (wrote <= 0) _exit(3);
    from += wrote;
    count -= (size_t)wrote;
  }
}

struct archive_case_outcome archive_case_read(const char *path, enum boundary_choice boundary,
                                              bool tolerant) {
  struct reading reading = {0};
  struct splitter splitter = {
      .boundary = boundary,
      .sink = {.add = add_document, .state = &reading, .refuse = tolerant ? add_refusal : NULL}};
  const enum status status = read_path(&splitter, path, tolerant);
  require(text_add(&reading.all, "") == STATUS_OK &&
              text_add(&reading.reasons, status == STATUS_OK ? "" : error_message()) == STATUS_OK,
          "memory");
  const struct archive_case_outcome outcome = {.status = status,
                                               .all = reading.all,
                                               .message = reading.reasons,
                                               .warnings = splitter.warnings,
                                               .binary = splitter.binary,
                                               .links = splitter.links,
                                               .refused = reading.refused,
                                               .documents = reading.documents,
                                               .bytes = reading.bytes};
  splitter_free(&splitter);
  return outcome;
}

static void read_in_child(int pipe, const char *path, enum boundary_choice boundary,
                          bool tolerant) {
  const struct rlimit nothing = {0, 0};
  setrlimit(RLIMIT_FSIZE, &nothing);
  const struct archive_case_outcome outcome = archive_case_read(path, boundary, tolerant);
  const struct report report = {.status = outcome.status,
                                .warnings = outcome.warnings,
                                .binary = outcome.binary,
                                .links = outcome.links,
                                .refused = outcome.refused,
                                .documents = outcome.documents,
                                .bytes = outcome.bytes,
                                .all = outcome.all.length,
                                .message = outcome.message.length};
  send(pipe, &report, sizeof report);
  send(pipe, outcome.all.bytes, outcome.all.length);
  send(pipe, outcome.message.bytes, outcome.message.length);
  _exit(0);
}

static bool receive(int pipe, void *bytes, size_t count) {
  for (char *to = bytes; count;) {
    const ssize_t got = read(pipe, to, count);
    if (got <= 0) return false;
    to += got;
    count -= (size_t)got;
  }
  return true;
}

static bool receive_text(int pipe, struct text *text, size_t count) {
  text->bytes = malloc(count + 1);
  if (!text->bytes || !receive(pipe, text->bytes, count)) return false;
  text->bytes[count] = '\0';
  text->length = count;
  text->capacity = count + 1;
  return true;
}

struct archive_case_outcome archive_case_read_apart(const char *path, enum boundary_choice boundary,
                                                    bool tolerant) {
  struct archive_case_outcome outcome = {.status = STATUS_COUNT};
  struct report report;
  struct rusage usage;
  int ends[2];
  require(pipe(ends) == 0, "a pipe");
  const pid_t child = fork();
  require(child >= 0, "a child");
  if (child == 0) read_in_child(ends[1], path, boundary, tolerant);
  close(ends[1]);
  if (receive(ends[0], &report, sizeof report) && receive_text(ends[0], &outcome.all, report.all) &&
      receive_text(ends[0], &outcome.message, report.message)) {
    outcome.status = report.status;
    outcome.warnings = report.warnings;
    outcome.binary = report.binary;
    outcome.links = report.links;
    outcome.refused = report.refused;
    outcome.documents = report.documents;
    outcome.bytes = report.bytes;
  }
  close(ends[0]);
  require(wait4(child, NULL, 0, &usage) == child, "the child's end");
  outcome.peak_mib = usage.ru_maxrss >> 10;
  return outcome;
}

void archive_case_free(struct archive_case_outcome *outcome) {
  text_free(&outcome->all);
  text_free(&outcome->message);
}
