/* What a tokenize node tells about its text: statistics.json. */
#ifndef STAGES_TOKENIZE_STATISTICS_H
#define STAGES_TOKENIZE_STATISTICS_H

#include "stages/tokenize/shards.h"

#define STATISTICS_NAME "statistics.json"

struct statistics_side {
  int64_t *histogram; /* [vocabulary], owned: tokens of the counted rows, marks included */
  int64_t tokens, rows;
  int64_t measured;   /* rows whose entropy was measured: all held-out ones, some others */
  double row_entropy; /* their mean, nats */
};

struct statistics {
  struct statistics_side sides[CORPUS_SIDES];
  double
      unigram_loss; /* of the held-out rows under the training rows' counts plus one, nats/token */
};

/* Makes all shards, each by one rank, and counts their rows. The numbers are the same for any
 * number of ranks. Collective. */
enum status statistics_make(struct statistics *statistics, const struct shards *shards,
                            struct comm *comm);
void statistics_free(struct statistics *statistics);

/* Writes FOLDER/statistics.json. Local. WRITE. */
enum status statistics_write(const struct statistics *statistics, const struct shards *shards);

#endif
