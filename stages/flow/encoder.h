/* A frozen text encoder, ready to run: T5 with the weights of a folder, with those that a node of
 * the run trained, or with random ones. */
#ifndef STAGES_FLOW_ENCODER_H
#define STAGES_FLOW_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/config/recipe.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/networks/t5_encoder.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/workspace.h"
#include "stages/stage.h"

struct encoder {
  struct kernels kernels;
  struct t5_encoder net;
  struct params params;
  struct arena declarations, weights; /* owned */
  struct workspace workspace;
  char hash[HASH_HEX_BYTES]; /* of shape and weights */
};

struct encoder_request {
  const struct stage *stage;      /* that uses it */
  const struct recipe_node *node; /* the embed node */
  int64_t vocabulary;             /* of the tokenizer */
  const char *tokenizer;          /* its hash */
};

/* Makes the encoder that the node's options describe. Local. MISMATCH when weights and shape do not
 * fit, the encoder has fewer tokens than the tokenizer or was trained with another one; DAMAGED
 * names the file. On failure there is nothing to close. The encoder refers to itself: it must not
 * be moved. */
enum status encoder_open(struct encoder *encoder, const struct encoder_request *request);

/* Accepts a zeroed encoder. Local. */
void encoder_close(struct encoder *encoder);

/* out[batch * positions, width] = final hidden states of the rows. A row does not depend on the
 * other rows. Local. */
enum status encoder_run(struct encoder *encoder, float *out, const struct t5_input *rows);

/* Bytes of activations of `batch` rows, without running. Local. */
enum status encoder_measure(struct encoder *encoder, size_t *bytes, int64_t batch,
                            int64_t positions);

#endif
