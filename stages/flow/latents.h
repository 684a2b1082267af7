/* Embeddings of rows of tokens by a frozen encoder, a batch at a time, as the stage embed keeps
 * them in shards: whoever computes them while it trains or samples has the same bits.
 */
#ifndef STAGES_FLOW_LATENTS_H
#define STAGES_FLOW_LATENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/config/options.h"
#include "stages/flow/encoder.h"

struct latents {
  struct encoder encoder;
  int64_t positions, width, most;
  double scale;                   /* root mean square of the encoder's outputs; 0: not yet known */
  bool channels;                  /* shift and factor are each channel's own */
  struct arena arena;             /* owned: of the arrays below */
  float *shift, *factor;          /* [width] latents are (output - shift) * factor */
  float *values;                  /* [most, positions, width] */
  float *alone;                   /* of pairs, targets that did not see their source; else NULL */
  struct attention_range *ranges; /* [most, positions] what targets see then */
};

struct latents_request {
  struct encoder_request encoder;
  int64_t positions, most; /* tokens of a row, rows at a time */
  bool pairs;              /* rows are a source and a target: `alone` is wanted */
};

/* Some rows, filled with pads; what is NULL is as in t5_input. */
struct latents_rows {
  int64_t count;
  const int32_t *tokens, *lengths, *sources;
  const struct attention_range *ranges;
};

/* Makes the encoder. Local. Statuses of encoder_open. On failure there is nothing to close. Must
 * not be moved. */
enum status latents_open(struct latents *latents, const struct latents_request *request);

/* Accepts zeroed latents. Local. */
void latents_close(struct latents *latents);

/* Divides everything by `scale`. Local. */
void latents_set_scale(struct latents *latents, double scale);

/* Writes what channels are moved and divided by to a file of a folder. Local. WRITE on failure. */
enum status latents_write_channels(const struct latents *latents, const char *folder);

/* Takes the scale, and what channels have of their own, of a finished embed node. Local. MISMATCH
 * when another encoder made it. */
enum status latents_take_scale(struct latents *latents, const char *folder);

/* Fills values, and alone for pairs, with what the encoder says; sources are zeros in `alone`. A
 * row does not depend on the others (R-IO-2). Local. */
enum status latents_encode(struct latents *latents, const struct latents_rows *rows);

/* As latents_encode, moved, divided and rounded to bf16, as in shards. Local. */
enum status latents_embed(struct latents *latents, const struct latents_rows *rows);

/* Of the encoder, its precision, the scale and the tokens: what decides every embedding. Local.
 * ENVIRONMENT when memory is out. */
enum status latents_hash(char hash[HASH_HEX_BYTES], const struct latents *latents,
                         const char *tokens);

/* Bytes of weights, activations and arrays. Local. */
enum status latents_bytes(size_t *bytes, struct latents *latents);

#endif
