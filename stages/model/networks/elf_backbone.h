/* The ELF backbone (Embedded Language Flows, arXiv 2605.10938): a
 * transformer over noisy latents with control tokens in front, one output that predicts the clean
 * latents and one that decodes them to tokens. Parameter names are those of the authors' PyTorch
 * checkpoints; proj_kernel and unembed_kernel, which are stored [in, out] there, are [out, in]
 * here.
 *
 *   [z | draft] -> self_cond_proj -> bottleneck -> [time x4 | guidance x4 | mode x4 | latents]
 *     -> depth x { h += attention(norm(h)); h += swiglu(norm(h)) } -> latents' rows
 *        -> denoise: norm, linear          -> decode: linear, gelu -> vocabulary head
 */
#ifndef STAGES_MODEL_NETWORKS_ELF_BACKBONE_H
#define STAGES_MODEL_NETWORKS_ELF_BACKBONE_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/networks/prenorm_stack.h"
#include "stages/model/networks/scalar_embedder.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

enum { ELF_CONTROL_TOKENS = 4 }; /* of each of the three kinds */

struct elf_backbone_config {
  int64_t depth, width, heads;
  int64_t feedforward;  /* inner width; 0: swiglu_hidden(width) */
  int64_t bottleneck;   /* 128 in the paper */
  int64_t latent_width; /* E: channels of the encoder's output, 512 for T5-small */
  int64_t vocabulary;   /* V */
  bool recompute;       /* compute the blocks again in backward instead of keeping them */
};

struct elf_backbone {
  struct elf_backbone_config config;
  struct param *self_cond_proj, *self_cond_proj_bias; /* 2E -> E */
  struct param *proj1, *proj2, *proj2_bias;           /* E -> bottleneck -> width */
  struct scalar_embedder time, guidance;
  struct param *time_tokens, *guidance_tokens, *mode_tokens; /* [4, width] */
  struct prenorm_stack stack;
  struct param *proj, *proj_bias;       /* decode: width -> E */
  struct param *unembed, *unembed_bias; /* [V, E] and [V, 1]; may be sliced by rows */
  struct param *final_norm, *final, *final_bias;
};

/* What the network sees. `draft` is the previous prediction of the clean latents, zeros without. */
struct elf_backbone_input {
  int64_t batch, positions;
  struct value *z, *draft; /* [batch * positions, E] */
  const double *time;      /* [batch] in [0, 1], 1 = clean */
  const double *guidance;  /* [batch] guidance scale w */
  const float *decode;     /* [batch] 1: decode mode, 0: denoise mode (mode tokens are zeros) */
};

/* Declares the network into `params`. Local. */
void elf_backbone_declare(struct elf_backbone *net, struct params *params,
                          const struct elf_backbone_config *config);

/* The last residual stream [batch * positions, width], control tokens removed. Local. */
struct value *elf_backbone_forward(struct tape *tape, const struct elf_backbone *net,
                                   const struct elf_backbone_input *input);

/* Prediction of the clean latents [n, E] from rows of the residual stream. Local. */
struct value *elf_backbone_denoise(struct tape *tape, const struct elf_backbone *net,
                                   struct value *hidden);

/* What the vocabulary head (net->unembed, net->unembed_bias) takes: [n, E]. Local. */
struct value *elf_backbone_decode(struct tape *tape, const struct elf_backbone *net,
                                  struct value *hidden);

#endif
