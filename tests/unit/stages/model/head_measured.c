/* What a measuring tape counts is what a real one takes, for each head, with and without its
 * backward pass: arenas are made with exactly the measured size. */
#include "stages/model/layers/head.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "stages/model/tape/workspace.h"
#include "tests/common/tap.h"

enum { N = 900, C = 4, V = 320, SLICES = 16 }; /* statistics outweigh the logits of a tile */

struct setting {
  struct kernels kernels;
  struct arena declarations, weights;
  struct params params;
  struct vocab vocab;
  struct workspace workspace;
  struct head head;
};

static int32_t targets[N], ids[N];
static float weight[N], states[N * C];
static double omega[N], loss[N], distance[N];
static bool backward; /* with the backward pass */

static struct value *input(struct tape *tape) {
  struct value *x = tape_input(tape, states, N, C);
  x->needs_gradient = tape->recording = backward;
  return x;
}

static enum status end(struct tape *tape) {
  return backward ? tape_backward(tape, NULL, NULL) : tape->status;
}

static enum status cross_entropy(void *context, struct tape *tape) {
  struct setting *setting = context;
  head_forward(tape, &(struct head_result){.loss = loss}, input(tape), &setting->head);
  return end(tape);
}

static enum status divergence(void *context, struct tape *tape) {
  struct setting *setting = context;
  struct value *x = input(tape);
  const struct head_teacher teacher = {setting->head.w, x, x, omega, NULL};
  head_distill_forward(tape, &(struct head_distill_result){loss, distance}, x, &setting->head,
                       &teacher, DIVERGENCE_JENSEN_SHANNON);
  return end(tape);
}

static enum status expectation(void *context, struct tape *tape) {
  struct setting *setting = context;
  head_expectation(tape, input(tape), &setting->head, setting->head.w);
  return end(tape);
}

static enum status sample(void *context, struct tape *tape) {
  struct setting *setting = context;
  const struct random_stream stream = random_open(1, "sample", 0, 0);
  head_sample(tape, ids, input(tape), &setting->head, (struct head_law){1, 0.5}, &stream, N);
  return end(tape);
}

static void open_setting(struct setting *setting) {
  struct arena measure;
  assert_ok(kernels_open(&setting->kernels, "reference", DTYPE_F32));
  assert_ok(vocab_init(&setting->vocab, NULL, V, SLICES));
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  struct param *w = params_add_table(&setting->params, V, C, PARAM_NORMAL, 1, "w");
  arena_measure(&measure, "weights");
  params_bind(&setting->params, &measure, DTYPE_F32, true);
  assert_ok(arena_init(&setting->weights, "weights", measure.peak));
  params_bind(&setting->params, &setting->weights, DTYPE_F32, true);
  params_initialise(&setting->params, DTYPE_F32, 3);
  setting->head = (struct head){.vocab = &setting->vocab,
                                .w = w,
                                .targets = targets,
                                .weight = weight,
                                .smoothing = 0.1,
                                .log_sum_exp_penalty = 1e-4};
  assert_ok(workspace_init(&setting->workspace, &setting->kernels, "activations"));
  random_fill_normal(states, N * C, random_open(5, "states", 0, 0), 0);
  for (int i = 0; i < N; i++) targets[i] = i % V, weight[i] = 1, omega[i] = 0.5;
}

static void close_setting(struct setting *setting) {
  workspace_free(&setting->workspace);
  arena_free(&setting->weights);
  arena_free(&setting->declarations);
}

static void check(workspace_use *use) {
  for (int pass = 0; pass < 2; pass++) {
    struct setting setting;
    size_t bytes = 0;
    backward = pass == 1;
    open_setting(&setting);
    assert_ok(workspace_measure(&setting.workspace, &bytes, use, &setting));
    assert_ok(workspace_run(&setting.workspace, use, &setting));
    assert_int_equal(setting.workspace.data.peak, bytes);
    close_setting(&setting);
  }
}

static void of_cross_entropy(void **state) {
  (void)state;
  check(cross_entropy);
}

static void of_divergence(void **state) {
  (void)state;
  check(divergence);
}

static void of_expectation(void **state) {
  (void)state;
  check(expectation);
}

static void of_sampling(void **state) {
  (void)state;
  check(sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_cross_entropy),
      cmocka_unit_test(of_divergence),
      cmocka_unit_test(of_expectation),
      cmocka_unit_test(of_sampling),
  };
  return cmocka_run_group_tests_name("measured memory of the heads", tests, NULL, NULL);
}
