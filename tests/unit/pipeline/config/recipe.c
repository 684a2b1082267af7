/* Recipes: structure, overrides, inheritance, the round trip, and every class of error, each with
 * its line and the nearest known word (issue 2 "Bad input", R-DLM-10). */
#include "tests/common/tap.h"

#include <string.h>

#include "pipeline/config/recipe.h"

#define HEAD "name: t\nnodes:\n  tokens: {run: tokenize, input: [a.txt]}\n"

static enum status parse(struct recipe *recipe, const char *yaml, const char *setting) {
  struct text text = {0};
  assert_ok(text_add(&text, yaml));
  const enum status status = recipe_parse(recipe, "r.yaml", &text, &setting, setting ? 1 : 0);
  text_free(&text);
  return status;
}

static void options_come_from_defaults_nodes_and_settings(void **state) {
  (void)state;
  struct recipe recipe;
  assert_ok(parse(&recipe,
                  "name: t\nseed: 7\nranks: 2\ndefaults: {batch: 8, steps: 5}\nnodes:\n"
                  "  ar: {run: pretrain, method: ar, from: tokens, steps: 20}\n"
                  "  tokens: {run: tokenize, input: a.txt}\n"
                  "  text: {run: sample, from: [ar], temperature: 0.5}\n",
                  "ar.batch=16"));
  assert_int_equal(recipe.order[0], 1); /* tokens first */
  const struct recipe_node *ar = &recipe.nodes[0];
  assert_int_equal(ar->options.batch, 16);
  assert_int_equal(ar->options.steps, 20);
  assert_int_equal(ar->options.seed, 7);
  assert_int_equal(ar->options.ranks, 2);
  assert_int_equal(recipe.nodes[2].options.batch, 8);
  assert_int_equal(recipe.nodes[2].options.method, METHOD_AR); /* inherited */
  assert_int_equal(recipe.nodes[1].options.input.values[0][0], '/');
  recipe_free(&recipe);
}

static void settings_reach_the_top_and_the_defaults(void **state) {
  (void)state;
  struct recipe recipe;
  const char *yaml = HEAD "  ar: {run: pretrain, method: ar, from: tokens}\n";
  assert_ok(parse(&recipe, yaml, "steps=300"));
  assert_int_equal(recipe.nodes[1].options.steps, 300);
  recipe_free(&recipe);
  assert_ok(parse(&recipe, yaml, "name=other"));
  assert_string_equal(recipe.name, "other");
  recipe_free(&recipe);
  assert_ok(parse(&recipe, yaml, "tokens.input=[b.txt, c.txt]"));
  assert_int_equal(recipe.nodes[0].options.input.count, 2);
  recipe_free(&recipe);
}

static void writing_and_reading_is_identity(void **state) {
  (void)state;
  struct recipe first, second;
  struct text one = {0}, two = {0};
  assert_ok(parse(&first,
                  HEAD "  ar: {run: pretrain, method: ar, from: tokens, learning_rate: 0.3}\n"
                       "  text: {run: sample, from: ar}\n",
                  "tokens.input=[\"q\\x\", b]"));
  assert_ok(recipe_write(&one, &first));
  assert_ok(parse(&second, one.bytes, NULL));
  assert_ok(recipe_write(&two, &second));
  assert_string_equal(one.bytes, two.bytes);
  assert_true(first.nodes[1].options.learning_rate == second.nodes[1].options.learning_rate);
  recipe_free(&first), recipe_free(&second);
  text_free(&one), text_free(&two);
}

/* Characters that YAML refuses, or folds as line breaks, unless they are escaped. */
static void odd_characters_come_back(void **state) {
  (void)state;
  static const char odd[] = "/a\x01\x7f\xc2\x85\xc2\x8b\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf"
                            "\xef\xbf\xbf \xc2\xa0\xe2\x82\xac";
  struct recipe first, second;
  struct text one = {0}, setting = {0};
  assert_ok(text_format(&setting, "tokens.input=%s", odd));
  assert_ok(parse(&first, HEAD "  ar: {run: pretrain, method: ar, from: tokens}\n", setting.bytes));
  assert_ok(recipe_write(&one, &first));
  assert_ok(parse(&second, one.bytes, NULL));
  assert_string_equal(second.nodes[0].options.input.values[0], odd);
  recipe_free(&first), recipe_free(&second);
  text_free(&one), text_free(&setting);
}

static void upstream_finds_the_nearest(void **state) {
  (void)state;
  struct recipe recipe;
  assert_ok(parse(&recipe,
                  HEAD "  cfm: {run: pretrain, method: cfm, from: tokens}\n"
                       "  short: {run: distill, from: cfm}\n"
                       "  text: {run: sample, from: short}\n"
                       "  both: {run: report, from: [cfm, short]}\n",
                  NULL));
  const struct recipe_node *text, *both, *found;
  assert_ok(recipe_find(&text, &recipe, "text"));
  assert_ok(recipe_find(&both, &recipe, "both"));
  assert_ok(recipe_upstream(&found, &recipe, text, IN_TOKENIZE));
  assert_string_equal(found->name, "tokens");
  assert_ok(recipe_upstream(&found, &recipe, text, IN_PRETRAIN | IN_DISTILL));
  assert_string_equal(found->name, "short");
  assert_ok(recipe_upstream(&found, &recipe, text, IN_EMBED));
  assert_null(found);
  assert_status(STATUS_MISMATCH, recipe_upstream(&found, &recipe, both, IN_PRETRAIN | IN_DISTILL));
  assert_true(recipe_depends(&recipe, text, &recipe.nodes[0]));
  assert_false(recipe_depends(&recipe, &recipe.nodes[0], text));
  recipe_free(&recipe);
}

/* What is wrong, and a part of the message that must come. */
static const struct {
  const char *yaml, *setting, *message;
} bad[] = {
    {"", NULL, "r.yaml: the recipe is empty"},
    {"name: [", NULL, "r.yaml:2: not valid YAML"},
    {"- a\n", NULL, "r.yaml:1: expected a mapping"},
    {"name: t\nnods: {}\n", NULL, "r.yaml:2: unknown key 'nods'; did you mean 'nodes'"},
    {"name: t\nname: u\n", NULL, "r.yaml:2: key 'name' is given twice (first at r.yaml:1)"},
    {"nodes: {}\n", NULL, "no `name:`"},
    {"name: a/b\nnodes: {t: {run: tokenize}}\n", NULL, "'a/b' is not a usable name"},
    {"name: t\nnodes: {}\n", NULL, "no `nodes:`"},
    {"name: t\nnodes:\n  a: {}\n", NULL, "r.yaml:3: node 'a' has no `run:`"},
    {"name: t\nnodes:\n  a: {run: tokenise}\n", NULL, "did you mean 'tokenize'"},
    {HEAD "  tokens: {run: tokenize, input: b}\n", NULL, "r.yaml:4: node 'tokens' is given twice"},
    {HEAD "  e:\n    run: embed\n    from: tokns\n    encoder: random\n", NULL,
     "r.yaml:6: from: the recipe has no node 'tokns'; did you mean 'tokens'"},
    {HEAD "  e: {run: embed, encoder: random}\n", NULL,
     "needs `from:` with a node that runs tokenize"},
    {HEAD
     "  r: {run: report, from: tokens}\n  e: {run: embed, encoder: random, from: [tokens, r]}\n",
     NULL, "runs embed, which cannot read 'r', which runs report"},
    {"name: t\nnodes:\n  a: {run: distill, from: b}\n  b: {run: distill, from: c}\n"
     "  c: {run: distill, from: b}\n",
     NULL, "the nodes form a cycle: b -> c -> b"},
    {HEAD "  p:\n    run: pretrain\n    from: tokens\n    method: ar\n    stps: 3\n", NULL,
     "r.yaml:8: node 'p': unknown option 'stps'; did you mean 'steps'"},
    {HEAD "  p: {run: pretrain, from: tokens}\n", NULL, "r.yaml:4: node 'p' has no 'method'"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, input: [x]}\n", NULL,
     "option 'input' is not read by pretrain"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, muon_momentum: 0.9}\n", NULL,
     "option 'muon_momentum' is read only with optimizer=muon"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar}\n  s: {run: sample, from: p, nfe: 3}\n",
     NULL, "option 'nfe' is read only with method=elf|cfm"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, steps: many}\n", NULL,
     "r.yaml:4: steps: expected an integer"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, steps: }\n", NULL, "steps has no value"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, steps: 5, warmup_steps: 6}\n", NULL,
     "warmup_steps (6) is more than steps (5)"},
    {HEAD "  u: {run: tokenize, input: [b.txt], packing: pairs}\n", NULL,
     "r.yaml:4: node 'u': packing: pairs needs boundary: line (with target), key"},
    {HEAD "  u: {run: tokenize, input: [b.txt], packing: pairs, boundary: line}\n", NULL, "target"},
    {HEAD "  u: {run: tokenize, input: [b.txt], target: [c.txt]}\n", NULL,
     "option 'target' is read only with packing=pairs boundary=line"},
    {HEAD "  u: {run: tokenize, input: [b.txt], boundary: key, packing: pairs, "
          "source_length: 128}\n",
     NULL, "source_length (128) leaves no room for a target in sequence_length (128)"},
    {HEAD "  p: {run: pretrain, from: tokens, method: elf}\n", NULL,
     "r.yaml:4: node 'p': method elf trains on embeddings"},
    {HEAD "  e: {run: embed, encoder: random, from: tokens}\n"
          "  p: {run: pretrain, from: [tokens, e], method: cfm}\n",
     NULL, "r.yaml:5: node 'p': method cfm does not read the embeddings of 'e'"},
    {HEAD "  e: {run: embed, encoder: random, from: tokens}\n"
          "  u: {run: tokenize, input: [b.txt]}\n"
          "  p: {run: pretrain, from: [u, e], method: elf}\n",
     NULL, "'e' embeds the tokens of 'tokens', but the node trains on those of 'u'"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar}\n  d: {run: distill, from: p}\n", NULL,
     "r.yaml:5: node 'd': a generator of method ar cannot be distilled"},
    {HEAD "  p: {run: pretrain, from: tokens, method: t5}\n  s: {run: sample, from: p}\n", NULL,
     "r.yaml:5: node 's': a t5 is an encoder for embed nodes"},
    {HEAD "  p: {run: pretrain, from: tokens, method: t5}\n"
          "  e: {run: embed, encoder: random, from: [tokens, p]}\n",
     NULL, "r.yaml:5: node 'e': 'p' would not be read; set encoder: trained"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar}\n"
          "  e: {run: embed, encoder: trained, from: [tokens, p]}\n",
     NULL, "r.yaml:5: node 'e': encoder: trained needs a pretrain node of method t5"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar}\n  s: {run: sample, from: p}\n"
          "  e: {run: evaluate, from: s}\n",
     NULL, "r.yaml:6: node 'e': no judge"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar}\n  s: {run: sample, from: p}\n"
          "  q: {run: pretrain, from: tokens, method: ar}\n"
          "  e: {run: evaluate, from: [s, p, q]}\n",
     NULL, "both 'p' and 'q' could be the judge"},
    {HEAD "  l: {run: embed, encoder: random, from: tokens}\n"
          "  p: {run: pretrain, from: [tokens, l], method: elf}\n  s: {run: sample, from: p}\n"
          "  e: {run: evaluate, from: [s, p]}\n",
     NULL, "'p' is of method elf, but a judge is a pretrain node of method ar"},
    {HEAD "  u: {run: tokenize, input: [b.txt], boundary: package, packing: pairs}\n"
          "  p: {run: pretrain, from: u, method: ar}\n  s: {run: sample, from: p}\n"
          "  e: {run: evaluate, from: [s, p]}\n",
     NULL, "node 'e' scores targets of pairs, and 'p' draws none"},
    {HEAD "  p: {run: pretrain, from: tokens, method: ar, width: 18, heads: 2}\n", NULL,
     "r.yaml:4: node 'p': width (18) divided by heads (2) must be an even number"},
    {HEAD "  e: {run: embed, encoder: random, from: tokens, encoder_heads: 3}\n", NULL,
     "encoder_width (256) is not a multiple of encoder_heads (3)"},
    {HEAD "  e: {run: embed, encoder: random, from: tokens}\n"
          "  p: {run: pretrain, from: [tokens, e], method: elf, elf_guidance_min: 6}\n",
     NULL, "elf_guidance_min (6) is more than elf_guidance_max (5)"},
    {HEAD, "tokns.held_out=0.1", "--set tokns.held_out=0.1: the recipe has no node 'tokns'"},
    {HEAD, "tokens.held_out", "expected node.key=value"},
    {HEAD, "held_oot=0.1", "defaults: unknown option 'held_oot'; did you mean 'held_out'"},
    {HEAD, "steps=3", "defaults: no node of the recipe reads 'steps'"},
    {HEAD, "tokens.held_out=0.9", "expected a number from 0 to 0.5"},
};

static void errors_say_where_and_what(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct recipe recipe;
    assert_status(STATUS_MISMATCH, parse(&recipe, bad[i].yaml, bad[i].setting));
    if (!strstr(error_message(), bad[i].message))
      fail_msg("case %zu: '%s' is not in '%s'", i, bad[i].message, error_message());
  }
}

static void any_prefix_is_refused_or_read(void **state) {
  (void)state;
  static const char yaml[] =
      HEAD "  ar:\n    run: pretrain\n    method: ar\n    from: [tokens]\n    steps: 200\n";
  for (size_t length = 0; length < sizeof yaml; length++) {
    struct recipe recipe;
    struct text text = {0};
    assert_ok(text_add_bytes(&text, yaml, length));
    if (recipe_parse(&recipe, "r.yaml", &text, NULL, 0) == STATUS_OK) recipe_free(&recipe);
    text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_come_from_defaults_nodes_and_settings),
      cmocka_unit_test(settings_reach_the_top_and_the_defaults),
      cmocka_unit_test(writing_and_reading_is_identity),
      cmocka_unit_test(odd_characters_come_back),
      cmocka_unit_test(upstream_finds_the_nearest),
      cmocka_unit_test(errors_say_where_and_what),
      cmocka_unit_test(any_prefix_is_refused_or_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
