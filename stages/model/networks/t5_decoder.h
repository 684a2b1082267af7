/* The decoder of T5 (Raffel et al. 2020): causal self-attention with a bias by how far back a token
 * is, attention to the encoder's output, feed-forward; the encoder's table is its own. Parameter
 * names are those of Hugging Face checkpoints.
 */
#ifndef STAGES_MODEL_NETWORKS_T5_DECODER_H
#define STAGES_MODEL_NETWORKS_T5_DECODER_H

#include <stdint.h>

#include "stages/model/networks/t5_block.h"
#include "stages/model/networks/t5_config.h"

struct t5_decoder_block {
  const struct param_layer *layer;
  struct t5_attention own, cross;
  struct t5_feedforward feedforward;
};

struct t5_decoder {
  struct t5_config config;
  struct param *table;         /* the encoder's */
  struct param *relative_bias; /* [buckets, heads] */
  struct t5_decoder_block *blocks;
  struct param *final_norm;
  struct param *head; /* lm_head.weight [V, width]; the table itself with shared_head */
};

/* Declares the decoder into the set that holds the encoder, whose table it shares. Local. */
void t5_decoder_declare(struct t5_decoder *net, struct params *params,
                        const struct t5_config *config, struct param *table);

struct t5_decoder_input {
  int64_t batch, positions;
  const int32_t *tokens; /* [batch * positions] what comes before each target; borrowed until
                            backward */
  struct value *memory;  /* [batch * memory_positions, width] the encoder's output */
  int64_t memory_positions;
  const int32_t *memory_lengths;    /* [batch] valid positions of the memory; NULL: all */
  struct vocab *vocab;              /* of a table that is sliced; NULL: it is whole here */
  const struct t5_dropout *dropout; /* borrowed until backward; NULL: none */
};

/* What the head multiplies, [batch * positions, width]: states after the final norm; divided by the
 * root of the width with shared_head. Collective over the vocabulary group, where there is one,
 * else local. */
struct value *t5_decoder_forward(struct tape *tape, const struct t5_decoder *net,
                                 const struct t5_decoder_input *input);

#endif
