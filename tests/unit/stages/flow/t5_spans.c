/* Span corruption: the published lengths, texts that can be put together again, every way of
 * cutting as likely, and draws that depend on the text's key alone. */
#include "stages/flow/t5_spans.h"

#include <math.h>
#include <string.h>

#include "tests/common/tap.h"

enum { MOST = 600, SENTINEL = 5000, END = 1 };

static const struct t5_rule usual = {.share = 0.15, .span = 3, .sentinel = SENTINEL, .end = END};

/* The released code finds 568 tokens for 512 inputs, and 114 targets; 141 and 32 for 128 / 29. */
static void lengths_are_the_published_ones(void **state) {
  (void)state;
  const struct t5_lengths full = t5_lengths_of(&usual, 568);
  assert_int_equal(full.inputs, 512);
  assert_int_equal(full.targets, 114);
  const struct t5_lengths small = t5_lengths_of(&usual, 141);
  assert_int_equal(small.inputs, 128);
  assert_int_equal(small.targets, 29);
  int64_t before = 0;
  for (int64_t n = 0; n <= MOST; n++) {
    const struct t5_lengths lengths = t5_lengths_of(&usual, n);
    assert_true(lengths.inputs >= before); /* full rows have room for all others */
    before = lengths.inputs;
  }
}

/* Puts each sentinel's span in its place. */
static int64_t restore(int32_t *text, const int32_t *inputs, const int32_t *targets) {
  int64_t count = 0;
  for (; *inputs != END; inputs++) {
    if (*inputs < SENTINEL - 100) {
      text[count++] = *inputs;
      continue;
    }
    assert_int_equal(*targets, *inputs);
    for (targets++; *targets != END && *targets < SENTINEL - 100; targets++)
      text[count++] = *targets;
  }
  return count;
}

static void texts_can_be_put_together_again(void **state) {
  (void)state;
  int32_t text[MOST], inputs[MOST + 1], targets[MOST + 1], again[MOST];
  int64_t room[2 * MOST];
  for (int i = 0; i < MOST; i++) text[i] = 10 + i;
  for (int64_t n = 0; n <= MOST; n += n < 40 ? 1 : 37) {
    const struct t5_lengths lengths = t5_lengths_of(&usual, n);
    const struct random_stream stream = random_open(3, "spans", (uint64_t)n, 0);
    t5_corrupt(&usual, text, n, stream, room, inputs, targets);
    assert_int_equal(inputs[lengths.inputs - 1], END);
    if (n >= 2) assert_int_equal(targets[lengths.targets - 1], END);
    assert_int_equal(restore(again, inputs, targets), n);
    assert_memory_equal(again, text, (size_t)n * sizeof *text);
  }
}

/* Of 8 tokens 4 in 2 spans: 3 ways to divide what is kept, and 3 for what is taken out. */
static void every_way_is_as_likely(void **state) {
  (void)state;
  enum { TOKENS = 8, DRAWS = 9000 };
  const struct t5_rule half = {.share = 0.5, .span = 2, .sentinel = SENTINEL, .end = END};
  int32_t text[TOKENS], inputs[TOKENS + 3], targets[TOKENS + 3];
  int64_t room[4];
  int counts[3][3] = {{0}};
  for (int i = 0; i < TOKENS; i++) text[i] = 10 + i;
  for (uint64_t sample = 0; sample < DRAWS; sample++) {
    t5_corrupt(&half, text, TOKENS, random_open(3, "spans", sample, 0), room, inputs, targets);
    counts[room[0] - 1][room[2] - 1]++;
    assert_int_equal(room[0] + room[1], 4);
    assert_int_equal(room[2] + room[3], 4);
  }
  for (int i = 0; i < 9; i++) assert_true(fabs(counts[i / 3][i % 3] - 1000.0) < 150);
}

static void draws_are_keyed_by_the_text(void **state) {
  (void)state;
  enum { TOKENS = 100 };
  int32_t text[TOKENS] = {0}, a[3][TOKENS + 1], b[TOKENS];
  int64_t room[TOKENS];
  const struct random_stream streams[3] = {
      random_open(3, "spans", 7, 1), random_open(3, "spans", 7, 1), random_open(3, "spans", 7, 2)};
  for (int i = 0; i < 3; i++) t5_corrupt(&usual, text, TOKENS, streams[i], room, a[i], b);
  const size_t bytes = (size_t)t5_lengths_of(&usual, TOKENS).inputs * sizeof a[0][0];
  assert_memory_equal(a[0], a[1], bytes);
  assert_true(memcmp(a[0], a[2], bytes) != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_are_the_published_ones),
                                     cmocka_unit_test(texts_can_be_put_together_again),
                                     cmocka_unit_test(every_way_is_as_likely),
                                     cmocka_unit_test(draws_are_keyed_by_the_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
