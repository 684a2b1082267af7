/* The masks of this field as ranges of visible keys (struct attention_range). */
#ifndef STAGES_MODEL_LAYERS_ATTENTION_MASK_H
#define STAGES_MODEL_LAYERS_ATTENTION_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/kernels/kernels.h"

/* Each fills ranges[queries] of one sequence (or shared by all). Local. */

/* Keys [0, valid): key padding; valid = keys is the full mask. */
void attention_mask_padding(struct attention_range *ranges, int64_t queries, int64_t valid);

/* Query i sees keys [0, i + keys - queries]. */
void attention_mask_causal(struct attention_range *ranges, int64_t queries, int64_t keys);

/* Positions below `prefix` see the prefix; the others see [0, valid): the encoder mask of
 * conditional ELF, and the prefix mask when combined with causal = true for the others. */
void attention_mask_prefix(struct attention_range *ranges, int64_t queries, int64_t prefix,
                           int64_t valid, bool causal);

/* Keys are [first | second] of those lengths, and query i sees the share (i + 1) / queries of each,
 * rounded up: in the AURORA autoencoder c tokens and one latent a query, or the reverse. */
void attention_mask_two_causal(struct attention_range *ranges, int64_t queries, int64_t first,
                               int64_t second);

/* Sequence = [clean | noisy], each `length` long, in blocks of `block`: clean sees clean up to its
 * own block; noisy sees its own noisy block and earlier clean blocks (AURORA-LM, arXiv 2608.02602). */
void attention_mask_two_stream(struct attention_range *ranges, int64_t length, int64_t block);

#endif
