/* The kept documents of a corpus in another order, decided by a keyed bijection (R-DAT-2).
 *
 * Document i of n comes to place P(i), P being the permutation of sharding/order.h for the key
 * (shuffle_seed, "shuffle", entry of `input` or 0 for all). It is done in two passes over files, by
 * all ranks: the documents of some parts are divided by the range of new places, the bucket, they
 * fall into (scatter.h); the documents of each bucket are collected, sorted and written as new
 * parts. Groups, buckets and parts follow from the corpus alone, so that the bytes are the same for
 * any number of ranks; what is done is not done again after a kill (R-DAT-1). A rank holds the
 * documents of one group or bucket: about SHUFFLE_TOKENS, whatever the corpus (R-DAT-6).
 */
#ifndef STAGES_TOKENIZE_SHUFFLE_H
#define STAGES_TOKENIZE_SHUFFLE_H

#include "pipeline/config/options.h"
#include "stages/tokenize/corpus.h"

enum { SHUFFLE_TOKENS = 32 << 20 };

/* Puts the documents of `corpus` in the order that `options->shuffle` asks for, and gives the
 * corpus of the new parts; duplicates are left behind. Collective. STOPPED when asked to stop;
 * WRITE; DAMAGED names the file. On failure there is nothing to free. */
enum status shuffle_corpus(struct corpus *shuffled, const struct corpus *corpus,
                           const struct options *options, struct comm *comm);

#endif
