/* Letters: V vocabulary, d width, f inner width, c condition width, E latent width, L layers. */
#include "pipeline/driver/network_size.h"

#include <math.h>

enum { BUCKETS = 32 /* of relative positions */ };
enum { SINUSOIDS = 256, CONTROL_TOKENS = 4, BALANCE_WIDTH = 32 };

const char *network_part_name(enum network_part part) {
  static const char *const names[] = {"tables", "layers", "rest"};
  return names[part];
}

int64_t network_inner_width(const struct recipe_node *node) {
  const struct options *o = &node->options;
  if (o->feedforward) return o->feedforward;
  return node->kind == KIND_AUTOENCODE ? 4 * o->width : 4 * o->width * 2 / 3;
}

/* q, k, v in one, their norms, the projection, and SwiGLU; biases where `bias` is 1. */
static struct network_count transformer_block(const struct options *o, int64_t f, int64_t bias) {
  const int64_t d = o->width;
  return (struct network_count){.matrices = 4 * d * d + 3 * d * f,
                                .vectors = 2 * (d / o->heads) + bias * (4 * d + 2 * f + d)};
}

/* Sinusoids through two layers. */
static void add_scalar_embedder(struct network_count *rest, int64_t width) {
  rest->matrices += SINUSOIDS * width + width * width;
  rest->vectors += 2 * width;
}

/* The learned weight of losses: two embedders and a row. */
static void add_balance(struct network_count *rest) {
  add_scalar_embedder(rest, BALANCE_WIDTH);
  add_scalar_embedder(rest, BALANCE_WIDTH);
  rest->others += BALANCE_WIDTH;
  rest->vectors++;
}

static void count_cfm(struct network_size *size, const struct recipe_node *node, int64_t V) {
  const struct options *o = &node->options;
  const int64_t d = o->width, c = o->cfm_condition;
  struct network_count *rest = &size->parts[NETWORK_REST];
  size->parts[NETWORK_TABLES].others = 2 * V * d;
  size->layer = transformer_block(o, network_inner_width(node), 0);
  if (!o->cfm_qk_norm) size->layer.vectors -= 2 * (d / o->heads);
  if (!o->cfm_modulation_shared) size->layer.matrices += 6 * d * c;
  size->layer.vectors += 6 * d;
  *rest = (struct network_count){.matrices = d * d + 2 * d * c, .vectors = 3 * d};
  if (o->cfm_modulation_shared) rest->matrices += 6 * d * c;
  add_scalar_embedder(rest, c);
  add_scalar_embedder(rest, c);
  if (o->cfm_weight_learned) add_balance(rest);
  if (o->cfm_clean_flag) rest->others += d;
  size->derived = d * d;
  size->largest = size->head = V * d;
}

static void count_ar(struct network_size *size, const struct recipe_node *node, int64_t V) {
  const int64_t d = node->options.width;
  size->parts[NETWORK_TABLES].others = V * d;
  size->layer = transformer_block(&node->options, network_inner_width(node), 0);
  size->layer.vectors += 2 * d;
  size->parts[NETWORK_REST].vectors = d;
  size->largest = size->head = V * d;
}

static void count_elf(struct network_size *size, const struct recipe_node *node,
                      const struct network_facts *facts) {
  const struct options *o = &node->options;
  const int64_t d = o->width, E = facts->latent_width, b = o->elf_bottleneck;
  struct network_count *rest = &size->parts[NETWORK_REST];
  size->parts[NETWORK_TABLES] =
      (struct network_count){.matrices = facts->vocabulary * E, .vectors = facts->vocabulary};
  size->layer = transformer_block(o, network_inner_width(node), 1);
  size->layer.vectors += 2 * d;
  *rest = (struct network_count){.matrices = 2 * E * E + b * E + d * b + 2 * E * d,
                                 .others = 3 * CONTROL_TOKENS * d,
                                 .vectors = E + d + E + d + E};
  add_scalar_embedder(rest, d);
  add_scalar_embedder(rest, d);
  size->largest = size->head = facts->vocabulary * E;
}

struct network_spans network_spans_of(const struct options *options, int64_t positions) {
  const int64_t noise = (int64_t)fmax(rint((double)positions * options->t5_noise), 1);
  const int64_t spans = (int64_t)fmax(rint((double)noise / options->t5_span), 1);
  return (struct network_spans){.inputs = positions - noise + spans + 1,
                                .targets = noise + spans + 1};
}

/* An encoder and a decoder; the tokens of a row that are predicted are those taken out. */
static void count_t5(struct network_size *size, const struct recipe_node *node,
                     const struct network_facts *facts) {
  const struct options *o = &node->options;
  const int64_t d = o->width, f = network_inner_width(node), V = facts->vocabulary;
  const int64_t decoder = o->t5_decoder_depth ? o->t5_decoder_depth : o->depth;
  size->parts[NETWORK_TABLES].others = (o->t5_shared_head ? 1 : 2) * V * d;
  size->layer = (struct network_count){.matrices = 8 * d * d + 3 * d * f, .vectors = 3 * d};
  size->layers = o->depth + decoder;
  size->parts[NETWORK_LAYERS] = (struct network_count){
      .matrices = size->layers * (4 * d * d + 3 * d * f) + decoder * 4 * d * d,
      .vectors = 2 * o->depth * d + 3 * decoder * d};
  size->parts[NETWORK_REST] =
      (struct network_count){.others = 2 * BUCKETS * o->heads, .vectors = 2 * d};
  size->largest = V * d;
  size->head = V * d * network_spans_of(o, facts->positions).targets / facts->positions;
}

/* Two stacks; every layer reads the states and the memory. */
static void count_autoencoder(struct network_size *size, const struct recipe_node *node,
                              int64_t V) {
  const int64_t d = node->options.width, f = network_inner_width(node);
  size->parts[NETWORK_TABLES].others = V * d;
  size->layer = (struct network_count){.matrices = 6 * d * d + 2 * d * f, .vectors = 3 * d};
  size->layers = 2 * node->options.depth;
  size->parts[NETWORK_REST] = (struct network_count){.others = 2 * d, .vectors = 2 * d};
  size->largest = size->head = V * d;
}

static void multiply(struct network_count *all, const struct network_count *one, int64_t times) {
  all->matrices = times * one->matrices;
  all->others = times * one->others;
  all->vectors = times * one->vectors;
}

struct network_size network_size_of(const struct recipe_node *node,
                                    const struct network_facts *facts) {
  struct network_size size = {.layers = node->options.depth};
  if (node->kind == KIND_AUTOENCODE)
    count_autoencoder(&size, node, facts->vocabulary);
  else if (node->options.method == METHOD_CFM)
    count_cfm(&size, node, facts->vocabulary);
  else if (node->options.method == METHOD_AR)
    count_ar(&size, node, facts->vocabulary);
  else if (node->options.method == METHOD_T5)
    count_t5(&size, node, facts);
  else
    count_elf(&size, node, facts);
  if (network_count_all(&size.parts[NETWORK_LAYERS]) == 0)
    multiply(&size.parts[NETWORK_LAYERS], &size.layer, size.layers);
  return size;
}

int64_t network_size_all(const struct network_size *size) {
  int64_t all = 0;
  for (int part = 0; part < NETWORK_PARTS; part++) all += network_count_all(&size->parts[part]);
  return all;
}
