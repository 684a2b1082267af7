/* Archives made for tests, and their reading in a child that may not write anywhere. */
#ifndef TESTS_COMMON_ARCHIVE_CASE_H
#define TESTS_COMMON_ARCHIVE_CASE_H

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/text.h"
#include "pipeline/config/options.h"

enum archive_case_check {
  ARCHIVE_CASE_NOTHING, /* neither sums nor an end mark */
  ARCHIVE_CASE_NONE, /* neither headers nor content have sums, or libarchive does not compare them
                      */
  ARCHIVE_CASE_HEADERS, /* headers have, content has not */
  ARCHIVE_CASE_ALL
};

/* A kind of archive that libarchive writes. */
struct archive_case_kind {
  const char *name; /* its file's ending too */
  int (*format)(struct archive *), (*filter)(struct archive *);
  enum archive_case_check check;
};

/* All kinds that are read; ended by a NULL name. */
extern const struct archive_case_kind archive_case_kinds[];

struct archive_case_entry {
  const char *name, *content; /* content NULL: a link to `link` */
  const char *link;
  bool symbolic;
};

/* Writes an archive of `count` entries. Aborts the test on failure. */
void archive_case_write(const char *path, const struct archive_case_kind *kind,
                        const struct archive_case_entry *entries, int count);

struct archive_case_outcome {
  enum status status; /* COUNT: the child did not come back */
  struct text all;    /* documents, each ended by '|', the first MiB of them; owned */
  struct text message;
  uint64_t warnings, binary, links, refused;
  uint64_t documents, bytes; /* of all documents, also those that are not kept */
  long peak_mib;             /* of the child; 0: there was none */
};

/* Reads `path` (damaged: quarantine when `tolerant`). To be freed. */
struct archive_case_outcome archive_case_read(const char *path, enum boundary_choice boundary,
                                              bool tolerant);

/* The same in a child whose writes to files kill it. */
struct archive_case_outcome archive_case_read_apart(const char *path, enum boundary_choice boundary,
                                                    bool tolerant);
void archive_case_free(struct archive_case_outcome *outcome);

#endif
