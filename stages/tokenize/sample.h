/* Samples of an archive, as WebDataset has them: neighbouring entries whose names are equal up to
 * the first dot behind the last slash. What follows that dot is the extension, by which text_key
 * chooses the text: "txt" is the whole entry, "json.caption" the key `caption` of the entry with
 * the extension "json". target_key chooses the target of a pair in the same way.
 */
#ifndef STAGES_TOKENIZE_SAMPLE_H
#define STAGES_TOKENIZE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/text.h"

struct splitter;

/* One side of a sample: its text, or its target. */
struct sample_side {
  bool wanted;     /* from the present entry */
  bool found;      /* an entry for it was there */
  const char *key; /* inside the present entry, which is JSON; NULL: all of it. Borrowed */
};

/* The sample that is being gathered. Zero-initialise. */
struct sample {
  struct text stem; /* "FILE: ENTRY" up to the extension; empty: none */
  struct sample_side sides[2];
  bool refused; /* a part of it is damaged: it is left out */
};

/* An entry comes: ends the sample before it unless it belongs to that, and says whether it is to be
 * read. `name` is "FILE: ENTRY", where the entry begins at `prefix`. Local. As sample_end; DAMAGED
 * for a second entry with an extension that is wanted. */
enum status sample_begin(struct splitter *splitter, const char *name, size_t prefix, bool *wanted);

/* Takes the content of the present entry. Local. MISMATCH outside an archive; as record_json where
 * the splitter does not take refusals. */
enum status sample_take(struct splitter *splitter, const char *bytes, size_t count);

/* Gives the sample, if there is one. Local. MISMATCH when it lacks an entry that is wanted and the
 * splitter does not take refusals, and as the sink. */
enum status sample_end(struct splitter *splitter);

void sample_free(struct sample *sample);

#endif
