/* Of several texts that were drawn for one source, the one that the others agree with most: minimum
 * Bayes risk (Kumar and Byrne 2004), as diffusion models of sequences are decoded by (DiffuSeq,
 * arXiv 2210.08933). The gain is F1 of the longest common subsequence of tokens (ROUGE-L, Lin
 * 2004).
 */
#ifndef STAGES_SAMPLE_CONSENSUS_H
#define STAGES_SAMPLE_CONSENSUS_H

#include <stdint.h>

#include "pipeline/base/error.h"

/* Texts as a sampler leaves them. */
struct consensus_texts {
  int32_t *tokens;   /* [batch, positions] */
  float *confidence; /* [batch, positions], or NULL */
  int32_t *calls;    /* [batch], or NULL */
};

/* Zero-initialise. */
struct consensus {
  int64_t candidates, batch, positions;
  struct consensus_texts drawn; /* owned: [candidates, batch, ...] */
};

/* The seed that candidate `candidate` is drawn with: of candidate 0 the seed itself. Local. */
uint64_t consensus_seed(uint64_t seed, int64_t candidate);

/* Makes room for `candidates` times the texts that are like `texts`. Local. ENVIRONMENT when memory
 * is out. consensus_close afterwards, also on failure. */
enum status consensus_open(struct consensus *consensus, int64_t candidates, int64_t batch,
                           int64_t positions, const struct consensus_texts *texts);
void consensus_close(struct consensus *consensus);

/* Takes `count` texts as one candidate. Local. */
void consensus_keep(struct consensus *consensus, int64_t candidate,
                    const struct consensus_texts *texts, int64_t count);

/* Writes the chosen one of each of `count` texts to `texts`, the first of equals. Text i is
 * compared from sources[i] to its first `end` token; calls are those of all candidates together.
 * Local. ENVIRONMENT when memory is out. */
enum status consensus_choose(const struct consensus *consensus, const int32_t *sources, int32_t end,
                             const struct consensus_texts *texts, int64_t count);

#endif
