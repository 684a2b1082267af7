/* The text autoencoder of AURORA-LM (arXiv 2608.02602).
 *
 * Encoder: every latent starts from one learned vector and attends, layer by layer, to the latents
 * up to itself and to the raw embeddings of the tokens it covers. Decoder: the same with a second
 * learned vector, positions of text as queries and the latents as memory. Blocks have separate maps
 * to keys and values for the two sides, rotary positions on both, and a feed-forward part of two
 * matrices (GELU). Root mean square norms before attention (queries and memory) and before the
 * feed-forward part. One table serves as input embedding and output head.
 */
#ifndef STAGES_MODEL_NETWORKS_AURORA_AUTOENCODER_H
#define STAGES_MODEL_NETWORKS_AURORA_AUTOENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct aurora_config {
  int64_t depth; /* layers of the encoder, and of the decoder */
  int64_t width; /* D: channels of embeddings and latents */
  int64_t heads;
  int64_t feedforward; /* inner width; 0: 4 width */
  int64_t vocabulary;
  bool recompute; /* compute the blocks again in backward instead of keeping them */
};

struct aurora_block {
  const struct param_layer *layer;
  struct param *norm_query, *norm_memory, *norm_feedforward;
  struct param *query, *out;
  struct param *key_value, *memory_key_value; /* [2 width, width] each */
  struct param *up, *down;
};

struct aurora_stack {
  struct param *start; /* [1, width]: the state every position starts from */
  struct aurora_block *blocks;
  struct param *final_norm;
};

struct aurora_autoencoder {
  struct aurora_config config;
  struct param *table; /* [V, width]; may be sliced by rows */
  struct aurora_stack encoder, decoder;
};

/* Declares embed.weight and {encoder,decoder}.{start,layers.N...,final_norm} into `params`; the
 * blocks live in the arena of the set. Local. */
void aurora_autoencoder_declare(struct aurora_autoencoder *net, struct params *params,
                                const struct aurora_config *config);

/* Latent positions of `tokens` tokens at a ratio c in (0, 1]: the nearest integer to c * tokens, at
 * least 1. Local. */
int64_t aurora_autoencoder_latents(double ratio, int64_t tokens);

/* Latents [batch * latents, D] of embedded tokens[batch * positions, D]. Local. */
struct value *aurora_autoencoder_encode(struct tape *tape, const struct aurora_autoencoder *net,
                                        struct value *tokens, int64_t batch, int64_t positions,
                                        int64_t latents);

/* States [batch * positions, D] for the vocabulary head (net->table) from latents[batch * count,
 * D]. Local. */
struct value *aurora_autoencoder_decode(struct tape *tape, const struct aurora_autoencoder *net,
                                        struct value *latents, int64_t batch, int64_t count,
                                        int64_t positions);

#endif
