#include "pipeline/driver/memory_plan.h"

#include "pipeline/driver/activation_plan.h"

enum {
  VECTOR_BYTES = 4, /* of an element of vectors, whatever the others are */
  LOW_BYTES = 2,
  FETCHED_LAYERS = 2, /* in use, and on its way */
  AVERAGE_BYTES = 4,
  SLAB_BYTES = 16 << 20, /* of working gradients */
  GRAM_ROWS = 128,
  TILE_ROWS = 512,
  SLICES = 16,
  FAST_ROWS = 16,          /* rows for each column: Gram matrices in F32 */
  PROGRAM_BYTES = 40 << 20 /* code, libraries, message buffers: measured */
};

const char *memory_account_name(enum memory_account account) {
  static const char *const names[] = {
#define MEMORY(name, what) #name,
#include "pipeline/driver/memory_accounts.def"
#undef MEMORY
  };
  return names[account];
}

const char *memory_account_meaning(enum memory_account account) {
  static const char *const meanings[] = {
#define MEMORY(name, what) what,
#include "pipeline/driver/memory_accounts.def"
#undef MEMORY
  };
  return meanings[account];
}

int64_t memory_plan_all(const struct memory_plan *plan) {
  int64_t all = 0;
  for (int i = 0; i < MEMORY_ACCOUNTS; i++) all += plan->bytes[i];
  return all;
}

/* The sum of the left half waits while the right half is made, unless that is one leaf. */
int64_t memory_tree_depth(int64_t leaves) {
  if (leaves <= 1) return 1;
  const int64_t left = memory_tree_depth((leaves + 1) / 2);
  const int64_t right = leaves / 2 > 1 ? 1 + memory_tree_depth(leaves / 2) : 1;
  return left > right ? left : right;
}

/* Elements by where they are: tables are cut over a group, everything else is on every rank. */
struct held {
  int64_t sliced, replicated;               /* of the network's type */
  int64_t sliced_vectors, vectors, derived; /* of F32 */
};

static struct held held_of(const struct training_layout *layout) {
  const struct network_count *tables = &layout->size.parts[NETWORK_TABLES];
  const struct network_count *layers = &layout->size.parts[NETWORK_LAYERS];
  const struct network_count *rest = &layout->size.parts[NETWORK_REST];
  return (struct held){.sliced = tables->matrices + tables->others,
                       .sliced_vectors = tables->vectors,
                       .replicated =
                           layers->matrices + layers->others + rest->matrices + rest->others,
                       .vectors = layers->vectors + rest->vectors,
                       .derived = layout->size.derived};
}

/* A student does not train its input table, which is its teacher's. */
static int64_t frozen(const struct training_layout *layout) {
  return layout->node->kind == KIND_DISTILL ? layout->size.largest : 0;
}

static bool fetches(const struct training_layout *layout) {
  return layout->node->options.zero == ZERO_3 && layout->ranks > 1;
}

/* Elements of the matrices of layers that a rank does not keep. */
static int64_t elsewhere(const struct training_layout *layout) {
  const int64_t matrices = layout->size.parts[NETWORK_LAYERS].matrices;
  return fetches(layout) ? matrices - matrices / layout->ranks : 0;
}

static int64_t fetched_bytes(const struct training_layout *layout) {
  const int64_t e = layout->narrow ? 2 : 4;
  return fetches(layout) ? FETCHED_LAYERS * e * layout->size.layer.matrices : 0;
}

static int64_t weight_bytes(const struct training_layout *layout, const struct held *held) {
  const int64_t e = layout->narrow ? 2 : 4;
  const int64_t replicated = held->replicated - elsewhere(layout);
  const int64_t one = e * (held->sliced / layout->group + replicated) +
                      VECTOR_BYTES * (held->sliced_vectors / layout->group + held->vectors);
  const bool two = layout->node->kind == KIND_DISTILL;
  const bool shares = layout->shape->options.method == METHOD_CFM; /* the input table */
  const int64_t teacher = one - (shares ? e * (frozen(layout) / layout->group) : 0);
  return one + (two ? teacher : 0) + e * held->derived;
}

/* Of `all` numbers of state those on the rank with most: an even share, or what belongs to the
 * largest tensor, `each` numbers an element. */
static int64_t owned(const struct training_layout *layout, int64_t all, int64_t each) {
  const int64_t share = all / layout->ranks;
  const int64_t largest = each * (layout->size.largest / layout->group);
  return share > largest || layout->ranks == 1 ? share : largest;
}

/* A tall matrix that is made orthogonal, twice, its square and a polynomial of it, and a sum of
 * squares over `pieces` of its rows. */
static int64_t muon_elements(int64_t rows, int64_t cols, int64_t pieces) {
  return 2 * rows * cols + (3 + memory_tree_depth(pieces)) * cols * cols;
}

/* The larger of the feed-forward layer's matrix and, where tables are matrices, the rows held. */
static int64_t muon_bytes(const struct training_layout *layout) {
  const int64_t d = layout->shape->options.width, f = network_inner_width(layout->shape);
  const int64_t rows = layout->shape->kind == KIND_AUTOENCODE ? f : 2 * f;
  const int64_t tables = layout->size.parts[NETWORK_TABLES].matrices;
  const int64_t E = layout->facts.latent_width, held = tables / layout->group;
  const int64_t layer = muon_elements(rows, d, 1);
  const int64_t table = tables ? muon_elements(held / E, E, training_layout_slices(layout)) : 0;
  return (int64_t)sizeof(float) * (layer > table ? layer : table);
}

static void add_state(struct memory_plan *plan, const struct training_layout *layout,
                      const struct held *held) {
  const struct options *o = &layout->node->options;
  const int64_t wide = held->sliced + held->replicated - frozen(layout);
  const int64_t all = wide + held->sliced_vectors + held->vectors;
  const int64_t moment = o->moments == MOMENTS_BF16 ? 2 : 4;
  int64_t matrices = 0;
  for (int part = 0; part < NETWORK_PARTS; part++) matrices += layout->size.parts[part].matrices;
  const int64_t single = o->optimizer == OPTIMIZER_MUON ? matrices : 0;
  plan->bytes[MEMORY_masters] = layout->narrow ? LOW_BYTES * owned(layout, wide, 1) : 0;
  plan->bytes[MEMORY_moments] = moment * owned(layout, 2 * all - single, 2);
  plan->bytes[MEMORY_averages] = o->ema > 0 ? AVERAGE_BYTES * owned(layout, all, 1) : 0;
  if (single > 0) plan->bytes[MEMORY_moments] += muon_bytes(layout);
}

/* Whether gradients are made beside the sums: always for bf16 ones, else where a sum exists. */
static bool makes_apart(const struct training_layout *layout) {
  const struct options *o = &layout->node->options;
  if (o->gradients == GRADIENTS_BF16) return true;
  return o->reductions == REDUCTIONS_CANONICAL && training_layout_steps(layout) > 1;
}

/* Tables with one use are given in tiles; the others are made whole. */
static bool makes_table(const struct training_layout *layout) {
  const struct options *o = &layout->shape->options;
  const bool tied = layout->shape->kind == KIND_AUTOENCODE || o->method == METHOD_AR ||
                    (o->method == METHOD_T5 && o->t5_shared_head);
  if (!tied && layout->node->kind != KIND_DISTILL) return false;
  return makes_apart(layout) || layout->group > 1;
}

static int64_t working_bytes(const struct training_layout *layout, const struct held *held) {
  int64_t bytes = 0;
  if (makes_apart(layout)) bytes += VECTOR_BYTES * network_count_all(&layout->size.layer);
  if (makes_table(layout)) bytes += VECTOR_BYTES * (held->sliced - frozen(layout));
  return (bytes + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
}

static int64_t gradient_bytes(const struct training_layout *layout, const struct held *held) {
  const struct options *o = &layout->node->options;
  const int64_t steps = training_layout_steps(layout), group = layout->group;
  const int64_t each = o->gradients == GRADIENTS_BF16 ? 2 : 4;
  const int64_t sliced = held->sliced + held->sliced_vectors - frozen(layout);
  const int64_t replicated =
      held->replicated + held->vectors + (frozen(layout) > 0 ? 0 : held->derived);
  if (o->reductions == REDUCTIONS_FAST && steps > 1) return each * (replicated + sliced / group);
  const int64_t depth = memory_tree_depth(steps);
  /* With one micro step only owners keep what is on every rank. */
  const int64_t kept = steps == 1 ? owned(layout, replicated, 0) : depth * replicated;
  const int64_t tables = steps == 1 ? memory_tree_depth(group) * (sliced / group) : depth * sliced;
  return each * (kept + tables);
}

/* The covariance of categorical noise: factor, gradient and scratch, in double (stages/flow). */
static int64_t setup_bytes(const struct training_layout *layout) {
  const int64_t d = layout->shape->options.width, square = d * d;
  if (layout->size.derived == 0) return 0;
  const int64_t slices = SLICES / layout->group > 0 ? SLICES / layout->group : 1;
  const bool fast = layout->facts.vocabulary >= FAST_ROWS * d;
  const int64_t gram =
      (memory_tree_depth(slices) + 1) * square * 8 + (fast ? 4 * square : d * 8 * GRAM_ROWS);
  return 20 * square + d * 12 * TILE_ROWS + gram + (frozen(layout) > 0 ? 0 : 4 * square);
}

/* In the type of its own node. */
static int64_t encoder_bytes(const struct training_layout *layout) {
  if (!layout->online) return 0;
  const int64_t n = training_layout_tokens(layout), T = layout->positions;
  const int64_t arrays = n * layout->facts.latent_width * (int64_t)sizeof(float);
  const bool narrow = training_layout_narrow(layout->online);
  return encoder_size_weight_bytes(&layout->encoder, narrow) +
         encoder_size_value_bytes(&layout->encoder, n / T, T, narrow) +
         (layout->pairs ? 2 : 1) * arrays;
}

struct memory_plan memory_plan_of(const struct training_layout *layout) {
  struct memory_plan plan = {{0}};
  const struct held held = held_of(layout);
  const struct activation_plan activations = activation_plan_of(layout);
  plan.bytes[MEMORY_weights] = weight_bytes(layout, &held);
  plan.bytes[MEMORY_fetched] = fetched_bytes(layout);
  add_state(&plan, layout, &held);
  plan.bytes[MEMORY_gradients] = gradient_bytes(layout, &held);
  plan.bytes[MEMORY_working] = working_bytes(layout, &held);
  plan.bytes[MEMORY_activations] = activations.values;
  plan.bytes[MEMORY_encoder] = encoder_bytes(layout);
  plan.bytes[MEMORY_head] = activations.head;
  plan.bytes[MEMORY_setup] = setup_bytes(layout);
  plan.bytes[MEMORY_program] = PROGRAM_BYTES;
  return plan;
}
