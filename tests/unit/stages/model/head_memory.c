/* The memory of the heads does not grow with the vocabulary (R-VOC-1), as measuring tapes count it.
 */
#include "stages/model/layers/head.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "tests/common/tap.h"

enum { MIB = 1 << 20 };

struct sizes {
  int64_t n, c, V, slices;
};

struct setting {
  struct kernels kernels;
  struct arena declarations, arena, records;
  struct params params;
  struct vocab vocab;
  struct tape tape;
  struct head head;
  struct value *x;
};

static float weight[4096];
static int32_t targets[4096];
static double omega[4096], loss[4096];

static size_t open_setting(struct setting *setting, struct sizes sizes) {
  assert_ok(kernels_open(&setting->kernels, "measure", DTYPE_BF16));
  assert_ok(vocab_init(&setting->vocab, NULL, sizes.V, sizes.slices));
  assert_ok(arena_init(&setting->declarations, "declarations", MIB));
  assert_ok(arena_init(&setting->records, "records", MIB));
  arena_measure(&setting->arena, "measured");
  params_init(&setting->params, &setting->declarations);
  struct param *w =
      params_add_table(&setting->params, sizes.V, sizes.c, PARAM_NORMAL, 0.02, "head.weight");
  setting->head = (struct head){.vocab = &setting->vocab,
                                .w = w,
                                .targets = targets,
                                .weight = weight,
                                .smoothing = 0.1,
                                .log_sum_exp_penalty = 1e-4};
  tape_init(&setting->tape, &setting->kernels, &setting->arena, &setting->records);
  setting->x = tape_value(&setting->tape, sizes.n, sizes.c);
  return 2 * setting->arena.used; /* x and its gradient */
}

static size_t close_setting(struct setting *setting, size_t own) {
  assert_ok(tape_backward(&setting->tape, NULL, NULL));
  const size_t peak = setting->arena.peak;
  arena_free(&setting->declarations);
  arena_free(&setting->records);
  return peak - own;
}

static size_t cross_entropy(struct sizes sizes) {
  struct setting setting;
  const size_t own = open_setting(&setting, sizes);
  struct head_result result = {.loss = loss};
  head_forward(&setting.tape, &result, setting.x, &setting.head);
  return close_setting(&setting, own);
}

static size_t divergence(struct sizes sizes, enum divergence kind) {
  struct setting setting;
  const size_t own = open_setting(&setting, sizes);
  const struct head_teacher teacher = {setting.head.w, setting.x, setting.x, omega, NULL};
  struct head_distill_result result = {.loss = loss};
  head_distill_forward(&setting.tape, &result, setting.x, &setting.head, &teacher, kind);
  return close_setting(&setting, own);
}

static size_t forward_kl(struct sizes sizes) {
  return divergence(sizes, DIVERGENCE_FORWARD_KL);
}

static size_t reverse_kl(struct sizes sizes) {
  return divergence(sizes, DIVERGENCE_REVERSE_KL);
}

static size_t jensen_shannon(struct sizes sizes) {
  return divergence(sizes, DIVERGENCE_JENSEN_SHANNON);
}

static size_t expectation(struct sizes sizes) {
  struct setting setting;
  const size_t own = open_setting(&setting, sizes);
  head_expectation(&setting.tape, setting.x, &setting.head, setting.head.w);
  return close_setting(&setting, own);
}

static void check(size_t (*use)(struct sizes), size_t limit) {
  const size_t small = use((struct sizes){2048, 2048, 20000, 16});
  const size_t large = use((struct sizes){2048, 2048, 200019, 16});
  assert_int_equal(small, large);
  assert_in_range(large, 1, limit);
  /* half the tokens take half of what depends on them: nothing is kept for tokens x vocabulary */
  assert_true(use((struct sizes){1024, 2048, 200019, 16}) < large);
}

static void cross_entropy_takes_128_MiB(void **state) {
  (void)state;
  check(cross_entropy, 128 * (size_t)MIB);
}

static void divergences_take_160_MiB(void **state) {
  (void)state;
  check(forward_kl, 160 * (size_t)MIB);
  check(reverse_kl, 160 * (size_t)MIB);
  check(jensen_shannon, 160 * (size_t)MIB);
}

static void expectation_takes_128_MiB(void **state) {
  (void)state;
  check(expectation, 128 * (size_t)MIB);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cross_entropy_takes_128_MiB),
      cmocka_unit_test(divergences_take_160_MiB),
      cmocka_unit_test(expectation_takes_128_MiB),
  };
  return cmocka_run_group_tests_name("R-VOC-1 memory of the heads", tests, NULL, NULL);
}
