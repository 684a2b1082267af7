/* The rows of tokens of a finished tokenize node, one after another, for commands without MPI. */
#ifndef PIPELINE_DRIVER_TOKEN_ROWS_H
#define PIPELINE_DRIVER_TOKEN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/error.h"

enum token_side { TOKEN_TRAIN, TOKEN_HELD_OUT, TOKEN_SIDES };

/* What the node says of its tokenizer. */
struct token_rules {
  char kind[64], hash[HASH_HEX_BYTES];
  int64_t vocabulary_size, pad, eos, unk, bos; /* ids; -1: none */
};

struct token_row {
  enum token_side side;
  const char *shard; /* path in the folder; borrowed */
  int64_t row;       /* in the shard */
  const int64_t *ids;
  int64_t count;
  bool wrapped; /* documents go on from row to row, with eos between them */
};

/* Reads FOLDER/tokenizer.json. Local. MISMATCH when there is none, DAMAGED when it lacks a key. */
enum status token_rules_read(struct token_rules *rules, const char *folder);

/* The side that an output belongs to by its name; false for one that is no shard of tokens. Local.
 */
bool token_side_of(enum token_side *side, const char *path);

/* Calls `visit` for each row of all shards, in the order of their names. Local. DAMAGED names the
 * shard; passes on what `visit` returns. */
enum status token_rows_each(const char *folder, const struct manifest *manifest, void *context,
                            enum status visit(void *context, const struct token_row *row));

#endif
