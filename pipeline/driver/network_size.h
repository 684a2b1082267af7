/* How many parameters a training node's network has, from its options: the arithmetic of the
 * networks' declarations (stages/model/networks), which this layer cannot see. A test compares
 * them.
 */
#ifndef PIPELINE_DRIVER_NETWORK_SIZE_H
#define PIPELINE_DRIVER_NETWORK_SIZE_H

#include <stdint.h>

#include "pipeline/config/recipe.h"

enum network_part { NETWORK_TABLES, NETWORK_LAYERS, NETWORK_REST, NETWORK_PARTS };

/* Elements in the network's own type, matrices among them, and vectors, which stay in F32. */
struct network_count {
  int64_t matrices, others, vectors;
};

struct network_size {
  struct network_count parts[NETWORK_PARTS]; /* tables are cut over the vocabulary group */
  struct network_count layer;                /* one of them */
  int64_t layers;
  int64_t largest; /* elements of the largest tensor */
  int64_t head;    /* elements that a token is multiplied by to predict */
  int64_t derived; /* elements computed from others: they have a gradient and no optimizer state */
};

/* What shapes a network beside the options of its node. */
struct network_facts {
  int64_t vocabulary, latent_width, positions;
};

/* Counts the network of a pretrain or autoencode node. Local. */
struct network_size network_size_of(const struct recipe_node *node,
                                    const struct network_facts *facts);

/* Positions of the encoder and of the decoder for a row of `positions` tokens from which a node of
 * method t5 takes spans (stages/flow/t5_spans.h). Local. */
struct network_spans {
  int64_t inputs, targets;
};
struct network_spans network_spans_of(const struct options *options, int64_t positions);

/* "tables", "layers" or "rest". Borrowed. Local. */
const char *network_part_name(enum network_part part);

static inline int64_t network_count_all(const struct network_count *count) {
  return count->matrices + count->others + count->vectors;
}

/* All parameters. Local. */
int64_t network_size_all(const struct network_size *size);

/* Inner width of the feed-forward layers. Local. */
int64_t network_inner_width(const struct recipe_node *node);

#endif
