/* Single and half precision against double through a block that uses every layer of the trunk:
 * output and gradients by normalised square error, for each kernel table.
 */
#include <math.h>

#include "stages/model/layers/attention.h"
#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/dropout.h"
#include "stages/model/layers/embedding.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/layernorm.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/mse.h"
#include "stages/model/layers/relative_bias.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/rope.h"
#include "stages/model/layers/time_embedding.h"
#include "tests/common/tap.h"

enum { B = 2, T = 17, C = 24, H = 3, D = 8, P = 2, S = P + T, COUNT_MAX = 1 << 16 };

struct net {
  struct param *table, *tokens, *qkv, *gain, *bias_table, *out, *up, *down, *condition, *ln, *shift;
};

static void declare(struct net *net, struct params *params) {
  net->table = params_add_table(params, 11, C, PARAM_NORMAL, 1, "table");
  net->tokens = params_add_tokens(params, P, C, PARAM_NORMAL, 1, "tokens");
  net->qkv = params_add_matrix(params, 3 * C, C, PARAM_FAN_IN_NORMAL, 1, "qkv");
  net->gain = params_add_vector(params, D, PARAM_ONE, 0, "gain");
  net->bias_table = params_add_matrix(params, 8, H, PARAM_NORMAL, 1, "bias");
  net->out = params_add_matrix(params, C, C, PARAM_FAN_IN_NORMAL, 1, "out");
  net->up = params_add_matrix(params, 4 * C, C, PARAM_FAN_IN_NORMAL, 1, "up");
  net->down = params_add_matrix(params, C, 2 * C, PARAM_FAN_IN_NORMAL, 1, "down");
  net->condition = params_add_matrix(params, 3 * C, 8, PARAM_FAN_IN_NORMAL, 0.3, "condition");
  net->ln = params_add_vector(params, C, PARAM_ONE, 0, "ln");
  net->shift = params_add_vector(params, C, PARAM_NORMAL, 0.1, "shift");
}

static struct value *heads(struct tape *tape, const struct net *net, struct value *x,
                           struct attention_range *ranges) {
  struct value *qkv = linear_forward(tape, x, net->qkv, NULL);
  struct value *parts[2];
  static int32_t positions[B * S];
  for (int i = 0; i < B * S; i++) positions[i] = i % S < P ? -1 : i % S - P;
  for (int i = 0; i < 2; i++) {
    parts[i] = rmsnorm_forward(tape, tape_columns(tape, qkv, i * C, C), net->gain, H, 1e-6);
    parts[i] = rope_forward(
        tape, parts[i],
        &(struct rope){.heads = H, .theta = 100, .interleaved = i, .positions = positions});
  }
  attention_mask_causal(ranges, S, S);
  return attention_forward(
      tape, parts[0], parts[1], tape_columns(tape, qkv, 2 * C, C),
      &(struct attention){.batch = B,
                          .queries = S,
                          .keys = S,
                          .heads = H,
                          .head_dim = D,
                          .ranges = ranges,
                          .shared_ranges = true,
                          .bias = relative_bias_forward(tape, net->bias_table, S, S, 16, true)});
}

static struct value *forward(struct tape *tape, const struct net *net,
                             const struct random_stream *streams, struct attention_range *ranges) {
  static int32_t ids[B * T];
  static const double times[B] = {0.2, 0.9};
  for (int i = 0; i < B * T; i++) ids[i] = i * 7 % 11;
  struct value *text = embedding_forward(tape, ids, B * T, net->table);
  struct value *x = combine_rows(tape, combine_tokens(tape, net->tokens, NULL, NULL, B), text, B);
  struct value *time = time_embedding_forward(tape, times, B, 8, 100);
  struct value *condition = linear_forward(tape, time, net->condition, NULL);
  struct value *part[3];
  for (int i = 0; i < 3; i++) part[i] = tape_columns(tape, condition, i * C, C);
  struct value *y = rmsnorm_forward(tape, x, NULL, 1, 1e-6);
  y = heads(tape, net, modulate_forward(tape, y, part[0], part[1], S), ranges);
  y = dropout_forward(tape, linear_forward(tape, y, net->out, NULL), 0.1, streams, S);
  x = modulate_gate(tape, x, y, part[2], S);
  y = linear_forward(tape, layernorm_forward(tape, x, net->ln, net->shift, 1e-6), net->up, NULL);
  y = linear_forward(tape, feedforward_gated(tape, y, ACTIVATION_SILU), net->down, net->shift);
  y = feedforward_activation(tape, y, ACTIVATION_GELU);
  return combine_cut_rows(tape, combine_add(tape, combine_scale(tape, x, 0.5), y), B, P, T);
}

/* Output, loss and gradients of one run, all as doubles. */
struct outcome {
  int64_t count;
  double numbers[COUNT_MAX];
};

static void add(struct outcome *outcome, double number) {
  assert_true(outcome->count < COUNT_MAX);
  outcome->numbers[outcome->count++] = number;
}

static void add_gradients(struct outcome *outcome, const struct params *params, enum dtype sum) {
  for (int64_t p = 0; p < params->count; p++)
    for (int64_t i = 0; i < params->items[p]->rows * params->items[p]->cols; i++) {
      const void *gradient = params->items[p]->gradient;
      add(outcome,
          sum == DTYPE_F64 ? ((const double *)gradient)[i] : (double)((const float *)gradient)[i]);
    }
}

static void run(struct outcome *outcome, const char *name, enum dtype element) {
  static float target[B * T * C], output[B * T * C], weight[B * T];
  double loss[B * T];
  struct attention_range ranges[S];
  struct kernels kernels;
  struct arena declarations, arena, records;
  struct params params;
  struct net net;
  struct tape tape;
  const struct random_stream streams[B] = {random_open(1, "d", 0, 0), random_open(1, "d", 1, 0)};
  assert_ok(kernels_open(&kernels, name, element));
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&arena, "arena", 16 << 20));
  assert_ok(arena_init(&records, "records", 1 << 20));
  params_init(&params, &declarations);
  declare(&net, &params);
  params_bind(&params, &arena, element, true);
  params_initialise(&params, element, 5);
  tape_init(&tape, &kernels, &arena, &records);
  for (int i = 0; i < B * T; i++) weight[i] = 1;
  struct value *y = forward(&tape, &net, streams, ranges);
  mse_forward(&tape, loss, y, tape_input(&tape, target, B * T, C), weight);
  assert_ok(tape_backward(&tape, NULL, NULL));
  tape_output(&tape, output, y);
  outcome->count = 0;
  for (int i = 0; i < B * T * C; i++) add(outcome, (double)output[i]);
  for (int i = 0; i < B * T; i++) add(outcome, loss[i]);
  add_gradients(outcome, &params, kernels.sum);
  arena_free(&declarations);
  arena_free(&arena);
  arena_free(&records);
}

static void compare(const char *name, enum dtype element, double bound) {
  static struct outcome wide, narrow;
  double error = 0, size = 0;
  run(&wide, "reference", DTYPE_F64);
  run(&narrow, name, element);
  assert_int_equal(wide.count, narrow.count);
  for (int64_t i = 0; i < wide.count; i++) {
    error += (wide.numbers[i] - narrow.numbers[i]) * (wide.numbers[i] - narrow.numbers[i]);
    size += wide.numbers[i] * wide.numbers[i];
  }
  if (!(error <= bound * size))
    fail_msg("%s %s: square error %.3g of the square sum, the bound is %.3g", name,
             dtype_name(element), error / size, bound);
}

static void single_precision(void **state) {
  (void)state;
  compare("reference", DTYPE_F32, 1e-12);
  compare("cpu", DTYPE_F32, 1e-12);
}

static void half_precision(void **state) {
  (void)state;
  compare("reference", DTYPE_BF16, 1e-4);
  compare("cpu", DTYPE_BF16, 1e-4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_precision),
      cmocka_unit_test(half_precision),
  };
  return cmocka_run_group_tests_name("precision of the layers", tests, NULL, NULL);
}
