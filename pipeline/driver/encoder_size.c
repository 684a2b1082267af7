/* Letters: d width, i width of all heads together, f inner width of the feed-forward layers. */
#include "pipeline/driver/encoder_size.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/driver/network_size.h"

enum { BUCKETS = 32, VECTOR_BYTES = 4 };

static const struct encoder_size t5_small = {
    .vocabulary = 32128, .width = 512, .heads = 8, .inner = 512, .feedforward = 2048, .depth = 6};

static struct encoder_size of_config(const json_t *config) {
  const char *feedforward = NULL;
  json_int_t vocabulary, width, head_width, heads, inner, depth;
  if (json_unpack((json_t *)config, "{s:I, s:I, s:I, s:I, s:I, s:I, s?:s}", "vocab_size",
                  &vocabulary, "d_model", &width, "d_kv", &head_width, "num_heads", &heads, "d_ff",
                  &inner, "num_layers", &depth, "feed_forward_proj", &feedforward) != 0)
    return t5_small;
  return (struct encoder_size){.vocabulary = vocabulary,
                               .width = width,
                               .heads = heads,
                               .inner = head_width * heads,
                               .feedforward = inner,
                               .depth = depth,
                               .gated = feedforward && strncmp(feedforward, "gated", 5) == 0};
}

static struct encoder_size of_folder(const char *folder) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/config.json", folder) >= PATH_MAX) return t5_small;
  json_t *config = json_load_file(path, 0, NULL);
  const struct encoder_size size = config ? of_config(config) : t5_small;
  json_decref(config);
  return size;
}

/* The node's ids are those of the tokens, and may be a hundred more. */
static struct encoder_size of_node(const struct recipe_node *trained, int64_t vocabulary) {
  const struct options *o = &trained->options;
  return (struct encoder_size){.vocabulary = vocabulary,
                               .width = o->width,
                               .heads = o->heads,
                               .inner = o->width,
                               .feedforward = network_inner_width(trained),
                               .depth = o->depth,
                               .gated = true};
}

struct encoder_size encoder_size_of(const struct recipe *recipe, const struct recipe_node *embed,
                                    int64_t vocabulary) {
  const struct options *o = &embed->options;
  const struct recipe_node *trained = NULL;
  if (o->encoder == ENCODER_T5) return of_folder(o->encoder_path);
  if (o->encoder == ENCODER_TRAINED &&
      recipe_upstream(&trained, recipe, embed, IN_PRETRAIN) != STATUS_OK)
    error_clear(); /* recipe_check has the word */
  if (trained) return of_node(trained, vocabulary);
  return (struct encoder_size){.vocabulary = vocabulary,
                               .width = o->encoder_width,
                               .heads = o->encoder_heads,
                               .inner = o->encoder_width,
                               .feedforward = 4 * o->encoder_width,
                               .depth = o->encoder_depth};
}

/* Elements of the matrices of a layer. */
static int64_t layer_matrices(const struct encoder_size *s) {
  return s->width * (4 * s->inner + (s->gated ? 3 : 2) * s->feedforward);
}

double encoder_size_flop(const struct encoder_size *size, int64_t positions) {
  const double attention = 4.0 * (double)positions * (double)size->inner;
  return (double)size->depth * (2.0 * (double)layer_matrices(size) + attention);
}

int64_t encoder_size_weight_bytes(const struct encoder_size *size, bool narrow) {
  const int64_t elements =
      size->vocabulary * size->width + BUCKETS * size->heads + size->depth * layer_matrices(size);
  return (narrow ? 2 : 4) * elements + VECTOR_BYTES * size->width * (2 * size->depth + 1);
}

/* Norm, q, k, v, attention, projection, sum; norm, feed-forward, projection, sum. */
int64_t encoder_size_value_bytes(const struct encoder_size *size, int64_t rows, int64_t positions,
                                 bool narrow) {
  const int64_t n = rows * positions, e = narrow ? 2 : 4;
  const int64_t inner = (size->gated ? 5 : 2) * size->feedforward;
  const int64_t layer =
      n * e * (6 * size->width + 4 * size->inner + inner) + n * VECTOR_BYTES * (size->heads + 2);
  /* One layer's, and what left those before it. */
  return (2 + size->depth) * n * e * size->width + layer;
}
