/* The transformer of the categorical flow maps: a diffusion transformer over the embedded noisy
 * state with two times (arXiv 2605.07820; blocks after Peebles and Xie 2023).
 *
 *   c = silu(embed(alpha_s) + embed'(alpha_t - alpha_s))
 *   h = input(y) + flag where a token is given clean (option)
 *   depth x { h += gate * attention(modulate(norm(h))); h += gate * swiglu(modulate(norm(h))) }
 *   hidden = modulate(norm(h))
 *
 * norm is a root mean square norm without parameters; shifts, scales and gates are linear in c and
 * start at zero, or, bounded, are linear in c and then normalised each, so that the network cannot
 * get arbitrarily steep in time. Full attention, normalised q and k, half-split rotary positions,
 * no biases in the blocks.
 */
#ifndef STAGES_MODEL_NETWORKS_CFM_TRANSFORMER_H
#define STAGES_MODEL_NETWORKS_CFM_TRANSFORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/networks/scalar_embedder.h"
#include "stages/model/networks/self_attention.h"
#include "stages/model/networks/swiglu.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct cfm_transformer_config {
  int64_t depth, width, heads;
  int64_t feedforward;  /* inner width; 0: swiglu_hidden(width) */
  int64_t state_width;  /* d: channels of the embedded state y */
  int64_t condition;    /* channels of c; 128 in the published runs */
  bool bounded;         /* modulation vectors are normalised, instead of starting at zero */
  bool shared;          /* one modulation matrix for all blocks, with biases of their own */
  bool plain_attention; /* q and k are not normalised */
  bool spectral;        /* matrices start with a largest singular value of 1, else Xavier-uniform */
  double rate;          /* factor of the learning rate of matrices that read `width`; 0: 1 */
  bool flag;            /* tokens that are given clean are marked by a learned vector */
  bool recompute;       /* compute the blocks again in backward instead of keeping them */
};

struct cfm_block {
  const struct param_layer *layer;
  struct param *modulation, *modulation_bias; /* condition -> 6 width */
  bool bounded;
  struct self_attention attention;
  struct swiglu mlp;
};

struct cfm_transformer {
  struct cfm_transformer_config config;
  struct param *input, *input_bias; /* d -> width */
  struct param *flag;               /* [1, width], or NULL */
  struct scalar_embedder from, span;
  struct param *modulation; /* of all blocks, when shared; else NULL */
  struct cfm_block *blocks;
  struct param *final_modulation, *final_modulation_bias; /* condition -> 2 width */
};

/* Declares input, clean_flag, s_embedder, span_embedder, blocks.N.{modulation,attn,mlp} and
 * final.modulation into `params`; the blocks live in the arena of the set. The vocabulary tables
 * are the flow's. Local. */
void cfm_transformer_declare(struct cfm_transformer *net, struct params *params,
                             const struct cfm_transformer_config *config);

/* Times of the rows of a batch, and how fast they change on a moving tape (tangent.h): arrays of
 * [batch], rates NULL where a time is fixed. */
struct cfm_times {
  const double *from, *to;
  const double *from_rate, *to_rate;
  const float
      *clean; /* [batch * positions] 1 where a token is given clean, else 0; NULL: nowhere */
};

/* Hidden states [batch * positions, width] for the vocabulary head, from the embedded state
 * y[batch * positions, d] (of about unit size per channel), with from[batch] <= to[batch] in alpha,
 * in [0, 1]; equal times are the denoiser. Local. */
struct value *cfm_transformer_forward(struct tape *tape, const struct cfm_transformer *net,
                                      struct value *y, const struct cfm_times *times, int64_t batch,
                                      int64_t positions);

#endif
