/* Cuts a stream of bytes into documents: by file, by line, by blank line, one for each JSON line,
 * one for each package description of a Debian package list, or one for each sample of an archive.
 */
#ifndef STAGES_TOKENIZE_SPLITTER_H
#define STAGES_TOKENIZE_SPLITTER_H

#include <stdbool.h>

#include "pipeline/base/text.h"
#include "pipeline/config/options.h"
#include "stages/tokenize/document.h"
#include "stages/tokenize/sample.h"

struct splitter {
  /* set by the caller */
  enum boundary_choice boundary;
  const char *text_key; /* for BOUNDARY_KEY; "a.b" is the key b inside a. Of samples: see sample.h.
                           Borrowed */
  const char *target_key; /* for pairs by key or sample: key of the target. Borrowed */
  bool every_line;        /* BOUNDARY_LINE: blank lines too, as documents of no bytes */
  const char *entries;    /* shell pattern of archive entries to read; NULL or "": all. Borrowed */
  struct document_sink sink;
  const char *name; /* of the stream, for messages; borrowed */
  uint64_t offset;  /* of the next byte that is fed, in the stream */
  uint64_t limit;   /* documents that begin at or behind it are left to the next unit */
  /* kept by the splitter */
  bool done;         /* a document began at or behind the limit: feed no more */
  uint64_t empty;    /* documents left out because they hold (pairs: a side holds) only space */
  uint64_t warnings; /* oddities of archives that were read all the same */
  uint64_t binary;   /* entries of archives that are neither text nor archives, left out */
  uint64_t links; /* entries of archives that are links, left out: what they name is read itself */
  uint64_t begun; /* offset of the record or line that is being gathered */
  struct text line, record, document, target;
  struct sample sample;
};

/* A splitter for a node's documents. Borrows from the options. Local. */
struct splitter splitter_for(const struct options *options, struct document_sink sink);

/* Takes the next bytes of the stream. Local. Passes on the sink's status; MISMATCH for a document
 * over DOCUMENT_BYTES or a JSON line without the key; DAMAGED for a line that is not JSON. */
enum status splitter_feed(struct splitter *splitter, const char *bytes, size_t count);

/* The stream ends here: gives the last document. Local. */
enum status splitter_finish(struct splitter *splitter);

/* Gives a pair to the sink, or counts it as empty. Local. As the sink. */
enum status splitter_give_pair(struct splitter *splitter, const struct document_pair *pair);

/* Gives what `document` and, for pairs, `target` hold. Local. As the sink. */
enum status splitter_give_gathered(struct splitter *splitter);

/* What failed with `status` is left out: forgets what was gathered of it and tells the sink why,
 * with the message of the failure as reason. Passes the status on where the sink does not take
 * refusals, and when it is not damage (of a document also: that it does not fit the options).
 * Local. */
enum status splitter_refuse(struct splitter *splitter, enum status status, struct refusal refusal);

/* Frees what the splitter gathered. Local. */
void splitter_free(struct splitter *splitter);

/* Whether a file or entry of this name is to be read: the part behind the last slash is compared.
 * Local. */
bool splitter_wants(const char *entries, const char *name);

/* Whether no document has been begun that is not yet given. */
static inline bool splitter_is_idle(const struct splitter *splitter) {
  return !splitter->line.length && !splitter->record.length;
}

/* Whether a document can begin only behind a blank line (else: at every line, or once a file). */
static inline bool boundary_needs_blank_line(enum boundary_choice boundary) {
  return boundary == BOUNDARY_BLANK_LINE || boundary == BOUNDARY_PACKAGE;
}

/* Whether the stream may be cut into byte ranges that are read on their own. */
static inline bool boundary_divides(enum boundary_choice boundary) {
  return boundary != BOUNDARY_FILE && boundary != BOUNDARY_SAMPLE;
}

#endif
