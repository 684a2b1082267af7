/* Laws of ELF's training on pairs (arXiv 2605.10938, section 3.4): who is seen, and what is lost.
 */
#include <math.h>
#include <string.h>

#include "stages/flow/elf_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { N = TINY_ROWS * TINY_POSITIONS, ROW = TINY_POSITIONS * TINY_LATENT, SIZE = N * TINY_LATENT };

/* Rows of 4, 3 and 2 tokens, of which 2, 2 and 1 are the source. */
struct pairs {
  struct tiny_flow tiny;
  int32_t sources[TINY_ROWS];
  float alone[SIZE];
};

static bool is_source(const struct pairs *pairs, int i) {
  return i % ROW < pairs->sources[i / ROW] * TINY_LATENT;
}

static void open_pairs(struct pairs *pairs, double drop, double decode) {
  static const int32_t sources[TINY_ROWS] = {2, 2, 1};
  tiny_flow_options(&pairs->tiny);
  pairs->tiny.options.elf_source_drop = drop;
  pairs->tiny.options.elf_decode_share = decode;
  tiny_flow_open(&pairs->tiny, &flow_elf);
  tiny_flow_bind(&pairs->tiny);
  memcpy(pairs->sources, sources, sizeof sources);
  random_fill_normal(pairs->alone, SIZE, random_open(6, "alone", 0, 0), 0);
  for (int i = 0; i < SIZE; i++)
    if (is_source(pairs, i)) pairs->alone[i] = 0;
  pairs->tiny.batch.sources = pairs->sources;
  pairs->tiny.batch.alone = pairs->alone;
}

static double loss_of(struct pairs *pairs, bool validation) {
  struct tiny_flow *tiny = &pairs->tiny;
  double total[FLOW_PARTS];
  struct flow_batch batch = tiny->batch;
  batch.validation = validation;
  tiny->flow.kind->weights(&tiny->flow, &batch, total);
  const struct flow_losses losses = tiny_flow_loss(tiny, &batch, total, false);
  for (int part = 0; part < 2; part++) assert_true(losses.weight[part] == total[part]);
  return losses.sum[ELF_MSE] + losses.sum[ELF_CE];
}

/* Whether the loss changes with the sources, or with the targets, of one of the latents. */
static bool reads(struct pairs *pairs, float *latents, bool source) {
  const double before = loss_of(pairs, false);
  for (int i = 0; i < SIZE; i++)
    if (is_source(pairs, i) == source) latents[i] += 0.25f;
  const double after = loss_of(pairs, false);
  for (int i = 0; i < SIZE; i++)
    if (is_source(pairs, i) == source) latents[i] -= 0.25f;
  return fabs(after - before) > 1e-9 * before;
}

static void sources_are_seen_unless_dropped(void **state) {
  (void)state;
  static struct pairs pairs;
  for (int dropped = 0; dropped < 2; dropped++) {
    open_pairs(&pairs, dropped, 0.4);
    assert_true(reads(&pairs, pairs.tiny.embeddings, true) == !dropped);
    assert_true(reads(&pairs, pairs.tiny.embeddings, false) == !dropped);
    assert_true(reads(&pairs, pairs.alone, false) == (bool)dropped);
    assert_false(reads(&pairs, pairs.alone, true));
    tiny_flow_close(&pairs.tiny);
  }
}

/* Validation hides nothing (R-DLM-12). */
static void validation_drops_nothing(void **state) {
  (void)state;
  static struct pairs pairs;
  open_pairs(&pairs, 1, 0.4);
  const double all = loss_of(&pairs, true);
  pairs.tiny.options.elf_source_drop = 0;
  assert_true(loss_of(&pairs, true) == all);
  tiny_flow_close(&pairs.tiny);
}

static int64_t covered(const struct pairs *pairs, int64_t pads) {
  struct options options = pairs->tiny.options;
  struct flow flow = pairs->tiny.flow;
  int64_t count = 0;
  options.elf_pads = pads;
  flow.options = &options;
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct split span = elf_covered(&flow, &pairs->tiny.batch, row);
    assert_int_equal(span.begin, pairs->sources[row]);
    count += split_count(span);
  }
  return count;
}

/* Targets have 2, 1 and 1 tokens, and 0, 1 and 2 pads behind them. */
static void targets_and_their_pads_are_covered(void **state) {
  (void)state;
  static struct pairs pairs;
  open_pairs(&pairs, 0.5, 0.4);
  assert_int_equal(covered(&pairs, 0), 4);
  assert_int_equal(covered(&pairs, 1), 6);
  assert_int_equal(covered(&pairs, -1), 7);
  pairs.tiny.lengths[2] = 0; /* behind the last row of a validation */
  pairs.sources[2] = 0;
  const struct split none = elf_covered(&pairs.tiny.flow, &pairs.tiny.batch, 2);
  assert_int_equal(split_count(none), 0);
  tiny_flow_close(&pairs.tiny);
}

/* What the network sees of the sources: `same` of their latents, or zeros. */
static void check_seen(struct pairs *pairs,
                       struct value *(*make)(const struct flow *, struct tape *,
                                             const struct flow_batch *, const struct elf_row *),
                       bool decode, bool dropped, bool same) {
  static float seen[SIZE];
  struct tiny_flow *tiny = &pairs->tiny;
  struct tape tape;
  struct elf_row rows[TINY_ROWS];
  for (int b = 0; b < TINY_ROWS; b++)
    rows[b] = (struct elf_row){
        .decode = decode, .dropped = dropped, .time = decode ? 1 : 0.4, .guidance = 1};
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape_output(&tape, seen, make(&tiny->flow, &tape, &tiny->batch, rows));
  for (int i = 0; i < SIZE; i++)
    if (is_source(pairs, i)) assert_true((seen[i] == (dropped ? 0 : tiny->embeddings[i])) == same);
}

static void sources_are_clean(void **state) {
  (void)state;
  static struct pairs pairs;
  open_pairs(&pairs, 0.5, 0.4);
  check_seen(&pairs, elf_noisy, false, false, true);
  check_seen(&pairs, elf_noisy, false, true, true);
  check_seen(&pairs, elf_noisy, true, false, false);
  check_seen(&pairs, elf_no_draft, false, false, true);
  check_seen(&pairs, elf_no_draft, false, true, true);
  check_seen(&pairs, elf_no_draft, true, false, false);
  pairs.tiny.options.elf_clean_source = true;
  check_seen(&pairs, elf_noisy, true, false, true);
  tiny_flow_close(&pairs.tiny);
}

static struct flow_batch row_of(const struct pairs *pairs, int64_t row) {
  struct flow_batch batch = tiny_flow_row(&pairs->tiny, row);
  batch.sources += row;
  batch.alone += row * ROW;
  return batch;
}

static void pair_does_not_depend_on_its_batch(void **state) {
  (void)state;
  static struct pairs pairs;
  double total[FLOW_PARTS], sum = 0;
  open_pairs(&pairs, 0.5, 0.4);
  pairs.tiny.flow.kind->weights(&pairs.tiny.flow, &pairs.tiny.batch, total);
  const double whole = loss_of(&pairs, false);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct flow_batch batch = row_of(&pairs, row);
    const struct flow_losses part = tiny_flow_loss(&pairs.tiny, &batch, total, false);
    sum += part.sum[ELF_MSE] + part.sum[ELF_CE];
  }
  assert_near(sum, whole, 1e-9 * whole);
  tiny_flow_close(&pairs.tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources_are_seen_unless_dropped), cmocka_unit_test(validation_drops_nothing),
      cmocka_unit_test(targets_and_their_pads_are_covered), cmocka_unit_test(sources_are_clean),
      cmocka_unit_test(pair_does_not_depend_on_its_batch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
