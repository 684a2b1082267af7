/* What `millrace plan` says of trainings equals what the stages declare and measure. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/activation_plan.h"
#include "pipeline/driver/step_plan.h"
#include "sharding/gradients.h"
#include "sharding/tree.h"
#include "stages/flow/model.h"
#include "stages/model/networks/t5_encoder.h"
#include "stages/model/tape/workspace.h"
#include "stages/train/optimizer.h"

/* Begun with the defaults of all nodes. */
static const char NODES_OF_RECIPE[] =
    "nodes:\n"
    "  tokens: {run: tokenize, input: x.txt, sequence_length: 192, vocabulary_size: 6000}\n"
    "  latents: {run: embed, encoder: random, from: tokens, encoder_width: 96}\n"
    "  elf: {run: pretrain, method: elf, from: [tokens, latents], width: 128, depth: 3, heads: 4,\n"
    "        elf_bottleneck: 48, optimizer: muon}\n"
    "  cfm: {run: pretrain, method: cfm, from: tokens, width: 192, depth: 2, heads: 3,\n"
    "        cfm_condition: 40, moments: bf16, gradients: bf16, ema: 0,\n"
    "        cfm_modulation_shared: true, cfm_qk_norm: false, cfm_clean_flag: true}\n"
    "  lean: {run: pretrain, method: cfm, from: tokens, width: 128, depth: 6, heads: 2,\n"
    "         feedforward: 384, recompute: true, moments: bf16,\n"
    "         cfm_weight_learned: true}\n"
    "  jumps: {run: distill, from: cfm, batch: 4, micro_shards: 2}\n"
    "  moves: {run: distill, from: cfm, batch: 4, micro_shards: 2, distill_loss: eulerian}\n"
    "  few: {run: distill, from: elf, batch: 4, micro_shards: 2}\n"
    "  again: {run: distill, from: lean, batch: 4, micro_shards: 2}\n"
    "  along: {run: distill, from: lean, batch: 4, micro_shards: 2, distill_loss: eulerian}\n"
    "  ar: {run: pretrain, method: ar, from: tokens, width: 160, depth: 4, heads: 2}\n"
    "  spans: {run: pretrain, method: t5, from: tokens, width: 96, depth: 3, heads: 3,\n"
    "          t5_decoder_depth: 2}\n"
    "  shared: {run: pretrain, method: t5, from: tokens, width: 128, depth: 2, heads: 2,\n"
    "           t5_shared_head: true, recompute: true}\n"
    "  codes: {run: autoencode, from: tokens, width: 96, depth: 2, heads: 2}\n";

static const char *precision; /* of all trainings: sizes are planned for either */

/* A training node as the stages open it, without memory for arrays. */
struct opened {
  struct recipe recipe;
  const struct recipe_node *node;
  struct training_layout layout;
  struct kernels kernels;
  struct vocab vocab;
  struct params params, teacher;
  struct flow flow;
  struct flow_batch batch;
  struct arena declarations;
  double total[FLOW_PARTS];
};

static void make_batch(struct opened *o) {
  const int64_t rows = o->node->options.batch / o->node->options.micro_shards;
  const int64_t n = rows * o->layout.positions;
  struct arena *arena = &o->declarations;
  int32_t *lengths = arena_take(arena, (size_t)rows * sizeof *lengths);
  int64_t *samples = arena_take(arena, (size_t)rows * sizeof *samples);
  for (int64_t i = 0; i < rows; i++) {
    lengths[i] = (int32_t)o->layout.positions;
    samples[i] = i;
  }
  const size_t latents = (size_t)(n * o->flow.embedding_width);
  o->batch = (struct flow_batch){.count = rows,
                                 .positions = o->layout.positions,
                                 .tokens = arena_take_zeroed(arena, (size_t)n * sizeof(int32_t)),
                                 .lengths = lengths,
                                 .embeddings = arena_take_zeroed(arena, latents * sizeof(float)),
                                 .samples = samples,
                                 .strata = samples,
                                 .stratum_count = rows};
}

static void set_sink(struct opened *o) {
  static const struct param_sink sink;
  for (int64_t i = 0; i < o->params.count; i++)
    if (o->params.items[i]->sliced) o->params.items[i]->sink = &sink;
}

static void open_node(struct opened *o, const char *name) {
  struct text text = {0};
  *o = (struct opened){0};
  assert_ok(text_format(&text, "name: plan\ndefaults: {batch: 4, micro_shards: 2, precision: %s}\n",
                        precision));
  assert_ok(text_add(&text, NODES_OF_RECIPE));
  assert_ok(recipe_parse(&o->recipe, "plan.yaml", &text, NULL, 0));
  text_free(&text);
  assert_ok(recipe_find(&o->node, &o->recipe, name));
  assert_ok(training_layout_find(&o->layout, &o->recipe, o->node));
  assert_ok(arena_init(&o->declarations, "declarations", 1 << 28));
  assert_ok(kernels_open(&o->kernels, "cpu", o->layout.narrow ? DTYPE_BF16 : DTYPE_F32));
  assert_ok(vocab_init(&o->vocab, NULL, o->layout.facts.vocabulary, MODEL_VOCABULARY_SLICES));
  const bool distils = o->node->kind == KIND_DISTILL;
  params_init(&o->params, &o->declarations);
  params_init(&o->teacher, &o->declarations);
  o->flow = (struct flow){.kind = model_kind(o->layout.shape),
                          .options = &o->layout.shape->options,
                          .distill = distils ? &o->node->options : NULL,
                          .teacher = distils ? &o->teacher : NULL,
                          .vocab = &o->vocab,
                          .kernels = &o->kernels,
                          .params = &o->params,
                          .positions = o->layout.positions,
                          .embedding_width = o->layout.facts.latent_width,
                          .bos = -1,
                          .eos = 1};
  assert_ok(o->flow.kind->init(&o->flow, &o->declarations));
  set_sink(o);
  make_batch(o);
}

static void close_node(struct opened *o) {
  arena_free(&o->declarations);
  recipe_free(&o->recipe);
}

static const char *const names[] = {"elf", "cfm", "lean", "ar", "codes", "spans", "shared"};
enum { NODES = sizeof names / sizeof *names };

static void parameters_are_those_declared(void **state) {
  (void)state;
  for (int i = 0; i < NODES; i++) {
    struct opened o;
    open_node(&o, names[i]);
    assert_int_equal(network_size_all(&o.layout.size), params_count(&o.params));
    int64_t largest = 0;
    for (int64_t p = 0; p < o.params.count; p++)
      if (param_count(o.params.items[p]) > largest) largest = param_count(o.params.items[p]);
    assert_int_equal(o.layout.size.largest, largest);
    close_node(&o);
  }
}

static void assert_planned(const char *name, const char *account, int64_t planned,
                           size_t measured) {
  const double ratio = (double)planned / (double)measured;
  if (ratio < 0.95 || ratio > 1.05)
    fail_msg("%s, %s: planned %lld bytes, measured %zu", name, account, (long long)planned,
             measured);
}

static enum status use_tape(void *context, struct tape *tape) {
  struct opened *o = context;
  struct flow_losses losses = {{0}, {0}};
  TRY(o->flow.kind->loss(&o->flow, tape, &o->batch, o->total, &losses));
  return tape_backward(tape, NULL, NULL);
}

static void activations_are_those_measured(void **state) {
  (void)state;
  for (int i = 0; i < NODES; i++) {
    struct opened o;
    struct workspace workspace;
    size_t measured = 0;
    open_node(&o, names[i]);
    for (int part = 0; part < FLOW_PARTS; part++) o.total[part] = 1;
    assert_ok(workspace_init(&workspace, &o.kernels, "activations"));
    assert_ok(workspace_measure(&workspace, &measured, use_tape, &o));
    const struct activation_plan plan = activation_plan_of(&o.layout);
    assert_planned(names[i], "activations", plan.values + plan.head, measured);
    workspace_free(&workspace);
    close_node(&o);
  }
}

/* Every row may be a jump: a plan must be enough for that, and not much more. */
static void distillation_is_planned_for_jumps_alone(void **state) {
  (void)state;
  static const char *const distilled[] = {"jumps", "moves", "few", "again", "along"};
  for (int i = 0; i < 5; i++) {
    struct opened o;
    struct workspace workspace;
    size_t measured = 0;
    open_node(&o, distilled[i]);
    for (int part = 0; part < FLOW_PARTS; part++) o.total[part] = 1;
    assert_ok(workspace_init(&workspace, &o.kernels, "activations"));
    assert_ok(workspace_measure(&workspace, &measured, use_tape, &o));
    const struct activation_plan plan = activation_plan_of(&o.layout);
    const double ratio = (double)(plan.values + plan.head) / (double)measured;
    printf("# %s: planned %.3f of what was measured\n", distilled[i], ratio);
    assert_true(ratio > 0.95 && ratio < 1.25);
    workspace_free(&workspace);
    close_node(&o);
  }
}

static size_t state_bytes(struct opened *o, struct zero *zero) {
  struct arena measuring;
  struct optimizer optimizer;
  arena_measure(&measuring, "optimizer");
  assert_ok(optimizer_init(&optimizer,
                           &(struct optimizer_setup){.options = &o->node->options,
                                                     .vocab = &o->vocab,
                                                     .zero = zero,
                                                     .params = o->params.items,
                                                     .count = o->params.count,
                                                     .element = o->kernels.element,
                                                     .kernels = "cpu"},
                           &measuring));
  return measuring.peak;
}

static size_t sum_bytes(struct opened *o, struct grid *grid, struct zero *zero) {
  struct arena measuring;
  struct gradients *gradients;
  struct gradients_tensor *tensors =
      arena_take_zeroed(&o->declarations, (size_t)o->params.count * sizeof *tensors);
  for (int64_t i = 0; i < o->params.count; i++)
    tensors[i] = (struct gradients_tensor){.count = param_count(o->params.items[i]),
                                           .vocab = o->params.items[i]->sliced ? &o->vocab : NULL};
  const bool narrow = o->node->options.gradients == GRADIENTS_BF16;
  arena_measure(&measuring, "gradients");
  assert_ok(gradients_init(&gradients,
                           &(struct gradients_setup){.grid = grid,
                                                     .zero = zero,
                                                     .tensors = tensors,
                                                     .count = o->params.count,
                                                     .dtype = narrow ? DTYPE_BF16 : DTYPE_F32},
                           &measuring));
  return measuring.peak;
}

static void other_accounts_are_those_measured(void **state) {
  (void)state;
  for (int i = 0; i < NODES; i++) {
    struct opened o;
    struct arena weights;
    open_node(&o, names[i]);
    struct comm world = {.rank = 0, .size = 1};
    struct grid grid = {.world = &world,
                        .group = world,
                        .across = world,
                        .micro_shards = 2,
                        .shards = {0, 2},
                        .canonical = true};
    const size_t count = (size_t)o.params.count;
    struct zero zero = {.grid = &grid,
                        .owner = arena_take_zeroed(&o.declarations, count * sizeof(int)),
                        .sliced = arena_take_zeroed(&o.declarations, count * sizeof(bool))};
    struct memory_plan plan = memory_plan_of(&o.layout);
    arena_measure(&weights, "weights");
    params_bind(&o.params, &weights, o.kernels.element, false);
    assert_planned(names[i], "weights", plan.bytes[MEMORY_weights], weights.peak);
    assert_planned(names[i], "gradients", plan.bytes[MEMORY_gradients],
                   sum_bytes(&o, &grid, &zero));
    if (o.node->options.optimizer != OPTIMIZER_MUON)
      assert_planned(names[i], "optimizer",
                     plan.bytes[MEMORY_masters] + plan.bytes[MEMORY_moments] +
                         plan.bytes[MEMORY_averages],
                     state_bytes(&o, &zero));
    close_node(&o);
  }
}

/* A T5 encoder that reads `rows` rows of `positions`. */
struct encoded {
  struct t5_encoder net;
  int64_t rows, positions;
};

static enum status use_encoder(void *context, struct tape *tape) {
  const struct encoded *encoded = context;
  const int32_t none = 0;
  const struct t5_input input = {
      .batch = encoded->rows, .positions = encoded->positions, .lengths = &none};
  tape->recording = tape->training = false;
  (void)t5_encoder_forward(tape, &encoded->net, &input);
  return tape->status;
}

static void assert_encoder(const struct encoder_size *size, enum dtype element) {
  struct arena declarations, weights;
  struct params params;
  struct kernels kernels;
  struct workspace workspace;
  size_t measured = 0;
  struct encoded encoded = {.rows = 3, .positions = 80};
  const struct t5_config config = {.vocabulary = size->vocabulary,
                                   .width = size->width,
                                   .heads = size->heads,
                                   .head_dim = size->inner / size->heads,
                                   .feedforward = size->feedforward,
                                   .depth = size->depth,
                                   .buckets = 32,
                                   .max_distance = 128,
                                   .epsilon = 1e-6,
                                   .gated = size->gated};
  const bool narrow = element == DTYPE_BF16;
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  params_init(&params, &declarations);
  t5_encoder_declare(&encoded.net, &params, &config, true);
  arena_measure(&weights, "weights");
  params_bind(&params, &weights, element, false);
  assert_planned("encoder", "weights", encoder_size_weight_bytes(size, narrow), weights.peak);
  assert_ok(kernels_open(&kernels, "cpu", element));
  assert_ok(workspace_init(&workspace, &kernels, "activations"));
  assert_ok(workspace_measure(&workspace, &measured, use_encoder, &encoded));
  assert_planned("encoder", size->gated ? "gated" : "values",
                 encoder_size_value_bytes(size, encoded.rows, encoded.positions, narrow), measured);
  workspace_free(&workspace);
  arena_free(&declarations);
}

static void encoders_are_those_declared(void **state) {
  (void)state;
  struct encoder_size size = {
      .vocabulary = 500, .width = 96, .heads = 3, .inner = 192, .feedforward = 224, .depth = 4};
  assert_encoder(&size, DTYPE_F32);
  size.gated = true;
  assert_encoder(&size, DTYPE_BF16);
}

/* Of a T5 encoder the shape is that of its config.json; without one, T5-small's. */
static void a_config_is_read(void **state) {
  (void)state;
  static const char config[] =
      "{\"vocab_size\": 200, \"d_model\": 24, \"d_kv\": 8, \"num_heads\": 2, \"d_ff\": 40, "
      "\"num_layers\": 3, \"feed_forward_proj\": \"gated-gelu\", \"model_type\": \"t5\"}";
  struct recipe_node embed = {.kind = KIND_EMBED};
  options_defaults(&embed.options);
  embed.options.encoder = ENCODER_T5;
  embed.options.encoder_path = ".";
  struct encoder_size size = encoder_size_of(NULL, &embed, 100);
  assert_int_equal(size.width, 512);
  assert_int_equal(size.depth, 6);
  assert_ok(file_write("config.json", config, sizeof config - 1));
  size = encoder_size_of(NULL, &embed, 100);
  assert_true(size.vocabulary == 200 && size.width == 24 && size.inner == 16 && size.heads == 2);
  assert_true(size.feedforward == 40 && size.depth == 3 && size.gated);
  assert_ok(file_remove("config.json"));
  /* 3 layers of q, k, v, o (4 x 24 x 16) and three of 24 x 40, twice; scores and sums 4 x 10 x 16
   */
  assert_true(encoder_size_flop(&size, 10) == 3 * (2.0 * (4 * 24 * 16 + 3 * 24 * 40) + 640));
}

static void trees_are_as_deep(void **state) {
  (void)state;
  for (int64_t leaves = 1; leaves < 300; leaves++)
    assert_int_equal(memory_tree_depth(leaves), tree_depth(leaves));
}

static int run_trainings(const char *with) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_are_those_declared),
      cmocka_unit_test(activations_are_those_measured),
      cmocka_unit_test(distillation_is_planned_for_jumps_alone),
      cmocka_unit_test(other_accounts_are_those_measured),
  };
  precision = with;
  return cmocka_run_group_tests_name(with, tests, NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(encoders_are_those_declared),
      cmocka_unit_test(a_config_is_read),
      cmocka_unit_test(trees_are_as_deep),
  };
  return run_trainings("fp32") + run_trainings("bf16") +
         cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
