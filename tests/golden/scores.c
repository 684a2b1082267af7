/* BLEU against sacreBLEU, ROUGE against rouge-score, stems against NLTK (tests/golden/scores.py).
 */
#include <string.h>

#include "stages/evaluate/bleu.h"
#include "stages/evaluate/porter.h"
#include "stages/evaluate/rouge.h"
#include "tests/common/tap.h"

static char *const pairs[][2] = {
#include "tests/golden/scores_texts.inc"
};
static const double golden[] = {
#include "tests/golden/scores.inc"
};
static const char *const stems[][2] = {
#include "tests/golden/scores_stems.inc"
};

enum { PAIRS = sizeof pairs / sizeof *pairs, CORPORA = 6 };

static struct text text_of(char *bytes) {
  return (struct text){.bytes = bytes, .length = strlen(bytes)};
}

/* Of pairs [first, end). */
static double bleu_of(int first, int end) {
  struct bleu bleu = {.length = 0};
  for (int i = first; i < end; i++) {
    const struct text text = text_of(pairs[i][0]), reference = text_of(pairs[i][1]);
    assert_ok(bleu_add(&bleu, &text, &reference));
  }
  const double score = bleu_score(&bleu);
  bleu_free(&bleu);
  return score;
}

static void bleu_equals_sacrebleu(void **state) {
  (void)state;
  static const int spans[CORPORA][2] = {{0, 1}, {0, 2}, {0, 10}, {0, PAIRS}, {60, 61}, {62, PAIRS}};
  for (int i = 0; i < CORPORA; i++) assert_near(bleu_of(spans[i][0], spans[i][1]), golden[i], 1e-9);
}

static void rouge_equals_rouge_score(void **state) {
  (void)state;
  struct rouge rouge = {.lowered = {0}};
  assert_int_equal(sizeof golden / sizeof *golden, CORPORA + ROUGE_KINDS * PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    double scores[ROUGE_KINDS];
    const struct text text = text_of(pairs[i][0]), reference = text_of(pairs[i][1]);
    assert_ok(rouge_score(scores, &rouge, &text, &reference));
    for (int kind = 0; kind < ROUGE_KINDS; kind++)
      assert_near(scores[kind], golden[CORPORA + ROUGE_KINDS * i + kind], 1e-9);
  }
  rouge_free(&rouge);
}

static void stems_equal_nltk(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
    char word[PORTER_BYTES] = {0};
    strcpy(word, stems[i][0]);
    const size_t length = porter_stem(word, strlen(word));
    if (length != strlen(stems[i][1]) || memcmp(word, stems[i][1], length))
      fail_msg("stem of %s: %.*s, NLTK has %s", stems[i][0], (int)length, word, stems[i][1]);
  }
}

/* A text is its own best translation; its words in another order are not. */
static void bleu_knows_order(void **state) {
  (void)state;
  struct bleu same = {.length = 0}, turned = {.length = 0};
  const struct text a = text_of((char[]){"one two three four five six"});
  const struct text b = text_of((char[]){"six five four three two one"});
  assert_ok(bleu_add(&same, &a, &a));
  assert_ok(bleu_add(&turned, &b, &a));
  assert_near(bleu_score(&same), 100, 1e-9);
  assert_true(bleu_score(&turned) < 30);
  bleu_free(&same);
  bleu_free(&turned);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bleu_equals_sacrebleu), cmocka_unit_test(rouge_equals_rouge_score),
      cmocka_unit_test(stems_equal_nltk), cmocka_unit_test(bleu_knows_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
