/* What the most likely tokens of a few texts were at every network call, for people to look at. */
#ifndef STAGES_SAMPLE_TRAJECTORY_H
#define STAGES_SAMPLE_TRAJECTORY_H

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "stages/flow/flow.h"
#include "stages/tokenize/tokenizer.h"

/* Zero-initialise, but for the tokenizer. */
struct trajectory {
  const struct tokenizer *tokenizer; /* borrowed */
  int64_t first, count, positions;   /* texts that are watched */
  struct text lines, decoded;        /* owned */
  enum status status;                /* of what was watched */
};

/* Watches those texts of a request that come before the option `trajectories`. Local. */
void trajectory_watch(struct trajectory *trajectory, struct flow_request *request);

/* Writes FOLDER/trajectory-SET-FIRST.jsonl, a line {"text", "call", "time", "tokens", "decoded"} for
 * each text and call, when any were watched. Local. WRITE when it cannot. */
enum status trajectory_write(const struct trajectory *trajectory, const char *folder,
                             const char *set, int64_t first);
void trajectory_free(struct trajectory *trajectory);

#endif
