/* The configurations of a sweep: grids, lists and both, their names, and every wrong one (issue 6,
 * R-DLM-10). */
#include "tests/common/tap.h"

#include <string.h>

#include "pipeline/config/sweep.h"

#define HEAD                                                                                       \
  "name: t\nnodes:\n  tokens: {run: tokenize, input: [a.txt]}\n"                                   \
  "  base: {run: pretrain, method: cfm, from: tokens, steps: 10, warmup_steps: 2}\n"               \
  "  texts: {run: sample, from: base}\n  ar: {run: pretrain, method: ar, from: tokens}\n"          \
  "  scores: {run: evaluate, from: [texts, ar]}\n"                                                 \
  "  other: {run: pretrain, method: ar, from: tokens}\n"

static enum status parse(struct recipe *recipe, const char *sweep) {
  struct text text = {0};
  assert_ok(text_format(&text, HEAD "  s: {run: sweep, from: scores, %s}\n", sweep));
  const enum status status = recipe_parse(recipe, "r.yaml", &text, NULL, 0);
  text_free(&text);
  return status;
}

/* The settings of all configurations, one a line. */
static void expect(const char *sweep_text, const char *expected) {
  struct recipe recipe;
  struct sweep sweep;
  const struct recipe_node *node;
  struct text all = {0};
  assert_ok(parse(&recipe, sweep_text));
  assert_ok(recipe_find(&node, &recipe, "s"));
  assert_ok(sweep_expand(&sweep, &recipe, node));
  for (size_t i = 0; i < sweep.count; i++)
    assert_ok(text_format(&all, "%s\n", sweep.configurations[i].settings));
  assert_string_equal(all.bytes, expected);
  text_free(&all);
  sweep_free(&sweep);
  recipe_free(&recipe);
}

static void a_grid_gives_every_combination(void **state) {
  (void)state;
  expect("grid: {base.steps: [4, 6], base.cfm_lambda: [0, 0.50, 1]}",
         "base.steps=4 base.cfm_lambda=0\nbase.steps=4 base.cfm_lambda=0.5\n"
         "base.steps=4 base.cfm_lambda=1\nbase.steps=6 base.cfm_lambda=0\n"
         "base.steps=6 base.cfm_lambda=0.5\nbase.steps=6 base.cfm_lambda=1\n");
  expect("grid: {texts.nfe: [[1, 2], [4]]}", "texts.nfe=[1, 2]\ntexts.nfe=[4]\n");
  expect("grid: {base.optimizer: muon}", "base.optimizer=muon\n");
}

static void a_list_gives_each_of_its_configurations(void **state) {
  (void)state;
  expect("configurations: [{base.width: 32, base.depth: 2}, {base.steps: 20}, {}]",
         "base.width=32 base.depth=2\nbase.steps=20\n\n");
  expect("configurations: [{base.width: 32}, {base.depth: 2}], grid: {ar.seed: [1, 2]}",
         "base.width=32 ar.seed=1\nbase.width=32 ar.seed=2\nar.seed=1 base.depth=2\n"
         "ar.seed=2 base.depth=2\n");
}

static const char *name_of(char out[17], const char *sweep_text, size_t index) {
  struct recipe recipe;
  struct sweep sweep;
  const struct recipe_node *node;
  assert_ok(parse(&recipe, sweep_text));
  assert_ok(recipe_find(&node, &recipe, "s"));
  assert_ok(sweep_expand(&sweep, &recipe, node));
  strcpy(out, sweep.configurations[index].name);
  sweep_free(&sweep);
  recipe_free(&recipe);
  return out;
}

static void a_name_follows_from_the_values_alone(void **state) {
  (void)state;
  char one[17], other[17];
  assert_string_equal(name_of(one, "grid: {base.steps: [4, 6], base.cfm_lambda: [0, 1]}", 3),
                      name_of(other, "grid: {base.cfm_lambda: [1.0], base.steps: [8, 6]}", 1));
  assert_string_not_equal(name_of(one, "grid: {base.steps: [4, 6]}", 0),
                          name_of(other, "grid: {base.steps: [4, 6]}", 1));
}

static void writing_and_reading_is_identity(void **state) {
  (void)state;
  struct recipe first, second;
  struct text one = {0}, two = {0};
  assert_ok(parse(&first, "grid: {texts.nfe: [[1, 2], [4]]}, configurations: [{base.steps: 4, "
                          "base.seed: 2}, {base.steps: 5}]"));
  assert_ok(recipe_write(&one, &first));
  assert_ok(recipe_parse(&second, "one", &one, NULL, 0));
  assert_ok(recipe_write(&two, &second));
  assert_string_equal(one.bytes, two.bytes);
  text_free(&one);
  text_free(&two);
  recipe_free(&first);
  recipe_free(&second);
}

static void refused(const char *sweep, const char *message) {
  struct recipe recipe;
  assert_status(STATUS_MISMATCH, parse(&recipe, sweep));
  if (!strstr(error_message(), message)) fail_msg("'%s' in: %s", message, error_message());
}

static void wrong_sweeps_are_refused(void **state) {
  (void)state;
  refused("metric: base.loss", "r.yaml:9: node 's': a sweep needs `grid:` or `configurations:`");
  refused("grid: {base.stps: [1]}",
          "unknown option of a node that runs pretrain; did you mean 'steps'");
  refused("grid: {bas.steps: [1]}", "did you mean 'base'");
  refused("grid: {other.steps: [1]}", "the sweep is not from node 'other'");
  refused("grid: {steps: [1]}", "expected node.key, found 'steps'");
  refused("grid: {base.steps: []}", "the list of values is empty");
  refused("grid: {}", "grid: the list is empty");
  refused("configurations: []", "configurations: the list is empty");
  refused("grid: {base.steps: [1, x]}", "base: steps: expected an integer");
  refused("grid: {base.cfm_lambda: [2]}", "from 0 to 1");
  refused("grid: {base.cfm_lambda: [0.5, 0.50]}", "two configurations are the same");
  refused("configurations: [{base.steps: 10}, {}]", "two configurations are the same");
  refused("grid: {base.steps: [1]}, configurations: [{base.steps: 2}]",
          "'base.steps' is given twice for one configuration");
  refused("grid: {base.log_every: [1, 2]}", "cannot change what is made");
  refused("grid: {tokens.input: [\"a b\"]}", "cannot have spaces");
  refused("grid: [base.steps]", "expected node.key=[value, ...]");
  refused("configurations: [base.steps]", "expected node.key=value, found 'base.steps'");
  refused("grid: {base.seed: [1]}, goal: largest", "one of: lowest highest");
}

static void too_many_are_refused(void **state) {
  (void)state;
  struct text grid = {0};
  assert_ok(text_add(&grid, "grid: {base.seed: [0"));
  for (int i = 1; i <= 100; i++) assert_ok(text_format(&grid, ", %d", i));
  assert_ok(text_add(&grid, "], ar.seed: [0"));
  for (int i = 1; i <= 100; i++) assert_ok(text_format(&grid, ", %d", i));
  assert_ok(text_add(&grid, "]}"));
  refused(grid.bytes, "more than 10000 configurations");
  text_free(&grid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_grid_gives_every_combination),
      cmocka_unit_test(a_list_gives_each_of_its_configurations),
      cmocka_unit_test(a_name_follows_from_the_values_alone),
      cmocka_unit_test(writing_and_reading_is_identity),
      cmocka_unit_test(wrong_sweeps_are_refused),
      cmocka_unit_test(too_many_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
