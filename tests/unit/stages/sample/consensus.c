/* The candidate that the others agree with most, against plain recursion over all pairs. */
#include <stdbool.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/sample/consensus.h"
#include "tests/common/tap.h"

enum { CANDIDATES = 5, BATCH = 3, T = 9, END = 7, WORDS = 4, ROUNDS = 200 };

static int common(const int32_t *a, int n, const int32_t *b, int m) {
  if (n == 0 || m == 0) return 0;
  if (a[n - 1] == b[m - 1]) return 1 + common(a, n - 1, b, m - 1);
  const int one = common(a, n - 1, b, m), other = common(a, n, b, m - 1);
  return one > other ? one : other;
}

static int length(const int32_t *row, int source) {
  int end = source;
  while (end < T && row[end] != END) end++;
  return end - source;
}

static double agreement(const int32_t *a, const int32_t *b, int source) {
  const int n = length(a, source), m = length(b, source);
  return n + m ? 2.0 * common(a + source, n, b + source, m) / (n + m) : 1;
}

/* What a sampler drew, and what is kept of it. */
struct draws {
  int32_t tokens[CANDIDATES][BATCH][T], calls[CANDIDATES][BATCH];
  float confidence[CANDIDATES][BATCH][T];
  int32_t sources[BATCH];
  int32_t kept[BATCH][T], kept_calls[BATCH];
  float kept_confidence[BATCH][T];
};

static void draw(struct draws *draws, uint64_t round) {
  const struct random_stream stream = random_open(3, "draws", round, 0);
  uint64_t at = 0;
  for (int i = 0; i < BATCH; i++) draws->sources[i] = 1 + (int32_t)random_below(stream, at++, 3);
  for (int c = 0; c < CANDIDATES; c++)
    for (int i = 0; i < BATCH; i++) {
      draws->calls[c][i] = 1 + (int32_t)random_below(stream, at++, 100);
      for (int t = 0; t < T; t++) {
        const bool end = t >= draws->sources[i] && random_below(stream, at++, 6) == 0;
        draws->tokens[c][i][t] = end ? END : (int32_t)random_below(stream, at++, WORDS);
        draws->confidence[c][i][t] = (float)(c * BATCH * T + i * T + t);
      }
    }
}

static void choose(struct draws *draws) {
  struct consensus consensus = {0};
  struct consensus_texts kept = {&draws->kept[0][0], &draws->kept_confidence[0][0],
                                 draws->kept_calls};
  assert_ok(consensus_open(&consensus, CANDIDATES, BATCH, T, &kept));
  for (int c = 0; c < CANDIDATES; c++)
    consensus_keep(&consensus, c,
                   &(struct consensus_texts){&draws->tokens[c][0][0], &draws->confidence[c][0][0],
                                             draws->calls[c]},
                   BATCH);
  assert_ok(consensus_choose(&consensus, draws->sources, END, &kept, BATCH));
  consensus_close(&consensus);
}

static int best(const struct draws *draws, int text) {
  int chosen = 0;
  double most = -1;
  for (int c = 0; c < CANDIDATES; c++) {
    double sum = 0;
    for (int d = 0; d < CANDIDATES; d++)
      if (d != c)
        sum += agreement(draws->tokens[c][text], draws->tokens[d][text], draws->sources[text]);
    if (sum > most) most = sum, chosen = c;
  }
  return chosen;
}

static void the_one_that_others_agree_with_is_kept(void **state) {
  (void)state;
  struct draws draws;
  int later = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    draw(&draws, round);
    choose(&draws);
    for (int i = 0; i < BATCH; i++) {
      const int chosen = best(&draws, i);
      int32_t calls = 0;
      for (int c = 0; c < CANDIDATES; c++) calls += draws.calls[c][i];
      assert_memory_equal(draws.kept[i], draws.tokens[chosen][i], sizeof draws.kept[i]);
      assert_memory_equal(draws.kept_confidence[i], draws.confidence[chosen][i],
                          sizeof draws.kept_confidence[i]);
      assert_int_equal(draws.kept_calls[i], calls);
      later += chosen > 0;
    }
  }
  assert_true(later > ROUNDS);
}

static void a_case_by_hand(void **state) {
  (void)state;
  enum { THREE = 3 };
  static int32_t texts[THREE][T] = {{0, 1, 2, END, 3, 3, 3, 3, 3},  /* 1 2: agrees with nobody */
                                    {0, 3, 2, 0, 1, END, 0, 0, 0},  /* 3 2 0 1 */
                                    {0, 3, 0, 1, END, 1, 2, 1, 2}}; /* 3 0 1 */
  static const int32_t sources[] = {1};
  int32_t kept[T];
  struct consensus consensus = {0};
  struct consensus_texts texts_kept = {.tokens = kept};
  assert_ok(consensus_open(&consensus, THREE, 1, T, &texts_kept));
  for (int c = 0; c < THREE; c++)
    consensus_keep(&consensus, c, &(struct consensus_texts){.tokens = texts[c]}, 1);
  /* Sums: 1/3 + 2/5; 1/3 + 6/7; 2/5 + 6/7. */
  assert_ok(consensus_choose(&consensus, sources, END, &texts_kept, 1));
  assert_memory_equal(kept, texts[2], sizeof kept);
  consensus_close(&consensus);
}

static void candidates_have_seeds_of_their_own(void **state) {
  (void)state;
  assert_int_equal(consensus_seed(5, 0), 5);
  assert_int_not_equal(consensus_seed(5, 1), 5);
  assert_int_not_equal(consensus_seed(5, 1), consensus_seed(5, 2));
  assert_int_not_equal(consensus_seed(5, 1), consensus_seed(6, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_one_that_others_agree_with_is_kept),
      cmocka_unit_test(a_case_by_hand),
      cmocka_unit_test(candidates_have_seeds_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
