/* Label smoothing and z-loss of objectives: what they add is what their formulas say of the logits,
 * the cross-entropy stays as it is, and validation has neither. */
#include <math.h>

#include "stages/model/networks/gpt.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { CE, Z_LOSS, SMOOTHING, V = TINY_VOCABULARY, T = TINY_POSITIONS };

static void start(struct tiny_flow *tiny, double smoothing, double z_loss) {
  tiny_flow_options(tiny);
  tiny->options.label_smoothing = smoothing;
  tiny->options.z_loss = z_loss;
  tiny_flow_open(tiny, &flow_ar);
  tiny_flow_bind(tiny);
}

static struct flow_losses losses_of(struct tiny_flow *tiny, double *total, bool validation) {
  struct flow_batch batch = tiny->batch;
  batch.validation = validation;
  for (int part = 0; part < FLOW_PARTS; part++) total[part] = 0;
  flow_ar.weights(&tiny->flow, &batch, total);
  const struct flow_losses losses = tiny_flow_loss(tiny, &batch, total, false);
  for (int part = 0; part < FLOW_PARTS; part++) assert_true(losses.weight[part] == total[part]);
  return losses;
}

/* The three sums over all predictions of a row, from its hidden states in double. */
static void add_row(const double *hidden, const double *table, int64_t width, const int32_t *next,
                    double sums[3]) {
  double logits[V], sum = 0, mean = 0;
  for (int v = 0; v < V; v++) {
    logits[v] = 0;
    for (int64_t c = 0; c < width; c++) logits[v] += hidden[c] * table[v * width + c];
    sum += exp(logits[v]);
    mean += logits[v] / V;
  }
  sums[CE] += log(sum) - logits[*next];
  sums[Z_LOSS] += log(sum) * log(sum);
  sums[SMOOTHING] += logits[*next] - mean;
}

static void expected_sums(struct tiny_flow *tiny, double sums[3]) {
  const struct gpt *net = tiny->flow.state;
  struct tape tape;
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = false;
  const struct value *hidden = gpt_forward(&tape, net, &tiny->vocab, tiny->tokens, TINY_ROWS, T);
  const double *data = hidden->data;
  for (int row = 0; row < TINY_ROWS; row++)
    for (int i = 0; i + 1 < tiny->lengths[row]; i++)
      add_row(data + (row * T + i) * hidden->cols, net->table->data, hidden->cols,
              tiny->tokens + row * T + i + 1, sums);
}

static void near(double found, double expected) {
  assert_true(fabs(found - expected) <= 1e-9 * fabs(expected));
}

static void what_is_added_is_what_the_formulas_say(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS], sums[3] = {0};
  start(&tiny, 0.1, 0.02);
  const struct flow_losses losses = losses_of(&tiny, total, false);
  expected_sums(&tiny, sums);
  assert_true(total[CE] > 0 && total[Z_LOSS] == total[CE] && total[SMOOTHING] == total[CE]);
  near(losses.sum[CE], sums[CE]);
  near(losses.sum[Z_LOSS], 0.02 * sums[Z_LOSS]);
  near(losses.sum[SMOOTHING], 0.1 * sums[SMOOTHING]);
  tiny_flow_close(&tiny);
}

static void each_alone_and_none(void **state) {
  (void)state;
  for (int on = 0; on < 3; on++) {
    struct tiny_flow tiny;
    double total[FLOW_PARTS];
    start(&tiny, on == 1 ? 0.1 : 0, on == 2 ? 0.02 : 0);
    const struct flow_losses losses = losses_of(&tiny, total, false);
    assert_true((losses.sum[SMOOTHING] != 0) == (on == 1) && (total[SMOOTHING] > 0) == (on == 1));
    assert_true((losses.sum[Z_LOSS] != 0) == (on == 2) && (total[Z_LOSS] > 0) == (on == 2));
    tiny_flow_close(&tiny);
  }
}

static void validation_has_neither(void **state) {
  (void)state;
  struct tiny_flow tiny, plain;
  double total[FLOW_PARTS];
  start(&tiny, 0.1, 0.02);
  start(&plain, 0, 0);
  const struct flow_losses losses = losses_of(&tiny, total, true);
  assert_true(total[CE] > 0 && total[Z_LOSS] == 0 && total[SMOOTHING] == 0);
  assert_true(losses.sum[CE] == losses_of(&plain, total, true).sum[CE]);
  tiny_flow_close(&tiny);
  tiny_flow_close(&plain);
}

static struct value *build(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  struct tiny_flow *tiny = context;
  struct flow_losses losses;
  double total[FLOW_PARTS] = {0};
  (void)inputs;
  flow_ar.weights(&tiny->flow, &tiny->batch, total);
  assert_ok(flow_ar.loss(&tiny->flow, tape, &tiny->batch, total, &losses));
  for (int part = 0; flow_ar.parts[part]; part++) *objective += losses.sum[part] / total[part];
  return NULL;
}

static void gradients_are_those_of_the_sum(void **state) {
  (void)state;
  struct tiny_flow tiny;
  tiny_flow_options(&tiny);
  tiny.options.label_smoothing = 0.2;
  tiny.options.z_loss = 0.05;
  tiny_flow_open(&tiny, &flow_ar);
  gradient_check(&(struct gradient_case){
      .build = build, .context = &tiny, .params = &tiny.params, .step = 1e-4});
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_added_is_what_the_formulas_say),
                                     cmocka_unit_test(each_alone_and_none),
                                     cmocka_unit_test(validation_has_neither),
                                     cmocka_unit_test(gradients_are_those_of_the_sum)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
