/* The shape of a T5 (Raffel et al. 2020), v1.0 (ReLU) or v1.1 (gated GELU), and its config.json. */
#ifndef STAGES_MODEL_NETWORKS_T5_CONFIG_H
#define STAGES_MODEL_NETWORKS_T5_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

struct t5_config {
  int64_t vocabulary, width, heads, head_dim, feedforward, depth;
  int64_t decoder_depth;         /* 0: as depth */
  int64_t buckets, max_distance; /* of relative positions: 32 and 128 */
  double epsilon;                /* of the norms: 1e-6 */
  bool gated;                    /* v1.1: gelu(wi_0 x) * (wi_1 x); v1.0: relu(wi x) */
  bool shared_head;              /* v1.0: tokens are predicted with their own table; v1.1: not */
  bool recompute;                /* compute the blocks again in backward instead of keeping them */
};

/* Reads a Hugging Face config.json. Local. MISMATCH names the file and key: missing, not a T5, or
 * a feed-forward kind other than relu and gated-gelu. */
enum status t5_config_read(struct t5_config *config, const char *path);

/* Special ids of a T5; -1 where there is none. */
struct t5_ids {
  int32_t pad, eos;
};

/* Writes one for T5ForConditionalGeneration. Local. WRITE on failure. */
enum status t5_config_write(const struct t5_config *config, const struct t5_ids *ids,
                            const char *path);

#endif
