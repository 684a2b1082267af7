/* The rows of a training, or of its validation: which rows each step takes, read ahead, and their
 * micro-shards as batches of the formulation.
 */
#ifndef STAGES_TRAIN_TRAIN_DATA_H
#define STAGES_TRAIN_TRAIN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "sharding/loader.h"
#include "sharding/store.h"
#include "stages/flow/flow.h"
#include "stages/flow/latents.h"

struct train_data_request {
  const char *tokens_folder;     /* of a finished tokenize node */
  const char *embeddings_folder; /* of a finished embed node with shards, or NULL */
  struct latents *online;        /* computes embeddings instead; NULL: not; borrowed */
  int64_t online_rows;           /* ... of the first rows only */
  const char *side;              /* "train" or "held_out": shards whose names begin so */
  int64_t positions;             /* row length */
  int32_t pad, end;              /* what fills rows, and rows of pairs */
  uint64_t seed;
  int64_t batch;                  /* rows of a step over all ranks */
  int64_t rows_each;              /* rows of a micro-shard */
  struct split shards;            /* micro-shards of this rank */
  const struct option_reals *mix; /* training: weights of the tokens' inputs; borrowed */
  int64_t row_limit; /* validation: the first rows, once, in their stored order; 0: training */
};

struct train_data {
  struct store tokens, embeddings;
  struct store_column token_column, source_column, embedding_column, alone_column;
  struct order order;
  struct loader *loader;
  struct train_data_request request; /* texts in it are borrowed */
  int64_t width, embedded_rows;      /* channels of embeddings, 0 without; rows that have them */
  bool pairs;                        /* rows are a source and a target */
  const struct loader_batch *batch;  /* of the step that was loaded last */
  int32_t *lengths, *sources;        /* [slots]; sources: 0 where rows are not pairs */
  int64_t *samples, *strata;         /* [slots] */
};

/* Opens the rows; arrays come from `arena` (real). Local. MISMATCH when shards or columns are
 * missing, or there are no rows; DAMAGED names the shard. On failure there is nothing to close. */
enum status train_data_open(struct train_data *data, const struct train_data_request *request,
                            struct arena *arena);

/* Accepts a zeroed train_data. Local. */
void train_data_close(struct train_data *data);

/* Takes this rank's rows of a step. Local. DAMAGED names shard, block and row. */
enum status train_data_load(struct train_data *data, int64_t step);

/* Computes the embeddings of micro-shard `j` of this rank where they are not read from shards:
 * those of train_data_micro until the next call. Local. */
enum status train_data_embed(const struct train_data *data, int64_t j);

/* The rows of micro-shard `j` of this rank, of the step that was loaded last; valid until the next.
 * Local. */
struct flow_batch train_data_micro(const struct train_data *data, int64_t j);

/* Valid tokens of this rank in the step that was loaded last. Local. */
int64_t train_data_tokens(const struct train_data *data);

#endif
