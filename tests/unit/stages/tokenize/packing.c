/* R-DLM-9, R-DLM-13: packing, sampling and splitting depend on content alone. */
#include "tests/common/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/corpus.h"
#include "stages/tokenize/duplicates.h"
#include "stages/tokenize/line_sample.h"
#include "stages/tokenize/packer.h"
#include "stages/tokenize/unigram_loss.h"

static enum status take(void *state, const void *row, int64_t count) {
  struct text *text = state;
  const int32_t *ids = row;
  for (int64_t i = 0; i < count; i++) TRY(text_format(text, "%d ", ids[i]));
  return text_add(text, "| ");
}

static const int32_t documents[] = {10, 11, 12, 20, 21, 30, 31, 32, 33, 34, 35, 36, 37, 38, 40};
static const int64_t lengths[] = {3, 2, 9, 1};

static void assert_rows(enum packing_choice packing, int32_t bos, const char *expected) {
  int32_t row[4];
  struct text rows = {0};
  struct packer packer = {.packing = packing,
                          .length = 4,
                          .width = sizeof *row,
                          .bos = bos,
                          .eos = 1,
                          .row = row,
                          .take = take,
                          .state = &rows};
  struct packer counter = {.packing = packing, .length = 4, .bos = bos, .eos = 1};
  const int32_t *ids = documents;
  for (int i = 0; i < 4; ids += lengths[i++]) {
    assert_ok(packer_add(&packer, ids, lengths[i]));
    assert_ok(packer_add(&counter, NULL, lengths[i]));
  }
  assert_ok(packer_break(&packer));
  assert_ok(packer_break(&counter));
  assert_string_equal(rows.bytes, expected);
  assert_int_equal(packer.rows, counter.rows);
  assert_int_equal(packer.stream, counter.stream);
  text_free(&rows);
}

static void rows(void **state) {
  (void)state;
  assert_rows(PACKING_WRAPPED, TOKEN_NONE,
              "10 11 12 1 | 20 21 1 30 | 31 32 33 34 | 35 36 37 38 | ");
  assert_rows(PACKING_WRAPPED, 2,
              "2 10 11 12 | 1 2 20 21 | 1 2 30 31 | 32 33 34 35 | 36 37 38 1 | ");
  assert_rows(PACKING_PARAGRAPH, TOKEN_NONE,
              "10 11 12 1 | 20 21 1 | 30 31 32 33 | 34 35 36 37 | 38 40 1 | ");
}

/* Pairs of 3 + 1, 4 + 4, 2 + 0 and 1 + 6 tokens in rows of 6, sources of 3 at most. */
static void assert_pairs(bool drops, const char *expected, int64_t cut, int64_t left_out) {
  static const int32_t ids[] = {10, 11, 12, 50, 20, 21, 22, 23, 60, 61, 62,
                                63, 30, 31, 40, 70, 71, 72, 73, 74, 75};
  static const int64_t sides[][2] = {{3, 1}, {4, 4}, {2, 0}, {1, 6}};
  int32_t row[6];
  struct text rows = {0};
  struct packer counter = {.packing = PACKING_PAIRS,
                           .length = 6,
                           .width = sizeof *row,
                           .source_length = 3,
                           .drops = drops};
  struct packer packer = counter;
  packer.row = row;
  packer.take = take;
  packer.state = &rows;
  const int32_t *next = ids;
  for (int i = 0; i < 4; next += sides[i][0] + sides[i][1], i++) {
    assert_ok(packer_add_pair(&packer, next, sides[i][0], sides[i][1]));
    assert_ok(packer_add_pair(&counter, NULL, sides[i][0], sides[i][1]));
    if (packer.rows == 1) assert_int_equal(packer.source, 3);
  }
  assert_ok(packer_break(&packer));
  assert_string_equal(rows.bytes, expected);
  assert_int_equal(packer.rows, counter.rows);
  assert_int_equal(packer.stream, counter.stream);
  assert_int_equal(counter.cut, cut);
  assert_int_equal(counter.left_out, left_out);
  text_free(&rows);
}

static void pairs(void **state) {
  (void)state;
  assert_pairs(false, "10 11 12 50 | 20 21 22 60 61 62 | 40 70 71 72 73 74 | ", 2, 1);
  assert_pairs(true, "10 11 12 50 | ", 0, 3);
}

/* The side of a pair is that of its source; equal pairs alone have equal hashes. */
static void pair_hashes(void **state) {
  (void)state;
  const struct document_pair a = {"ab", "c", 2, 1}, b = {"ab", "d", 2, 1}, c = {"a", "bc", 1, 2};
  const struct hash128 x = document_pair_hash(&a), y = document_pair_hash(&b);
  assert_true(x.low == y.low && x.high != y.high);
  assert_true(x.low != document_pair_hash(&c).low && x.high != document_pair_hash(&c).high);
}

static void offer_numbers(struct line_sample *sample, int from, int to, int step) {
  char line[64];
  for (int i = from; step > 0 ? i < to : i > to; i += step) {
    const int length = snprintf(line, sizeof line, "%0*d", 1 + i * 7919 % 60, i);
    assert_ok(line_sample_offer(sample, line, (size_t)length));
  }
}

static void assert_same(struct line_sample *a, struct line_sample *b) {
  line_sample_sort(a);
  line_sample_sort(b);
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->bytes, b->bytes);
  for (size_t i = 0; i < a->count; i++) assert_int_equal(a->lines[i].hash, b->lines[i].hash);
}

/* Forward, backward, and in two merged halves: the same sample. */
static void samples(void **state) {
  (void)state;
  for (int limit = 100; limit < 3000; limit += 77) {
    struct line_sample a = line_sample_begin((uint64_t)limit), b = a, c = a, d = a;
    offer_numbers(&a, 0, 500, 1);
    offer_numbers(&b, 499, -1, -1);
    offer_numbers(&c, 0, 500, 2);
    offer_numbers(&d, 1, 500, 2);
    assert_true(a.bytes <= (uint64_t)limit && a.count > 0);
    struct text lines = {0};
    line_sample_lower(&c, d.bar);
    assert_ok(line_sample_write(&lines, &d));
    assert_ok(line_sample_offer_text(&c, lines.bytes, lines.length));
    assert_same(&a, &b);
    assert_same(&a, &c);
    text_free(&lines);
    line_sample_free(&a);
    line_sample_free(&b);
    line_sample_free(&c);
    line_sample_free(&d);
  }
}

static void duplicate_sets(void **state) {
  (void)state;
  struct duplicates seen = {0};
  assert_ok(duplicates_init(&seen, 1000));
  for (uint64_t i = 0; i < 1000; i++) {
    const struct hash128 hash = {i * i, i};
    assert_false(duplicates_seen(&seen, hash));
    assert_true(duplicates_seen(&seen, hash));
  }
  duplicates_free(&seen);
  assert_int_equal(duplicates_buckets(10), 1);
  assert_true(duplicates_buckets(100000000) > 10);
}

static void sides(void **state) {
  (void)state;
  int held_out = 0;
  for (uint64_t i = 0; i < 10000; i++)
    held_out += corpus_side_of(hash_bytes128(&i, sizeof i), 0.1) == CORPUS_HELD_OUT;
  assert_in_range(held_out, 850, 1150);
  const struct hash128 zero = {0, 0};
  assert_int_equal(corpus_side_of(zero, 0), CORPUS_TRAIN);
}

static void unigram(void **state) {
  (void)state;
  const int64_t train[] = {3, 0, 0, 1}, held_out[] = {1, 1, 0, 0};
  const double expected = -(log(4.0 / 8) + log(1.0 / 8)) / 2;
  assert_true(fabs(unigram_loss(held_out, train, 4) - expected) < 1e-12);
  assert_true(unigram_loss(train + 1, train, 2) == 0);
}

/* Some parts have none, one has many; none of another part is read. */
static void lists_give_the_duplicates_of_a_part(void **state) {
  (void)state;
  static const int64_t counts[] = {0, 3, 0, 0, 1, 500, 2, 0};
  enum { PARTS = sizeof counts / sizeof *counts };
  struct text list = {0};
  for (int64_t part = 0; part < PARTS; part++)
    for (int64_t place = 0; place < counts[part]; place++)
      assert_ok(
          text_add_bytes(&list, &(struct duplicate){part, 3 * place}, sizeof(struct duplicate)));
  assert_ok(file_make_folder("listed"));
  assert_ok(file_make_folder("listed/parts"));
  assert_ok(duplicates_write(&list, "listed", 7));
  for (int64_t part = 0; part <= PARTS; part++) {
    text_clear(&list);
    assert_ok(duplicates_read(&list, "listed", 7, part));
    const struct duplicate *found = (const struct duplicate *)(const void *)list.bytes;
    const int64_t count = (int64_t)(list.length / sizeof *found);
    assert_int_equal(count, part < PARTS ? counts[part] : 0);
    for (int64_t i = 0; i < count; i++)
      assert_true(found[i].part == part && found[i].place == 3 * i);
  }
  text_free(&list);
  assert_ok(file_remove("listed"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows),           cmocka_unit_test(samples),
      cmocka_unit_test(duplicate_sets), cmocka_unit_test(sides),
      cmocka_unit_test(unigram),        cmocka_unit_test(pairs),
      cmocka_unit_test(pair_hashes),    cmocka_unit_test(lists_give_the_duplicates_of_a_part),
  };
  return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
