#include "tests/common/bench_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pipeline/base/random.h"
#include "stages/model/tape/workspace.h"
#include "stages/train/optimizer.h"
#include "tests/common/flop_count.h"

enum { DECLARATION_BYTES = 1 << 28, SLICES = 16 };

struct step {
  const struct bench_step_shape *shape;
  struct kernels cpu, kernels;
  struct params params;
  struct vocab vocab;
  struct flow flow;
  struct flow_batch batch;
  struct workspace workspace;
  struct optimizer optimizer;
  struct arena declarations, weights, state;
  double total[FLOW_PARTS];
  struct bench_step_times times;
};

static void require(enum status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "%s\n%s", error_message(), error_trace());
  exit(EXIT_FAILURE);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void make_batch(struct step *step) {
  const struct bench_step_shape *shape = step->shape;
  const int64_t rows = shape->rows, n = rows * shape->positions;
  const struct random_stream stream = random_open(5, "bench", 0, 0);
  struct arena *arena = &step->state;
  int32_t *tokens = arena_take(arena, (size_t)n * sizeof *tokens);
  int32_t *lengths = arena_take(arena, (size_t)rows * sizeof *lengths);
  int64_t *samples = arena_take(arena, (size_t)rows * sizeof *samples);
  float *embeddings = arena_take(arena, (size_t)(n * shape->embedding_width) * sizeof *embeddings);
  for (int64_t i = 0; i < n; i++)
    tokens[i] = (int32_t)random_below(stream, (uint64_t)i, (uint64_t)shape->vocabulary);
  random_fill_normal(embeddings, n * shape->embedding_width, stream, 0);
  for (int64_t row = 0; row < rows; row++) {
    lengths[row] = (int32_t)shape->positions;
    samples[row] = row;
  }
  step->batch = (struct flow_batch){.count = rows,
                                    .positions = shape->positions,
                                    .tokens = tokens,
                                    .lengths = lengths,
                                    .embeddings = shape->embedding_width ? embeddings : NULL,
                                    .samples = samples,
                                    .strata = samples,
                                    .stratum_count = rows,
                                    .step = 1};
}

static void bind(struct step *step) {
  const enum dtype element = step->kernels.element;
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&step->params, &measuring, element, true);
  require(arena_init(&step->weights, "weights", measuring.peak));
  params_bind(&step->params, &step->weights, element, true);
  params_initialise(&step->params, element, 4);
  step->times.parameters = params_count(&step->params);
  if (step->flow.kind->prepare) require(step->flow.kind->prepare(&step->flow));
}

/* All tensors belong to the one process. */
static void open_optimizer(struct step *step) {
  static struct comm world = {.rank = 0, .size = 1};
  static struct grid grid = {.world = &world};
  const size_t count = (size_t)step->params.count;
  const struct zero zero = {.grid = &grid,
                            .owner = arena_take_zeroed(&step->state, count * sizeof(int)),
                            .sliced = arena_take_zeroed(&step->state, count * sizeof(bool))};
  const struct optimizer_setup setup = {.options = &step->shape->options,
                                        .vocab = &step->vocab,
                                        .zero = &zero,
                                        .params = step->params.items,
                                        .count = step->params.count,
                                        .element = step->kernels.element,
                                        .kernels = "cpu"};
  require(optimizer_init(&step->optimizer, &setup, &step->state));
  optimizer_start(&step->optimizer);
}

static void open_step(struct step *step, const struct bench_step_shape *shape) {
  *step = (struct step){.shape = shape};
  require(arena_init(&step->declarations, "declarations", DECLARATION_BYTES));
  require(arena_init(&step->state, "state", (size_t)16 << 30)); /* reserved, little is touched */
  require(kernels_open(&step->cpu, "cpu", kernels_best_element()));
  flop_count_open(&step->kernels, &step->cpu);
  require(vocab_init(&step->vocab, NULL, shape->vocabulary, SLICES));
  params_init(&step->params, &step->declarations);
  step->flow = (struct flow){.kind = shape->kind,
                             .options = &shape->options,
                             .vocab = &step->vocab,
                             .kernels = &step->kernels,
                             .params = &step->params,
                             .positions = shape->positions,
                             .embedding_width = shape->embedding_width,
                             .seed = 3,
                             .bos = -1,
                             .eos = 1};
  require(shape->kind->init(&step->flow, &step->declarations));
  bind(step);
  open_optimizer(step);
  make_batch(step);
  require(workspace_init(&step->workspace, &step->kernels, "activations"));
  shape->kind->weights(&step->flow, &step->batch, step->total);
}

static enum status use_tape(void *context, struct tape *tape) {
  struct step *step = context;
  struct flow_losses losses = {{0}, {0}};
  flop_count_take();
  double start = now();
  TRY(step->flow.kind->loss(&step->flow, tape, &step->batch, step->total, &losses));
  step->times.forward = now() - start;
  step->times.flop = flop_count_take().forward;
  start = now();
  TRY(tape_backward(tape, NULL, NULL));
  step->times.backward = now() - start;
  step->times.flop += flop_count_take().backward;
  return STATUS_OK;
}

static void update(struct step *step) {
  const struct optimizer_update update = {.rate = 1e-4, .gradient_scale = 1};
  const double start = now();
  optimizer_begin(&step->optimizer);
  for (int64_t i = 0; i < step->params.count; i++) {
    bool finite;
    const struct gradients_sum sum = {step->params.items[i]->gradient, DTYPE_F32};
    if (step->optimizer.tensors[i].owned)
      require(optimizer_apply(&step->optimizer, i, &sum, &update, &finite));
  }
  step->times.optimizer = now() - start;
}

static double seconds(const struct bench_step_times *times) {
  return times->forward + times->backward + times->optimizer;
}

struct bench_step_times bench_step_run(const struct bench_step_shape *shape, int steps) {
  struct step step;
  struct bench_step_times best = {0};
  open_step(&step, shape);
  for (int i = 0; i <= steps; i++) {
    params_clear_gradients(&step.params, step.kernels.element);
    require(workspace_run(&step.workspace, use_tape, &step));
    update(&step);
    if (i == 1 || (i > 1 && seconds(&step.times) < seconds(&best))) best = step.times;
  }
  best.parameters = step.times.parameters;
  best.tokens = shape->rows * shape->positions;
  optimizer_free(&step.optimizer);
  workspace_free(&step.workspace);
  arena_free(&step.state);
  arena_free(&step.weights);
  arena_free(&step.declarations);
  return best;
}
