/* Derivatives of the vocabulary heads. */
#include "stages/model/layers/head.h"

#include <math.h>
#include <string.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/vocab_embedding.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { N_MAX = 600 };

struct setting {
  struct arena declarations;
  struct params params;
  struct vocab vocab;
  struct param *w, *b, *teacher;
  struct head head; /* what is special about it */
  enum divergence divergence;
  bool one_teacher;
  int64_t n;
  int32_t targets[N_MAX];
  float weight[N_MAX];
  double omega[N_MAX];
};

static void declare(struct setting *setting, int64_t n, int64_t c, int64_t V, int64_t slices) {
  *setting = (struct setting){.n = n};
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  assert_ok(vocab_init(&setting->vocab, NULL, V, slices));
  params_init(&setting->params, &setting->declarations);
  setting->w = params_add_table(&setting->params, V, c, PARAM_NORMAL, 1, "w");
  setting->b = params_add_table(&setting->params, V, 1, PARAM_NORMAL, 1, "b");
  setting->b->kind = PARAM_VECTOR;
  for (int64_t i = 0; i < n; i++) {
    setting->targets[i] = (int32_t)(i * 37 % V);
    setting->weight[i] = (float)(i % 5) * 0.25f;
    setting->omega[i] = (double)(i % 3) / 2;
  }
  setting->targets[1] = -1;
}

static struct head head_of(struct setting *setting) {
  struct head head = setting->head;
  head.vocab = &setting->vocab;
  head.w = setting->w;
  head.b = setting->b;
  head.targets = setting->targets;
  head.weight = setting->weight;
  return head;
}

static struct value *cross_entropy(void *context, struct tape *tape, struct value *const *inputs,
                                   double *objective) {
  struct setting *setting = context;
  const struct head head = head_of(setting);
  double loss[N_MAX] = {0}, smoothing[N_MAX] = {0}, penalty[N_MAX] = {0};
  struct head_result result = {.loss = loss, .smoothing = smoothing, .penalty = penalty};
  head_forward(tape, &result, inputs[0], &head);
  for (int64_t i = 0; i < setting->n; i++)
    *objective += (double)setting->weight[i] * (loss[i] + smoothing[i] + penalty[i]);
  return NULL;
}

static void check(struct setting *setting, int64_t c,
                  struct value *(*build)(void *, struct tape *, struct value *const *, double *)) {
  gradient_check(&(struct gradient_case){.build = build,
                                         .context = setting,
                                         .inputs = {{setting->n, c}},
                                         .params = &setting->params,
                                         .spread = 0.1});
  arena_free(&setting->declarations);
}

/* Slices of uneven lengths and an empty one; blocks of tokens; tiles within a slice. */
static void cross_entropy_over_slices(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 7, 5, 75, 8);
  check(&setting, 5, cross_entropy);
  declare(&setting, N_MAX, 3, 20, 1);
  check(&setting, 3, cross_entropy);
  declare(&setting, 3, 2, 2500, 2);
  check(&setting, 2, cross_entropy);
}

/* R-VOC-2: tiles of any size, where the table and the tokens are cut elsewhere each time. */
static void smoothing_and_penalty_for_each_tile_size(void **state) {
  (void)state;
  static const struct head_tiling tilings[] = {{3, 16}, {2, 17}, {512, 1024}, {1, 2048}};
  for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
    struct setting setting;
    declare(&setting, 7, 3, 150, 4);
    setting.head =
        (struct head){.smoothing = 0.1, .log_sum_exp_penalty = 0.02, .tiling = &tilings[i]};
    check(&setting, 3, cross_entropy);
  }
}

static struct value *divergence(void *context, struct tape *tape, struct value *const *inputs,
                                double *objective) {
  struct setting *setting = context;
  const struct head head = head_of(setting);
  double loss[N_MAX] = {0};
  const bool was_recording = tape_pause(tape);
  struct value *first = combine_scale(tape, inputs[0], 0);
  struct value *second = combine_scale(tape, inputs[0], 0);
  tape_resume(tape, was_recording);
  for (int64_t i = 0; first->data && i < setting->n * inputs[0]->cols; i++) {
    ((double *)first->data)[i] = sin((double)(i * i));
    ((double *)second->data)[i] = cos((double)(3 * i));
  }
  const struct head_teacher teacher = {setting->teacher, first,
                                       setting->one_teacher ? NULL : second, setting->omega, NULL};
  head_distill_forward(tape, &(struct head_distill_result){.loss = loss}, inputs[0], &head,
                       &teacher, setting->divergence);
  for (int64_t i = 0; i < setting->n; i++) *objective += (double)setting->weight[i] * loss[i];
  return NULL;
}

static void check_divergence(enum divergence kind) {
  static const struct head_tiling small = {3, 16};
  for (int variant = 0; variant < 3; variant++) {
    struct setting setting;
    declare(&setting, 7, 5, 75, 4);
    setting.divergence = kind;
    setting.one_teacher = variant == 1;
    setting.head.tiling = variant == 2 ? &small : NULL;
    setting.teacher = params_add_table(&setting.params, 75, 5, PARAM_NORMAL, 1, "teacher");
    setting.teacher->frozen = true;
    check(&setting, 5, divergence);
  }
}

static void forward_kl(void **state) {
  (void)state;
  check_divergence(DIVERGENCE_FORWARD_KL);
}

static void reverse_kl(void **state) {
  (void)state;
  check_divergence(DIVERGENCE_REVERSE_KL);
}

static void jensen_shannon(void **state) {
  (void)state;
  check_divergence(DIVERGENCE_JENSEN_SHANNON);
}

static struct value *tied(void *context, struct tape *tape, struct value *const *inputs,
                          double *objective) {
  struct setting *setting = context;
  static const int32_t ids[] = {3, 70, 3, 16, 15, 0, 74};
  struct value *x = combine_add(
      tape, inputs[0], vocab_embedding_forward(tape, &setting->vocab, ids, setting->n, setting->w));
  struct value *both[] = {x};
  return cross_entropy(context, tape, both, objective);
}

static void tied_table(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 7, 5, 75, 4);
  check(&setting, 5, tied);
}

/* A sink gets each row once and what would have been added otherwise. */
struct gathered {
  double w[75 * 5];
  int given[75];
};

static void give(void *context, struct param *param, int64_t member, int64_t first, int64_t count,
                 const void *values) {
  struct gathered *gathered = context;
  assert_int_equal(member, 0);
  for (int64_t i = 0; i < count; i++) gathered->given[first + i]++;
  memcpy(gathered->w + first * param->cols, values, (size_t)(count * param->cols) * sizeof(double));
}

static void a_sink_takes_finished_rows(void **state) {
  (void)state;
  struct setting setting;
  struct gathered gathered = {.given = {0}};
  declare(&setting, 7, 5, 75, 4);
  const struct gradient_case tested = {
      .build = cross_entropy, .context = &setting, .inputs = {{7, 5}}, .params = &setting.params};
  double added[7 * 5 + 75 * 6], rest[7 * 5 + 75 * 6];
  assert_int_equal(gradient_count(&tested), 7 * 5 + 75 * 6);
  gradient_compute(&tested, added);
  const struct param_sink sink = {.context = &gathered, .give = give};
  setting.w->sink = &sink;
  gradient_compute(&tested, rest);
  for (int i = 0; i < 75; i++) assert_int_equal(gathered.given[i], 1);
  for (int i = 0; i < 75 * 5; i++) {
    assert_true(gathered.w[i] == added[35 + i]);
    assert_true(rest[35 + i] == 0);
  }
  arena_free(&setting.declarations);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cross_entropy_over_slices),
      cmocka_unit_test(smoothing_and_penalty_for_each_tile_size),
      cmocka_unit_test(forward_kl),
      cmocka_unit_test(reverse_kl),
      cmocka_unit_test(jensen_shannon),
      cmocka_unit_test(tied_table),
      cmocka_unit_test(a_sink_takes_finished_rows),
  };
  return cmocka_run_group_tests_name("derivatives of the vocabulary heads", tests, NULL, NULL);
}
