/* The input side of categorical flows: 200,019 tokens, 2,048 channels. What a token costs - noise,
 * its products with the noise factor, the row of the table, and their gradients - beside the four
 * products of the vocabulary head for a token; and what a step costs once - Gram matrix, Cholesky
 * factor, and the gradient of the table through them - beside the head of 2M tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "sharding/dense.h"
#include "stages/flow/cfm_state.h"
#include "stages/model/tape/workspace.h"
#include "tests/common/bench.h"

enum {
  B = 4,
  T = 512,
  TOKENS = B * T,
  WIDTH = 2048,
  VOCABULARY = 200019,
  SLICES = 16,
  SIDE = 2048
};

static const double STEP_TOKENS = 1 << 21;

struct bench {
  struct kernels kernels;
  struct vocab vocab;
  struct options options;
  struct params params;
  struct cfm cfm;
  struct flow flow;
  struct flow_batch batch;
  struct workspace workspace;
  struct arena declarations, weights;
  int32_t tokens[TOKENS], lengths[B];
  int64_t samples[B];
  void *dy; /* elements [TOKENS, WIDTH] */
  float given[CFM_TILE_ROWS * WIDTH];
  double matrix[(size_t)WIDTH * WIDTH], factor[(size_t)WIDTH * WIDTH];
};

static void require(enum status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "%s\n%s", error_message(), error_trace());
  exit(EXIT_FAILURE);
}

/* Gradients of the table go as far as the sums of the training would take them. */
static void add(void *context, struct param *param, int64_t first, int64_t count,
                const float *values) {
  (void)first;
  memcpy(((struct bench *)context)->given, values, (size_t)(count * param->cols) * sizeof *values);
}

static void give(void *context, struct param *param, int64_t member, int64_t first, int64_t count,
                 const void *values) {
  (void)member;
  if (values) add(context, param, first, count, values);
}

static void open_params(struct bench *b) {
  static struct param_sink sink;
  struct cfm *cfm = &b->cfm;
  sink = (struct param_sink){.context = b, .give = give, .add = add};
  cfm->factor = params_add_matrix(&b->params, WIDTH, WIDTH, PARAM_ZERO, 0, "factor");
  cfm->factor->derived = true;
  cfm->model.table =
      params_add_table(&b->params, b->vocab.size, WIDTH, PARAM_NORMAL, 0.02, "table");
  param_slice(cfm->model.table, 0, b->vocab.size);
  cfm->model.table->sink = &sink;
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&b->params, &measuring, b->kernels.element, false);
  require(arena_init(&b->weights, "weights", measuring.peak));
  params_bind(&b->params, &b->weights, b->kernels.element, false);
  params_initialise(&b->params, b->kernels.element, 1);
  cfm->factor->gradient = calloc((size_t)WIDTH * WIDTH, sizeof(float));
}

static void open_flow(struct bench *b) {
  options_defaults(&b->options);
  b->cfm.width = WIDTH;
  cfm_schedule_init(&b->cfm.schedule, b->vocab.size, b->options.cfm_lambda, 1);
  b->flow = (struct flow){.kind = &flow_cfm,
                          .options = &b->options,
                          .vocab = &b->vocab,
                          .kernels = &b->kernels,
                          .params = &b->params,
                          .positions = T,
                          .seed = 3,
                          .state = &b->cfm};
  require(cfm_noise_init(&b->flow, &b->declarations));
  require(cfm_noise_prepare(&b->flow));
}

static void make_batch(struct bench *b) {
  const struct random_stream stream = random_open(5, "bench", 0, 0);
  float *values = malloc((size_t)TOKENS * WIDTH * sizeof *values);
  b->dy = malloc((size_t)TOKENS * WIDTH * sizeof(float));
  if (!values || !b->dy || !b->cfm.factor->gradient) exit(EXIT_FAILURE);
  random_fill_normal(values, (int64_t)TOKENS * WIDTH, stream, 0);
  b->kernels.convert_from_float(b->dy, values, (int64_t)TOKENS * WIDTH);
  free(values);
  for (int64_t i = 0; i < TOKENS; i++)
    b->tokens[i] = (int32_t)random_below(stream, (uint64_t)i, (uint64_t)b->vocab.size);
  for (int64_t row = 0; row < B; row++) {
    b->lengths[row] = T;
    b->samples[row] = row;
  }
  b->batch = (struct flow_batch){.count = B,
                                 .positions = T,
                                 .tokens = b->tokens,
                                 .lengths = b->lengths,
                                 .samples = b->samples,
                                 .strata = b->samples,
                                 .stratum_count = B,
                                 .step = 1};
}

static void open_bench(struct bench *b, int64_t vocabulary) {
  require(kernels_open(&b->kernels, "cpu", kernels_best_element()));
  require(vocab_init(&b->vocab, NULL, vocabulary, SLICES));
  require(arena_init(&b->declarations, "declarations", (size_t)1 << 30)); /* little is touched */
  params_init(&b->params, &b->declarations);
  open_params(b);
  open_flow(b);
  make_batch(b);
  require(workspace_init(&b->workspace, &b->kernels, "activations"));
}

static enum status use_tape(void *context, struct tape *tape) {
  struct bench *b = context;
  const struct cfm_draw draw = cfm_draw(&b->flow, &b->batch, tape);
  struct value *y = cfm_noisy(&b->flow, tape, &b->batch, &draw);
  bool holds;
  void *dy = tape_gradient(tape, y, &holds);
  tape->kernels->copy(dy, b->dy, (int64_t)TOKENS * WIDTH);
  return tape_backward(tape, NULL, NULL);
}

static void run_input(void *context) {
  struct bench *b = context;
  require(workspace_run(&b->workspace, use_tape, b));
}

static void run_prepare(void *context) {
  require(cfm_noise_prepare(&((struct bench *)context)->flow));
}

static void run_gradients(void *context) {
  require(cfm_noise_gradients(&((struct bench *)context)->flow));
}

static void run_cholesky(void *context) {
  struct bench *b = context;
  memcpy(b->factor, b->matrix, sizeof b->matrix);
  require(dense_cholesky(b->factor, WIDTH, 0));
}

/* G = L L', what prepare factored. */
static void restore_gram(struct bench *b) {
  const double *l = b->cfm.noise.exact;
  for (int64_t i = 0; i < WIDTH; i++)
    for (int64_t j = 0; j <= i; j++) {
      double sum = 0;
      for (int64_t k = 0; k <= j; k++) sum += l[i * WIDTH + k] * l[j * WIDTH + k];
      b->matrix[i * WIDTH + j] = b->matrix[j * WIDTH + i] = sum;
    }
}

/* Of two pieces of the table; the place of dy takes the result. */
static void run_product(void *context) {
  struct bench *b = context;
  const char *data = b->cfm.model.table->data;
  const void *second = data + SIDE * WIDTH * dtype_bytes(b->kernels.element);
  b->kernels.linear_forward(b->dy, data, second, NULL, TOKENS, SIDE, WIDTH, SIDE, WIDTH);
}

static double product_seconds(struct bench *b) {
  return bench_seconds(run_product, b, 5) / (2.0 * TOKENS * SIDE * WIDTH);
}

int main(int count, char **words) {
  static struct bench b;
  const int64_t vocabulary = count > 1 ? strtoll(words[1], NULL, 10) : VOCABULARY;
  open_bench(&b, vocabulary);
  bench_head();
  double flop = product_seconds(&b);
  const double token = bench_seconds(run_input, &b, 3) / TOKENS;
  const double after = product_seconds(&b);
  if (after < flop) flop = after;
  const double head = flop * 8.0 * WIDTH * (double)vocabulary;
  bench_row("cfm_input_200k", token * 1e6, "us/token", token / head, "head products of a token");
  const double prepare = bench_seconds(run_prepare, &b, 1);
  restore_gram(&b);
  const double cholesky = bench_seconds(run_cholesky, &b, 1);
  const double gradients = bench_seconds(run_gradients, &b, 1), step = head * STEP_TOKENS;
  const char *against = "head products of 2M tokens";
  bench_row("cfm_gram_200k", prepare - cholesky, "s/step", (prepare - cholesky) / step, against);
  bench_row("cfm_cholesky", cholesky, "s/step", cholesky / step, against);
  bench_row("cfm_solve_200k", gradients, "s/step", gradients / step, against);
  free(b.dy), free(b.cfm.factor->gradient);
  workspace_free(&b.workspace);
  arena_free(&b.weights);
  arena_free(&b.declarations);
  return EXIT_SUCCESS;
}
