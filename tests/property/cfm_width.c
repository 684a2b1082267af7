/* Transfer of settings over widths: with cfm_base_width the size of every activation after a few
 * steps of Adam is the same at widths 32 to 256; without it, it is not (arXiv 2203.03466).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stages/flow/cfm_state.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/tape/workspace.h"
#include "stages/train/adam.h"
#include "tests/common/tap.h"

enum { ROWS = 4, POSITIONS = 16, VOCABULARY = 64, N = ROWS * POSITIONS, BASE = 32, STEPS = 10 };

enum place { INPUT, ATTENTION, FEEDFORWARD, LOGITS, PLACES };
static const char *const names[PLACES] = {"input", "attention", "feedforward", "logits"};

struct training {
  struct arena declarations, weights;
  struct workspace workspace;
  struct params params;
  struct options options;
  struct vocab vocab;
  struct kernels kernels;
  struct flow flow;
  struct flow_batch batch;
  float *first, *second; /* moments of all parameters */
  int32_t tokens[N], lengths[ROWS];
  int64_t samples[ROWS], strata[ROWS];
  double size[PLACES];
};

static void make_batch(struct training *t) {
  for (int i = 0; i < N; i++) t->tokens[i] = (i * i + 3 * i / POSITIONS) % VOCABULARY;
  for (int row = 0; row < ROWS; row++) {
    t->lengths[row] = POSITIONS;
    t->samples[row] = t->strata[row] = row;
  }
  t->batch = (struct flow_batch){.count = ROWS,
                                 .positions = POSITIONS,
                                 .tokens = t->tokens,
                                 .lengths = t->lengths,
                                 .samples = t->samples,
                                 .strata = t->strata,
                                 .stratum_count = ROWS,
                                 .step = 1};
}

static void set_options(struct options *options, int64_t width, int64_t base) {
  options_defaults(options);
  options->width = width;
  options->depth = 2;
  options->heads = width / 16;
  options->feedforward = 2 * width;
  options->cfm_condition = 16;
  options->cfm_base_width = base;
  options->cfm_weight_power = 0;
}

static void bind(struct training *t) {
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&t->params, &measuring, DTYPE_F32, true);
  const size_t moments = (size_t)(params_count(&t->params) * (int64_t)sizeof(float));
  assert_ok(arena_init(&t->weights, "weights", measuring.peak + 2 * moments + 256));
  params_bind(&t->params, &t->weights, DTYPE_F32, true);
  t->first = arena_take_zeroed(&t->weights, moments);
  t->second = arena_take_zeroed(&t->weights, moments);
  params_initialise(&t->params, DTYPE_F32, 1);
  assert_ok(flow_cfm.prepare(&t->flow));
}

static void open_training(struct training *t, int64_t width, int64_t base) {
  assert_ok(arena_init(&t->declarations, "declarations", 16 << 20));
  assert_ok(vocab_init(&t->vocab, NULL, VOCABULARY, 4));
  assert_ok(kernels_open(&t->kernels, "cpu", DTYPE_F32));
  params_init(&t->params, &t->declarations);
  set_options(&t->options, width, base);
  t->flow = (struct flow){.kind = &flow_cfm,
                          .options = &t->options,
                          .vocab = &t->vocab,
                          .kernels = &t->kernels,
                          .params = &t->params,
                          .positions = POSITIONS,
                          .seed = 3};
  assert_ok(flow_cfm.init(&t->flow, &t->declarations));
  bind(t);
  make_batch(t);
  assert_ok(workspace_init(&t->workspace, &t->kernels, "activations"));
}

static void close_training(struct training *t) {
  workspace_free(&t->workspace);
  arena_free(&t->weights);
  arena_free(&t->declarations);
}

static enum status use_loss(void *context, struct tape *tape) {
  struct training *t = context;
  struct flow_losses losses;
  double total[FLOW_PARTS] = {0};
  flow_cfm.weights(&t->flow, &t->batch, total);
  TRY(flow_cfm.loss(&t->flow, tape, &t->batch, total, &losses));
  return tape_backward(tape, NULL, NULL);
}

static void update(struct training *t, int step) {
  float *first = t->first, *second = t->second;
  for (int64_t i = 0; i < t->params.count; i++) {
    struct param *param = t->params.items[i];
    if (param->derived) continue;
    const struct adam adam = {.rate = 0.01 * param->rate,
                              .beta1 = .9,
                              .beta2 = .95,
                              .epsilon = 1e-12,
                              .gradient_scale = 1};
    adam_update(param->data, first, second, param->gradient, param_count(param), step, &adam);
    first += param_count(param);
    second += param_count(param);
  }
}

static void train(struct training *t) {
  for (int step = 1; step <= STEPS; step++) {
    t->batch.step = (uint32_t)step;
    params_clear_gradients(&t->params, DTYPE_F32);
    assert_ok(workspace_run(&t->workspace, use_loss, t));
    assert_ok(flow_cfm.complete_gradients(&t->flow));
    update(t, step);
    assert_ok(flow_cfm.prepare(&t->flow));
  }
}

static double root_mean_square(const struct value *value) {
  double sum = 0;
  const float *data = value->data;
  for (int64_t i = 0; data && i < value->rows * value->cols; i++)
    sum += (double)data[i] * (double)data[i];
  return sqrt(sum / (double)(value->rows * value->cols));
}

/* The activations of the first block, and the logits. */
static enum status use_sizes(void *context, struct tape *tape) {
  struct training *t = context;
  const struct cfm *cfm = t->flow.state;
  const struct cfm_transformer *net = &cfm->model.network;
  tape->recording = false;
  struct cfm_draw draw = cfm_draw(&t->flow, &t->batch, tape);
  struct value *y = cfm_noisy(&t->flow, tape, &t->batch, &draw);
  struct value *state = rmsnorm_forward(tape, y, NULL, 1, 1e-6);
  struct value *h = linear_forward(tape, state, net->input, net->input_bias);
  struct value *x = rmsnorm_forward(tape, h, NULL, 1, 1e-6);
  const struct sequence sequence = sequence_full(tape, ROWS, 0, POSITIONS);
  t->size[INPUT] = root_mean_square(h);
  t->size[ATTENTION] =
      root_mean_square(self_attention_forward(tape, &net->blocks[0].attention, x, &sequence));
  t->size[FEEDFORWARD] = root_mean_square(swiglu_forward(tape, &net->blocks[0].mlp, x));
  struct value *hidden = cfm_hidden(
      tape, &cfm->model, y, &(struct cfm_times){.from = draw.from, .to = draw.to}, ROWS, POSITIONS);
  t->size[LOGITS] = root_mean_square(linear_forward(tape, hidden, cfm->model.output, NULL));
  return tape->status;
}

/* The largest ratio of a place's sizes at widths 32 to 256. */
static double spread(int64_t base, double ratio[PLACES]) {
  double low[PLACES], high[PLACES], most = 0;
  for (int64_t width = 32; width <= 256; width *= 2) {
    struct training t = {.size = {0}};
    open_training(&t, width, base);
    train(&t);
    assert_ok(workspace_run(&t.workspace, use_sizes, &t));
    for (int i = 0; i < PLACES; i++) {
      printf("# base %2d width %3d %-12s %.4f\n", (int)base, (int)width, names[i], t.size[i]);
      low[i] = width == 32 ? t.size[i] : fmin(low[i], t.size[i]);
      high[i] = width == 32 ? t.size[i] : fmax(high[i], t.size[i]);
    }
    close_training(&t);
  }
  for (int i = 0; i < PLACES; i++) ratio[i] = high[i] / low[i];
  for (int i = 0; i < PLACES; i++) most = fmax(most, ratio[i]);
  return most;
}

static void sizes_are_flat_with_a_base_width(void **state) {
  (void)state;
  double ratio[PLACES];
  const double most = spread(BASE, ratio);
  if (most > 1.5) fail_msg("sizes differ by a factor of %.2f", most);
}

static void sizes_grow_without(void **state) {
  (void)state;
  double ratio[PLACES];
  spread(0, ratio);
  for (int i = 0; i < PLACES; i++) assert_true(ratio[i] > 1.6);
  assert_true(ratio[FEEDFORWARD] > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_are_flat_with_a_base_width),
                                     cmocka_unit_test(sizes_grow_without)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
