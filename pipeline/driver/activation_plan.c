/* Letters: n tokens of a micro-shard, N of all members of a group, d width, f inner width, H heads,
 * E latent width, e bytes of an element. Sums are F32.
 */
#include "pipeline/driver/activation_plan.h"

enum {
  SUM_BYTES = 4,
  HEAD_BLOCK = 512, /* tokens */
  HEAD_TILE = 1024, /* rows of the vocabulary */
  LOOKUP_TILE = 64,
  CONTROL = 12 /* positions that ELF puts in front */
};

/* Bytes of the parts of a pass. */
struct demand {
  int64_t layer;      /* values and gradients of a layer, the mean of all */
  int64_t largest;    /* ... of the largest; 0 where all are alike */
  int64_t kept;       /* ... that is computed again: its input and output */
  int64_t at_end;     /* beside the layers when the backward pass ends */
  int64_t at_layers;  /* ... when it reaches the layers */
  int64_t head_width; /* what the head multiplies with the vocabulary */
};

struct letters {
  int64_t n, N, rows, d, f, H, E, e;
};

static struct letters letters_of(const struct training_layout *layout) {
  const struct options *o = &layout->shape->options;
  const int64_t n = training_layout_tokens(layout);
  return (struct letters){.n = n,
                          .N = n * layout->group,
                          .rows = n / layout->positions,
                          .d = o->width,
                          .f = network_inner_width(layout->shape),
                          .H = o->heads,
                          .E = layout->facts.latent_width,
                          .e = layout->narrow ? 2 : 4};
}

/* Norm, q k v, their norms and rotations, attention, projection, sum; norm, SwiGLU, sum. */
static int64_t block(const struct letters *l, int64_t n) {
  const int64_t values = n * l->e * (28 * l->d + 6 * l->f);
  return values + n * SUM_BYTES * (2 * l->d / l->H + 3 * l->H + 2);
}

/* Two norms are modulated besides. */
static struct demand of_cfm(const struct letters *l, const struct options *o) {
  const int64_t row = l->n * l->e * l->d, all = l->N * l->e * l->d;
  const int64_t noise = 2 * l->n * (int64_t)sizeof(float) * l->d;
  const int64_t plain = o->cfm_qk_norm ? 0 : 4 * row + 2 * l->H * l->n * SUM_BYTES;
  const int64_t modulation = l->rows * l->e * (o->cfm_modulation == MODULATION_BOUNDED ? 24 : 12);
  return (struct demand){.layer = block(l, l->n) - plain + 4 * row + modulation * l->d,
                         .kept = 2 * row,
                         .at_end = 16 * row + 2 * all + noise + l->d * LOOKUP_TILE * SUM_BYTES,
                         .at_layers = 11 * row + all + noise,
                         .head_width = l->d};
}

static struct demand of_ar(const struct letters *l) {
  const int64_t row = l->n * l->e * l->d, all = l->N * l->e * l->d;
  return (struct demand){.layer = block(l, l->n),
                         .kept = 2 * row,
                         .at_end = 4 * row + 2 * all,
                         .at_layers = 3 * row + all,
                         .head_width = l->d};
}

static int64_t greater(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Norm, q k v, attention, projection, sum; norm, gated feed-forward, sum. A layer of the decoder
 * also reads the encoder's positions. */
static struct demand of_t5(const struct letters *l, const struct training_layout *layout) {
  const struct options *o = &layout->shape->options;
  const struct network_spans spans = network_spans_of(o, layout->positions);
  const int64_t in = l->rows * spans.inputs, out = l->rows * spans.targets, d = l->d;
  const int64_t decoder = o->t5_decoder_depth ? o->t5_decoder_depth : o->depth;
  const int64_t own = l->e * (20 * d + 10 * l->f) + SUM_BYTES * (l->H + 2);
  const int64_t cross = l->e * 10 * d + SUM_BYTES * (l->H + 1);
  const int64_t encodes = in * own, decodes = out * (own + cross) + in * l->e * 4 * d;
  const int64_t row = (in + out) * l->e * d, heads = l->N / l->n * out * l->e * d;
  const int64_t looked_up = l->N / l->n * in * l->e * d;
  return (struct demand){.layer = (o->depth * encodes + decoder * decodes) / (o->depth + decoder),
                         .largest = greater(encodes, decodes),
                         .kept = 2 * row / 2,
                         .at_end = 4 * row + looked_up + heads,
                         .at_layers = 3 * row + heads,
                         .head_width = d};
}

static struct demand of_elf(const struct letters *l, int64_t bottleneck) {
  const int64_t wide = l->n + l->rows * CONTROL;
  const int64_t row = wide * l->e * l->d, latent = l->n * l->e * l->E, all = l->N * l->e * l->E;
  const int64_t squeezed = 2 * l->n * l->e * bottleneck;
  return (struct demand){.layer = block(l, wide),
                         .kept = 2 * row,
                         .at_end = 12 * row + 20 * latent + all + squeezed,
                         .at_layers = 10 * row + 17 * latent + all + squeezed,
                         .head_width = l->E};
}

/* A layer of one of the two stacks: it reads states and memory. */
static struct demand of_autoencoder(const struct letters *l) {
  const int64_t row = l->n * l->e * l->d, all = l->N * l->e * l->d;
  const int64_t dropped = l->n * (int64_t)sizeof(float) * l->d;
  return (struct demand){.layer = l->n * l->e * (40 * l->d + 4 * l->f) +
                                  l->n * SUM_BYTES * (3 * l->d / l->H + l->H + 3),
                         .kept = 2 * row,
                         .at_end = 18 * row + 2 * all + dropped,
                         .at_layers = 16 * row + all + dropped,
                         .head_width = l->d};
}

static struct demand demand_of(const struct training_layout *layout, const struct letters *l) {
  const struct options *o = &layout->shape->options;
  if (layout->shape->kind == KIND_AUTOENCODE) return of_autoencoder(l);
  if (o->method == METHOD_CFM) return of_cfm(l, o);
  if (o->method == METHOD_T5) return of_t5(l, layout);
  return o->method == METHOD_AR ? of_ar(l) : of_elf(l, o->elf_bottleneck);
}

/* Gradients of the hidden states of all members along the tree over slices, and the tiles. */
static int64_t head_bytes(const struct training_layout *layout, const struct letters *l,
                          int64_t width) {
  const int64_t slices = training_layout_slices(layout);
  const int64_t sums = (memory_tree_depth(slices) + 1) * l->N * width * SUM_BYTES;
  return sums + (SUM_BYTES + l->e) * HEAD_BLOCK * HEAD_TILE + width * HEAD_TILE * SUM_BYTES;
}

/* What a distillation takes besides: passes without gradients keep what leaves each layer. The
 * semigroup identity has two; others one, beside which values and tangents of the student, or a
 * difference, stand before the head. */
static void add_teacher(const struct training_layout *layout, const struct letters *l,
                        const struct demand *demand, int64_t *at_head, int64_t *fullest) {
  const struct options *o = &layout->node->options;
  const int64_t layers = layout->size.layers;
  if (layout->shape->options.method == METHOD_ELF) {
    /* Steps before the pass that is recorded, in less memory; their result and two inputs stay. */
    *fullest += 3 * l->n * l->e * l->E;
    *at_head += 3 * l->n * l->e * l->E;
    return;
  }
  const int64_t pass = demand->at_layers + layers * demand->kept / 2;
  const bool semigroup = o->distill_loss == IDENTITY_SEMIGROUP;
  const bool moves = o->distill_loss != IDENTITY_EULERIAN_DIFFERENCE;
  const int64_t whole = demand->at_layers + layers * demand->layer / 2;
  /* Layers that are not kept are moved one by one. */
  const bool keeps = moves && !layout->shape->options.recompute;
  const int64_t student = keeps ? whole : pass + demand->layer / 2;
  /* Nothing goes back: values and tangents of what stands before the layers, no gradients. */
  const int64_t before_head = semigroup ? 0 : *at_head + pass + 2 * student - demand->at_layers;
  /* The state in F32 twice, where it goes, its rows and those of the hidden states. */
  const int64_t between = l->n * l->d * (2 * (int64_t)sizeof(float) + 6 * l->e);
  const int64_t kept = semigroup ? 2 * pass + between : pass;
  *at_head += kept;
  *fullest = greater(*fullest + kept, before_head);
}

struct activation_plan activation_plan_of(const struct training_layout *layout) {
  const struct letters l = letters_of(layout);
  const struct demand demand = demand_of(layout, &l);
  const int64_t layers = layout->size.layers;
  const int64_t head = head_bytes(layout, &l, demand.head_width);
  int64_t at_head = demand.at_layers + layers * demand.layer / 2;
  int64_t fullest = demand.at_end + layers * demand.layer;
  if (layout->shape->options.recompute) {
    at_head = demand.at_layers + layers * demand.kept / 2;
    const int64_t again = greater(demand.layer, demand.largest);
    fullest = greater(demand.at_layers + layers * demand.kept + again,
                      demand.at_end + layers * demand.kept);
  }
  if (layout->node->kind == KIND_DISTILL) add_teacher(layout, &l, &demand, &at_head, &fullest);
  return (struct activation_plan){.values = fullest, .head = greater(at_head + head - fullest, 0)};
}
