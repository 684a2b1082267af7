/* A training node, the network it trains, and how it is laid out over ranks. */
#ifndef PIPELINE_DRIVER_TRAINING_LAYOUT_H
#define PIPELINE_DRIVER_TRAINING_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/config/recipe.h"
#include "pipeline/driver/encoder_size.h"
#include "pipeline/driver/network_size.h"

struct training_layout {
  const struct recipe_node *node;  /* trained; borrowed */
  const struct recipe_node *shape; /* whose options shape the network: the node, or its base */
  struct network_facts facts;
  struct network_size size;
  const struct recipe_node *online; /* the embed node whose encoder runs in it; NULL: none */
  struct encoder_size encoder;      /* ... then */
  bool pairs;                       /* rows are a source and a target */
  int64_t positions;                /* tokens of a row */
  int64_t ranks;
  int64_t group; /* ranks of a vocabulary group */
  bool narrow;   /* weights and activations are bf16, otherwise F32 */
};

/* Whether a node trains. Local. */
bool training_layout_applies(const struct recipe_node *node);

/* The layout of a training node. Local. MISMATCH when what shapes it is not upstream. */
enum status training_layout_find(struct training_layout *layout, const struct recipe *recipe,
                                 const struct recipe_node *node);

/* The vocabulary of a tokenize node; that of T5 for a SentencePiece model, which is not read here.
 * Local. */
int64_t training_layout_vocabulary(const struct recipe *recipe, const struct recipe_node *tokens);

/* Whether a node that runs a network does so in bf16. Local. */
bool training_layout_narrow(const struct recipe_node *node);

/* Bytes of a token in the shards of a tokenize node. Local. */
int64_t training_layout_token_bytes(const struct recipe *recipe, const struct recipe_node *tokens);

/* Tokens of a micro-shard, and micro-shards that each rank works on in a step. Local. */
int64_t training_layout_tokens(const struct training_layout *layout);
int64_t training_layout_steps(const struct training_layout *layout);

/* Slices of the vocabulary that a rank holds. Local. */
int64_t training_layout_slices(const struct training_layout *layout);

#endif
