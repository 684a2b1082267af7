/* Derivatives of sums, joins, cuts and learned rows. */
#include "stages/model/layers/combine.h"

#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { BATCH = 2, C = 3 };

static struct value *added(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  (void)context, (void)objective;
  struct value *twice = combine_add(tape, inputs[0], inputs[0]);
  struct value *scaled = combine_scale(tape, combine_add(tape, twice, inputs[1]), -1.5);
  return combine_add(tape, scaled, tape_columns(tape, inputs[2], 1, C));
}

static void sums(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = added, .inputs = {{4, C}, {4, C}, {4, C + 2}}});
}

static struct value *side_by_side(void *context, struct tape *tape, struct value *const *inputs,
                                  double *objective) {
  (void)context, (void)objective;
  return combine_columns(tape, tape_columns(tape, inputs[0], 1, 2), inputs[1]);
}

static void columns(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = side_by_side, .inputs = {{4, 5}, {4, 3}}});
}

static struct value *joined_and_cut(void *context, struct tape *tape, struct value *const *inputs,
                                    double *objective) {
  (void)context, (void)objective;
  struct value *view = tape_columns(tape, inputs[0], 0, C);
  struct value *joined = combine_rows(tape, view, inputs[1], BATCH);
  struct value *cut = combine_cut_rows(tape, joined, BATCH, 1, 4);
  return combine_add(tape, cut, combine_cut_rows(tape, joined, BATCH, 2, 4));
}

static void rows(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = joined_and_cut,
                                         .inputs = {{BATCH * 2, C + 1}, {BATCH * 4, C}}});
}

static const int64_t index_of[] = {4, 0, 3};

static struct value *picked(void *context, struct tape *tape, struct value *const *inputs,
                            double *objective) {
  (void)context, (void)objective;
  struct value *picked_rows = combine_pick_rows(tape, inputs[0], index_of, 3);
  return combine_add(tape, picked_rows, combine_cut_rows(tape, inputs[0], 1, 2, 3));
}

static void picks(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = picked, .inputs = {{5, C}}});
}

struct learned {
  struct param *tokens;
  const float *factor;
};

static struct value *with_tokens(void *context, struct tape *tape, struct value *const *inputs,
                                 double *objective) {
  const struct learned *learned = context;
  (void)objective;
  struct value *plain = combine_tokens(tape, learned->tokens, NULL, NULL, BATCH);
  struct value *rows_of_x =
      combine_tokens(tape, learned->tokens, learned->factor, inputs[0], BATCH);
  return combine_add(tape, plain, rows_of_x);
}

static void tokens(void **state) {
  (void)state;
  struct arena declarations;
  struct params params;
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  params_init(&params, &declarations);
  static const float factor[BATCH] = {0.5f, -2};
  struct learned learned = {params_add_tokens(&params, 4, C, PARAM_NORMAL, 1, "tokens"), factor};
  gradient_check(&(struct gradient_case){
      .build = with_tokens, .context = &learned, .inputs = {{BATCH, C}}, .params = &params});
  arena_free(&declarations);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums),  cmocka_unit_test(columns), cmocka_unit_test(rows),
      cmocka_unit_test(picks), cmocka_unit_test(tokens),
  };
  return cmocka_run_group_tests_name("derivatives of sums and joins", tests, NULL, NULL);
}
