/* Near-duplicates beside a brute-force oracle: the Jaccard similarity of shingle sets. */
#include "tests/common/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "stages/tokenize/near.h"

enum { WORDS = 200, PAIRS = 400, SHINGLES = WORDS - NEAR_WORDS + 1 };

struct document {
  int words[WORDS];
};

static struct document draw(uint64_t seed) {
  const struct random_stream stream = random_open(seed, "near", 0, 0);
  struct document document;
  for (uint64_t i = 0; i < WORDS; i++) document.words[i] = (int)random_below(stream, i, 100000);
  return document;
}

/* A copy in which `changes` words are others. */
static struct document change(struct document document, uint64_t changes, uint64_t seed) {
  const struct random_stream stream = random_open(seed, "change", 0, 0);
  for (uint64_t i = 0; i < changes; i++)
    document.words[random_below(stream, 2 * i, WORDS)] =
        100000 + (int)random_below(stream, 2 * i + 1, 100000);
  return document;
}

static struct near_signature sign(const struct document *document) {
  struct text text = {0};
  struct near_signature signature;
  for (int i = 0; i < WORDS; i++) assert_ok(text_format(&text, "w%d, ", document->words[i]));
  near_begin(&signature);
  near_add(&signature, text.bytes, text.length);
  text_free(&text);
  return signature;
}

static int has(const struct document *document, const int *shingle) {
  for (int i = 0; i < SHINGLES; i++)
    if (!memcmp(document->words + i, shingle, NEAR_WORDS * sizeof *shingle)) return 1;
  return 0;
}

/* Words are drawn from so many that no shingle comes twice in a document. */
static double jaccard(const struct document *a, const struct document *b) {
  int shared = 0;
  for (int i = 0; i < SHINGLES; i++) shared += has(b, a->words + i);
  return (double)shared / (2 * SHINGLES - shared);
}

static int share_a_band(const struct near_signature *a, const struct near_signature *b,
                        struct near_bands bands) {
  for (int64_t band = 0; band < bands.bands; band++)
    if (near_key(a, bands, band) == near_key(b, bands, band)) return 1;
  return 0;
}

static double agreement(const struct near_signature *a, const struct near_signature *b) {
  int same = 0;
  for (int i = 0; i < NEAR_HASHES; i++) same += a->least[i] == b->least[i];
  return (double)same / NEAR_HASHES;
}

/* The share of equal minima estimates Jaccard similarity within its standard error, and the bands
 * find what they must find. */
static void signatures_follow_the_oracle(void **state) {
  (void)state;
  const struct near_bands bands = near_bands_for(0.7);
  double squares = 0, expected = 0, found = 0;
  for (uint64_t i = 0; i < PAIRS; i++) {
    const struct document a = draw(i), b = change(a, i % 40, i);
    const struct near_signature x = sign(&a), y = sign(&b);
    const double s = jaccard(&a, &b), error = agreement(&x, &y) - s;
    squares += error * error / (s * (1 - s) / NEAR_HASHES + 1e-6);
    assert_true(fabs(error) < 5 * sqrt(s * (1 - s) / NEAR_HASHES) + 1e-9);
    const int same = share_a_band(&x, &y, bands);
    if (s > 0.93) assert_true(same);
    if (s < 0.25) assert_false(same);
    expected += 1 - pow(1 - pow(s, (double)bands.rows), (double)bands.bands);
    found += same;
  }
  assert_true(squares / PAIRS > 0.6 && squares / PAIRS < 1.4);
  assert_true(fabs(found - expected) < 5 * sqrt(PAIRS * 0.25));
}

static void bands_meet_the_threshold(void **state) {
  (void)state;
  for (int i = 3; i < 10; i++) {
    const struct near_bands bands = near_bands_for(0.1 * i);
    assert_true(bands.bands * bands.rows <= NEAR_HASHES);
    assert_near(pow(1.0 / (double)bands.bands, 1.0 / (double)bands.rows), 0.1 * i, 0.06);
  }
  assert_int_equal(near_bands_for(0).bands, 0);
}

/* Case and punctuation do not count; short texts are one shingle. */
static void words_are_what_counts(void **state) {
  (void)state;
  static const char *const texts[] = {"One two, three FOUR five six.",
                                      "one TWO three four (five) six", "Hello there",
                                      "hello, there!", "hello you"};
  struct near_signature signatures[5];
  for (int i = 0; i < 5; i++) {
    near_begin(&signatures[i]);
    near_add(&signatures[i], texts[i], strlen(texts[i]));
  }
  assert_memory_equal(&signatures[0], &signatures[1], sizeof *signatures);
  assert_memory_equal(&signatures[2], &signatures[3], sizeof *signatures);
  assert_memory_not_equal(&signatures[3], &signatures[4], sizeof *signatures);
}

static void damaged_keys_are_found(void **state) {
  (void)state;
  struct text keys = {0}, again = {0}, bytes = {0};
  assert_ok(file_make_folder("parts"));
  for (uint64_t i = 0; i < 10; i++) assert_ok(text_add_bytes(&keys, &i, sizeof i));
  assert_ok(near_write(&keys, ".", 3, 1));
  assert_ok(near_read(&again, ".", 3, 1));
  assert_int_equal(again.length, keys.length);
  assert_memory_equal(again.bytes, keys.bytes, keys.length);
  assert_ok(file_read(&bytes, "parts/near-00000003-0001"));
  for (size_t i = 0; i < bytes.length; i++) {
    bytes.bytes[i] ^= 4;
    assert_ok(file_write("parts/near-00000003-0001", bytes.bytes, bytes.length));
    assert_status(STATUS_DAMAGED, near_read(&again, ".", 3, 1));
    bytes.bytes[i] ^= 4;
  }
  text_free(&keys);
  text_free(&again);
  text_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_follow_the_oracle),
      cmocka_unit_test(bands_meet_the_threshold),
      cmocka_unit_test(words_are_what_counts),
      cmocka_unit_test(damaged_keys_are_found),
  };
  return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
