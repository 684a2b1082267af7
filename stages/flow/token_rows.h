/* Rows of one side of a tokenize node, a batch at a time: what encoders read, and what texts are
 * drawn for. */
#ifndef STAGES_FLOW_TOKEN_ROWS_H
#define STAGES_FLOW_TOKEN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "sharding/store.h"

struct token_rows_request {
  const char *folder, *side; /* of a finished tokenize node; "train" or "held_out"; borrowed */
  int64_t vocabulary;
  int32_t pad, end;        /* ids; -1 where the tokenizer has none */
  int64_t positions, most; /* tokens of a row, and rows to read at a time */
};

struct token_rows {
  struct store store;
  struct store_column column, source_column;
  struct source_cache cache;
  const char *side; /* borrowed */
  bool pairs;       /* rows are a source and a target; pads are then end tokens */
  int64_t positions, vocabulary, most;
  int32_t pad;
  int32_t *tokens, *lengths; /* owned: [most, positions], [most], of the rows read last */
  int32_t *sources;          /* owned: [most]; 0 where rows are not pairs */
};

/* Opens a side of tokens. Local. MISMATCH when there is no such side, or rows are pairs and the
 * tokenizer has no end token. On failure there is nothing to close. */
enum status token_rows_open(struct token_rows *rows, const struct token_rows_request *request);

/* Accepts zeroed rows. Local. */
void token_rows_close(struct token_rows *rows);

/* Reads rows [first, first + count), the rest of each filled with pads. Local. DAMAGED names the
 * row: an id outside the vocabulary, or a source without a target. */
enum status token_rows_read(struct token_rows *rows, int64_t first, int64_t count);

#endif
