/* Embeddings of a training kept in shards, against computing them while it trains (`embed`): what
 * each takes on given storage, by given rates. For `millrace plan`.
 */
#ifndef PIPELINE_DRIVER_EMBED_PLAN_H
#define PIPELINE_DRIVER_EMBED_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/driver/bench_rates.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/run.h"

/* Rows that an embed node makes, and what one takes. */
struct embed_rows {
  double train, held_out;
  double bytes; /* of a row, before compression */
  double flop;  /* ... to encode it */
};

struct embed_plan {
  double shard_bytes, epochs, step_flop;
  double encode_seconds, write_seconds, read_seconds; /* with shards; what is made is not counted */
  double online_seconds;                              /* over all steps */
};

struct embed_plan_request {
  const struct run *run;
  const struct recipe_node *node; /* a pretrain node */
  const struct site *site;
  const struct bench_rates *rates;
  uint64_t token_bytes; /* of the token shards, where they are not made yet */
  uint64_t free_bytes;  /* of the storage; 0: not known */
};

/* Rows of a finished tokenize node are those of its manifest; else they follow from the bytes that
 * its shards are expected to have. Local. MISMATCH without a tokenize node; DAMAGED. */
enum status embed_plan_rows(struct embed_rows *rows, const struct run *run,
                            const struct recipe_node *embed, uint64_t token_bytes);

/* Plans the embeddings of a training node. Local. Statuses of embed_plan_rows. */
enum status embed_plan_of(struct embed_plan *plan, const struct embed_plan_request *request);

/* Prints both and which is cheaper; nothing for a pretrain node that reads no embeddings. Local. Statuses of
 * embed_plan_rows. */
enum status embed_plan_print(const struct embed_plan_request *request);

#endif
