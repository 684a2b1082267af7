/* Derivatives of linear maps, lookups and the tape's views, regions and frozen parameters. */
#include "stages/model/layers/linear.h"

#include "stages/model/layers/combine.h"
#include "stages/model/layers/embedding.h"
#include "stages/model/layers/feedforward.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

struct setting {
  struct arena declarations;
  struct params params;
  struct param *w, *b, *v;
};

static void declare(struct setting *setting, int64_t out, int64_t in) {
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  setting->w = params_add_matrix(&setting->params, out, in, PARAM_FAN_IN_NORMAL, 1, "w");
  setting->b = params_add_vector(&setting->params, out, PARAM_ZERO, 0, "b");
}

static struct value *with_bias(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return linear_forward(tape, inputs[0], setting->w, setting->b);
}

static void linear_with_bias(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 5, 7);
  gradient_check(&(struct gradient_case){
      .build = with_bias, .context = &setting, .inputs = {{3, 7}}, .params = &setting.params});
  arena_free(&setting.declarations);
}

/* One weight used three times, on views of one value, of which one part is used twice. */
static struct value *on_views(void *context, struct tape *tape, struct value *const *inputs,
                              double *objective) {
  const struct setting *setting = context;
  (void)objective;
  struct value *left = tape_columns(tape, inputs[0], 1, 4);
  struct value *right = tape_columns(tape, inputs[0], 4, 4);
  struct value *a = linear_forward(tape, left, setting->w, NULL);
  struct value *b = linear_forward(tape, right, setting->w, setting->b);
  struct value *joined = combine_add(tape, a, linear_forward(tape, b, setting->w, NULL));
  return combine_add(tape, tape_columns(tape, joined, 0, 3), tape_columns(tape, b, 1, 3));
}

static void linear_on_views(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 4, 4);
  gradient_check(&(struct gradient_case){
      .build = on_views, .context = &setting, .inputs = {{6, 9}}, .params = &setting.params});
  arena_free(&setting.declarations);
}

static const int32_t ids[] = {3, 0, 3, 4, 1};

static struct value *lookup(void *context, struct tape *tape, struct value *const *inputs,
                            double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return combine_add(tape, inputs[0], embedding_forward(tape, ids, 5, setting->w));
}

static void embedding_of_repeated_ids(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 6, 3);
  gradient_check(&(struct gradient_case){
      .build = lookup, .context = &setting, .inputs = {{5, 3}}, .params = &setting.params});
  arena_free(&setting.declarations);
}

struct region {
  const struct setting *setting;
  struct value *other;
};

static struct value *block(struct tape *tape, const void *arguments, struct value *input) {
  const struct region *region = arguments;
  struct value *hidden = linear_forward(tape, input, region->setting->w, region->setting->b);
  hidden = feedforward_activation(tape, hidden, ACTIVATION_SILU);
  hidden = linear_forward(tape, hidden, region->setting->w, NULL);
  return combine_add(tape, hidden, combine_add(tape, input, region->other));
}

static struct value *plain_blocks(void *context, struct tape *tape, struct value *const *inputs,
                                  double *objective) {
  (void)objective;
  const struct region region = {context, inputs[1]};
  struct value *x = block(tape, &region, block(tape, &region, inputs[0]));
  return combine_add(tape, x, inputs[1]);
}

static struct value *kept_blocks(void *context, struct tape *tape, struct value *const *inputs,
                                 double *objective) {
  (void)objective;
  const struct region region = {context, inputs[1]};
  struct value *x = inputs[0];
  for (int i = 0; i < 2; i++)
    x = tape_checkpoint(tape, block, &region, sizeof region, x, &inputs[1], 1);
  return combine_add(tape, x, inputs[1]);
}

static struct value *nested_block(struct tape *tape, const void *arguments, struct value *input) {
  const struct region *region = arguments;
  struct value *x = tape_checkpoint(tape, block, region, sizeof *region, input, &region->other, 1);
  return tape_checkpoint(tape, block, region, sizeof *region, x, &region->other, 1);
}

static struct value *nested_blocks(void *context, struct tape *tape, struct value *const *inputs,
                                   double *objective) {
  (void)objective;
  const struct region region = {context, inputs[1]};
  struct value *x =
      tape_checkpoint(tape, nested_block, &region, sizeof region, inputs[0], &inputs[1], 1);
  return combine_add(tape, x, inputs[1]);
}

static void regions_change_nothing(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 4, 4);
  struct gradient_case plain = {.build = plain_blocks,
                                .context = &setting,
                                .inputs = {{3, 4}, {3, 4}},
                                .params = &setting.params};
  struct gradient_case kept = plain, nested = plain;
  kept.build = kept_blocks;
  nested.build = nested_blocks;
  gradient_check(&plain);
  gradient_check(&kept);
  gradient_check(&nested);
  gradient_same(&plain, &kept);
  gradient_same(&plain, &nested);
  arena_free(&setting.declarations);
}

static struct value *past_frozen(void *context, struct tape *tape, struct value *const *inputs,
                                 double *objective) {
  const struct setting *setting = context;
  (void)objective;
  struct value *x = linear_forward(tape, inputs[0], setting->w, NULL);
  return linear_forward(tape, x, setting->v, setting->b);
}

static void frozen_weights_pass_gradients_on(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 4, 4);
  setting.v = params_add_matrix(&setting.params, 4, 4, PARAM_FAN_IN_NORMAL, 1, "v");
  setting.v->frozen = true;
  gradient_check(&(struct gradient_case){
      .build = past_frozen, .context = &setting, .inputs = {{3, 4}}, .params = &setting.params});
  assert_null(setting.v->gradient);
  arena_free(&setting.declarations);
}

static struct value *detached(void *context, struct tape *tape, struct value *const *inputs,
                              double *objective) {
  (void)context, (void)objective;
  return combine_add(tape, inputs[0], tape_detach(tape, inputs[1]));
}

static void detached_values_get_no_gradient(void **state) {
  (void)state;
  double gradients[12];
  gradient_compute(&(struct gradient_case){.build = detached, .inputs = {{2, 3}, {2, 3}}},
                   gradients);
  for (int i = 0; i < 6; i++) assert_true(gradients[i] != 0 && gradients[6 + i] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_with_bias),
      cmocka_unit_test(linear_on_views),
      cmocka_unit_test(embedding_of_repeated_ids),
      cmocka_unit_test(regions_change_nothing),
      cmocka_unit_test(frozen_weights_pass_gradients_on),
      cmocka_unit_test(detached_values_get_no_gradient),
  };
  return cmocka_run_group_tests_name("derivatives of linear maps, views and regions", tests, NULL,
                                     NULL);
}
