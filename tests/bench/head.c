/* The vocabulary head of 200,019 tokens, 2,048 channels, 2,048 positions: forward and backward
 * beside its four products at the rate of large products, and the memory it takes beyond hidden
 * states, table and their gradients. */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/random.h"
#include "stages/model/layers/head.h"
#include "stages/model/tape/workspace.h"
#include "tests/common/bench.h"

enum { ROWS = 2048, WIDTH = 2048, VOCABULARY = 200019, SLICES = 16 };

struct bench {
  struct kernels kernels;
  struct vocab vocab;
  struct params params;
  struct param *table;
  struct arena declarations, weights;
  struct workspace workspace;
  float *x;
  int32_t targets[ROWS];
  float weight[ROWS];
  double loss[ROWS];
};

static void require(enum status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "%s\n%s", error_message(), error_trace());
  exit(EXIT_FAILURE);
}

static void open_bench(struct bench *b, int64_t vocabulary) {
  require(kernels_open(&b->kernels, "cpu", kernels_best_element()));
  require(vocab_init(&b->vocab, NULL, vocabulary, SLICES));
  require(arena_init(&b->declarations, "declarations", 1 << 16));
  params_init(&b->params, &b->declarations);
  b->table = params_add_table(&b->params, vocabulary, WIDTH, PARAM_FAN_IN_NORMAL, 1, "table");
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&b->params, &measuring, b->kernels.element, true);
  require(arena_init(&b->weights, "weights", measuring.peak));
  params_bind(&b->params, &b->weights, b->kernels.element, true);
  params_initialise(&b->params, b->kernels.element, 1);
  params_clear_gradients(&b->params, b->kernels.element);
  b->x = malloc((size_t)ROWS * WIDTH * sizeof *b->x);
  if (!b->x) exit(EXIT_FAILURE);
  random_fill_normal(b->x, (int64_t)ROWS * WIDTH, random_open(1, "bench", 0, 0), 0);
  for (int64_t i = 0; i < ROWS; i++) {
    b->targets[i] = (int32_t)(i * 97 % vocabulary);
    b->weight[i] = 1.0f / ROWS;
  }
  require(workspace_init(&b->workspace, &b->kernels, "activations"));
}

static enum status use_tape(void *context, struct tape *tape) {
  struct bench *b = context;
  struct value *x = tape_input(tape, b->x, ROWS, WIDTH);
  x->needs_gradient = true;
  struct head_result result = {.loss = b->loss};
  head_forward(tape, &result, x,
               &(struct head){
                   .vocab = &b->vocab, .w = b->table, .targets = b->targets, .weight = b->weight});
  return tape_backward(tape, NULL, NULL);
}

static void run_head(void *context) {
  struct bench *b = context;
  require(workspace_run(&b->workspace, use_tape, b));
}

/* Of two pieces of the table; the place of its gradient takes the result. */
static void run_product(void *context) {
  struct bench *b = context;
  const char *data = b->table->data;
  const void *second = data + ROWS * WIDTH * dtype_bytes(b->kernels.element);
  b->kernels.linear_forward(b->table->gradient, data, second, NULL, ROWS, WIDTH, WIDTH, WIDTH,
                            WIDTH);
}

int main(int count, char **words) {
  static struct bench b;
  const int64_t vocabulary = count > 1 ? strtoll(words[1], NULL, 10) : VOCABULARY;
  open_bench(&b, vocabulary);
  bench_head();
  const double product = 2.0 * ROWS * WIDTH * WIDTH;
  double rate = product / bench_seconds(run_product, &b, 5);
  const double flop = 8.0 * ROWS * WIDTH * (double)vocabulary;
  const double achieved = flop / bench_seconds(run_head, &b, 1);
  const double after = product / bench_seconds(run_product, &b, 5);
  rate = after > rate ? after : rate;
  bench_row("head_200k", achieved / 1e9, "GFLOP/s", achieved / rate, "gemm");
  const double given = 2.0 * ROWS * WIDTH * (double)dtype_bytes(b.kernels.element);
  const double extra = ((double)b.workspace.data.peak - given) / (1 << 20);
  bench_row("head_200k_memory", extra, "MiB", 128 / extra, "128 MiB");
  free(b.x);
  workspace_free(&b.workspace);
  arena_free(&b.weights);
  arena_free(&b.declarations);
  return EXIT_SUCCESS;
}
