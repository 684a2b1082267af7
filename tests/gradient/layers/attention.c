/* Derivatives of attention under every mask, of its bias, and of rotary embedding. */
#include "stages/model/layers/attention.h"

#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/relative_bias.h"
#include "stages/model/layers/rope.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { B = 2, T = 6, H = 2, D = 4, WIDTH = H * D };

struct setting {
  struct arena declarations;
  struct params params;
  struct param *table;
  struct attention_range ranges[B * 2 * T];
  bool has_ranges, shared, bidirectional;
  int64_t keys;
  double scale;
};

static void declare(struct setting *setting) {
  *setting = (struct setting){.keys = T};
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
}

/* Self-attention: q, k, v are views of one value. */
static struct value *fused(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  struct setting *setting = context;
  (void)objective;
  struct value *parts[3];
  for (int i = 0; i < 3; i++) parts[i] = tape_columns(tape, inputs[0], i * WIDTH, WIDTH);
  struct attention attention = {.batch = B,
                                .queries = T,
                                .keys = T,
                                .heads = H,
                                .head_dim = D,
                                .scale = setting->scale,
                                .ranges = setting->has_ranges ? setting->ranges : NULL,
                                .shared_ranges = setting->shared};
  if (setting->table)
    attention.bias = relative_bias_forward(tape, setting->table, T, T, 5, setting->bidirectional);
  return attention_forward(tape, parts[0], parts[1], parts[2], &attention);
}

static void check_fused(struct setting *setting) {
  gradient_check(&(struct gradient_case){.build = fused,
                                         .context = setting,
                                         .inputs = {{B * T, 3 * WIDTH}},
                                         .params = &setting->params});
  arena_free(&setting->declarations);
}

static void full(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting);
  check_fused(&setting);
}

static void causal_shared(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting);
  setting.has_ranges = setting.shared = true;
  attention_mask_causal(setting.ranges, T, T);
  check_fused(&setting);
}

static void padding_of_each_sequence(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting);
  setting.has_ranges = true;
  attention_mask_padding(setting.ranges, T, 4);
  attention_mask_padding(setting.ranges + T, T, 0); /* sees nothing */
  check_fused(&setting);
}

static void prefix_both_kinds(void **state) {
  (void)state;
  struct setting setting;
  for (int causal = 0; causal < 2; causal++) {
    declare(&setting);
    setting.has_ranges = true;
    attention_mask_prefix(setting.ranges, T, 2, 5, causal);
    attention_mask_prefix(setting.ranges + T, T, 3, T, causal);
    check_fused(&setting);
  }
}

static void two_stream(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting);
  setting.has_ranges = setting.shared = true;
  attention_mask_two_stream(setting.ranges, T / 2, 2);
  check_fused(&setting);
}

/* Queries and keys of their own lengths and widths. */
static struct value *crossed(void *context, struct tape *tape, struct value *const *inputs,
                             double *objective) {
  struct setting *setting = context;
  (void)objective;
  return attention_forward(tape, inputs[0], tape_columns(tape, inputs[1], 0, WIDTH), inputs[2],
                           &(struct attention){.batch = B,
                                               .queries = 3,
                                               .keys = setting->keys,
                                               .heads = H,
                                               .head_dim = D,
                                               .ranges = setting->ranges,
                                               .shared_ranges = true});
}

static void two_causal_across(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting);
  setting.keys = 9;
  attention_mask_two_causal(setting.ranges, 3, 6, 3);
  gradient_check(
      &(struct gradient_case){.build = crossed,
                              .context = &setting,
                              .inputs = {{B * 3, WIDTH}, {B * 9, WIDTH + 1}, {B * 9, WIDTH}}});
  arena_free(&setting.declarations);
}

static void relative_bias(void **state) {
  (void)state;
  struct setting setting;
  for (int both = 0; both < 2; both++) {
    declare(&setting);
    setting.scale = 1;
    setting.bidirectional = both;
    setting.table = params_add_matrix(&setting.params, 8, H, PARAM_NORMAL, 1, "table");
    check_fused(&setting);
  }
}

static const int32_t positions[] = {0, 1, 2, 7, -1, 3, 0, 1, 2, 8, -1, 3};

static struct value *rotated(void *context, struct tape *tape, struct value *const *inputs,
                             double *objective) {
  (void)objective;
  const struct rope rope = {
      .heads = H, .theta = 100, .interleaved = *(const bool *)context, .positions = positions};
  return rope_forward(tape, tape_columns(tape, inputs[0], 3, WIDTH), &rope);
}

static void rope_both_pairings(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    bool interleaved = i;
    gradient_check(&(struct gradient_case){
        .build = rotated, .context = &interleaved, .inputs = {{B * T, WIDTH + 5}}});
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(full),
      cmocka_unit_test(causal_shared),
      cmocka_unit_test(padding_of_each_sequence),
      cmocka_unit_test(prefix_both_kinds),
      cmocka_unit_test(two_stream),
      cmocka_unit_test(two_causal_across),
      cmocka_unit_test(relative_bias),
      cmocka_unit_test(rope_both_pairings),
  };
  return cmocka_run_group_tests_name("derivatives of attention", tests, NULL, NULL);
}
