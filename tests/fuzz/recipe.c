/* Recipes and --set: what is read can be written, read again and written the same. The first line
 * of an input is a setting (empty: none), the rest is YAML. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "pipeline/config/recipe.h"

void fuzz_make_seeds(void) {
  fuzz_seed_text(
      "\nname: t\nseed: 7\nranks: 2\ndefaults: {batch: 8, steps: 5}\nnodes:\n"
      "  tokens: {run: tokenize, input: [a.txt, \"b\\x\"], boundary: key, text_key: a.b}\n"
      "  ar: {run: pretrain, method: ar, from: tokens, learning_rate: 0.3}\n"
      "  text: {run: sample, from: [ar], temperature: 0.5}\n");
  fuzz_seed_text("cfm.steps=20\nname: t\nnodes:\n  tokens:\n    run: tokenize\n    input: x\n"
                 "  cfm:\n    run: pretrain\n    method: cfm\n    from: tokens\n"
                 "    cfm_lambda: 0.25\n  short: {run: distill, from: cfm}\n"
                 "  s: {run: sample, from: short, nfe: [1, 2, 4]}\n");
  fuzz_seed_text("tokens.input=[b.txt, c.txt]\nname: &n t\nnodes:\n"
                 "  tokens: {run: tokenize, input: [*n, 'it''s'], tokenizer: byte}\n"
                 "  e: {run: embed, encoder: random, from: tokens}\n"
                 "  elf: {run: pretrain, method: elf, from: [e, tokens], optimizer: muon}\n"
                 "  ae: {run: autoencode, from: tokens}\n  r: {run: report, from: [elf]}\n");
}

static void check(const struct recipe *recipe) {
  struct text one = {0}, two = {0};
  struct recipe again;
  fuzz_require(recipe_write(&one, recipe) == STATUS_OK, "a recipe can be written");
  fuzz_require(recipe_parse(&again, "again", &one, NULL, 0) == STATUS_OK,
               "what was written can be read");
  fuzz_require(recipe_write(&two, &again) == STATUS_OK && !strcmp(one.bytes, two.bytes),
               "and is written the same");
  recipe_free(&again);
  text_free(&one);
  text_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct fuzz_input input = {bytes, count};
  struct text setting = {0}, yaml = {0};
  struct recipe recipe;
  fuzz_take_line(&setting, &input);
  fuzz_require(text_add_bytes(&yaml, input.bytes, input.count) == STATUS_OK, "memory suffices");
  const char *const settings[] = {setting.bytes};
  if (recipe_parse(&recipe, "fuzz.yaml", &yaml, settings, setting.length ? 1 : 0) == STATUS_OK) {
    check(&recipe);
    recipe_free(&recipe);
  }
  text_free(&setting);
  text_free(&yaml);
  return 0;
}
