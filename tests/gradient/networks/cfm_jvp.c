/* The forward derivative of the whole network of categorical flows in state and times: against
 * differences in double, the adjoint of the backward pass, in bf16 within bounds, and in the memory
 * of one block where blocks are recomputed.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/model/networks/cfm_transformer.h"
#include "stages/model/tape/tangent.h"
#include "tests/common/jvp.h"
#include "tests/common/tap.h"

enum { BATCH = 2, POSITIONS = 3, ROWS = BATCH * POSITIONS, STATE = 6, WIDTH = 8 };

static const double early[BATCH] = {.2, .6}, late[BATCH] = {.7, .6};
static const float clean[ROWS] = {1, 0, 0, 1, 1, 0};
static const double from_rate[BATCH] = {1, -.5}, to_rate[BATCH] = {.25, 2};

struct setting {
  struct arena declarations, weights;
  struct params params;
  struct cfm_transformer net;
};

static void open_setting(struct setting *setting, struct cfm_transformer_config config) {
  config.heads = 2;
  config.state_width = STATE;
  config.condition = 4;
  if (!config.depth) config.depth = 2;
  if (!config.width) config.width = WIDTH;
  *setting = (struct setting){0};
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  cfm_transformer_declare(&setting->net, &setting->params, &config);
}

static void close_setting(struct setting *setting) {
  arena_free(&setting->weights);
  arena_free(&setting->declarations);
}

static struct value *build(void *context, struct tape *tape, struct value *const *inputs,
                           double shift) {
  const struct setting *setting = context;
  double from[BATCH], to[BATCH];
  for (int b = 0; b < BATCH; b++) {
    from[b] = early[b] + shift * from_rate[b];
    to[b] = late[b] + shift * to_rate[b];
  }
  const struct cfm_times times = {.from = from,
                                  .to = to,
                                  .from_rate = tape->moving ? from_rate : NULL,
                                  .to_rate = tape->moving ? to_rate : NULL,
                                  .clean = clean};
  return cfm_transformer_forward(tape, &setting->net, inputs[0], &times, BATCH, POSITIONS);
}

static void check(struct cfm_transformer_config config) {
  struct setting setting;
  open_setting(&setting, config);
  jvp_bind(&setting.params, &setting.weights);
  jvp_check(&(struct jvp_case){.build = build,
                               .context = &setting,
                               .inputs = {{ROWS, STATE, false}},
                               .params = &setting.params});
  jvp_check(&(struct jvp_case){.build = build, /* of times alone */
                               .context = &setting,
                               .inputs = {{ROWS, STATE, true}},
                               .params = &setting.params});
  close_setting(&setting);
}

static void network_moves(void **state) {
  (void)state;
  check((struct cfm_transformer_config){.recompute = false});
  check((struct cfm_transformer_config){.recompute = true});
  check((struct cfm_transformer_config){.bounded = true, .shared = true, .flag = true});
  check((struct cfm_transformer_config){.plain_attention = true, .recompute = true});
}

/* A run with numbers of its own: everything random, in any element type. */
struct pass {
  struct setting *setting;
  struct arena values, records;
  struct kernels kernels;
  struct tape tape;
  struct value *y, *out;
};

enum { WORK = 32 << 20 };

static void open_pass(struct pass *pass, struct setting *setting, const char *kernels,
                      enum dtype element) {
  *pass = (struct pass){.setting = setting};
  assert_ok(arena_init(&pass->values, "values", WORK));
  assert_ok(arena_init(&pass->records, "records", WORK));
  assert_ok(kernels_open(&pass->kernels, kernels, element));
  tape_init(&pass->tape, &pass->kernels, &pass->values, &pass->records);
}

static void close_pass(struct pass *pass) {
  arena_free(&pass->records);
  arena_free(&pass->values);
}

static void draw(float *numbers, const char *purpose) {
  random_fill_normal(numbers, ROWS * STATE, random_open(3, purpose, 0, 0), 0);
}

/* The network with the state's tangent and that of times, or at fixed times. */
static void run(struct pass *pass, bool moving_times) {
  float state[ROWS * STATE], tangent[ROWS * STATE];
  const struct cfm_times times = {.from = early,
                                  .to = late,
                                  .from_rate = moving_times ? from_rate : NULL,
                                  .to_rate = moving_times ? to_rate : NULL};
  struct tape *tape = &pass->tape;
  draw(state, "state");
  draw(tangent, "tangent");
  pass->y = tape_input(tape, state, ROWS, STATE);
  if (tape->moving)
    pass->kernels.convert_from_float(tangent_open(tape, pass->y), tangent, ROWS * STATE);
  else
    pass->y->needs_gradient = true;
  pass->out = cfm_transformer_forward(tape, &pass->setting->net, pass->y, &times, BATCH, POSITIONS);
}

/* <J v, u> = <v, J' u>. */
static void backward_is_the_adjoint(void **state) {
  (void)state;
  struct setting setting;
  struct pass forward, backward;
  struct tangent_span span;
  double left = 0, right = 0;
  bool add;
  float v[ROWS * STATE];
  open_setting(&setting, (struct cfm_transformer_config){.recompute = true});
  jvp_bind(&setting.params, &setting.weights);
  for (int64_t i = 0; i < setting.params.count; i++) setting.params.items[i]->frozen = true;
  open_pass(&forward, &setting, "reference", DTYPE_F64);
  tangent_begin(&forward.tape, &span);
  run(&forward, false);
  tangent_end(&forward.tape, &span);
  open_pass(&backward, &setting, "reference", DTYPE_F64);
  run(&backward, false);
  double *u = tape_gradient(&backward.tape, backward.out, &add);
  const double *tangent = tangent_of(&forward.tape, forward.out);
  for (int i = 0; i < ROWS * WIDTH; i++) {
    u[i] = sin(i + 1);
    left += u[i] * tangent[i];
  }
  assert_ok(tape_backward(&backward.tape, NULL, NULL));
  draw(v, "tangent");
  for (int i = 0; i < ROWS * STATE; i++)
    right += (double)v[i] * ((double *)backward.y->gradient)[i];
  assert_near(left, right, 1e-10 * fabs(left) + 1e-12);
  close_pass(&forward);
  close_pass(&backward);
  close_setting(&setting);
}

static void bind_as(struct setting *setting, enum dtype element) {
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&setting->params, &measuring, element, false);
  assert_ok(arena_init(&setting->weights, "weights", measuring.peak));
  params_bind(&setting->params, &setting->weights, element, false);
  for (int64_t i = 0; i < setting->params.count; i++)
    if (setting->params.items[i]->init == PARAM_ZERO) /* modulations that do something */
      setting->params.items[i]->init = PARAM_NORMAL, setting->params.items[i]->scale = 0.3;
  params_initialise(&setting->params, element, 7);
}

/* The tangent of the output in floats. */
static void moved_output(float *tangent, const char *kernels, enum dtype element,
                         struct cfm_transformer_config config) {
  struct setting setting;
  struct pass pass;
  struct tangent_span span;
  open_setting(&setting, config);
  bind_as(&setting, element);
  open_pass(&pass, &setting, kernels, element);
  tangent_begin(&pass.tape, &span);
  run(&pass, true);
  tangent_end(&pass.tape, &span);
  struct value moved = *pass.out;
  moved.data = tangent_of(&pass.tape, pass.out);
  tape_output(&pass.tape, tangent, &moved);
  close_pass(&pass);
  close_setting(&setting);
}

static double relative(const float *a, const float *b, int64_t count) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < count; i++) {
    error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    size += (double)b[i] * (double)b[i];
  }
  return sqrt(error / size);
}

static void bf16_stays_within_bounds(void **state) {
  (void)state;
  static float exact[ROWS * 32], single[ROWS * 32], narrow[ROWS * 32];
  const struct cfm_transformer_config config = {.width = 32, .depth = 3, .recompute = true};
  moved_output(exact, "reference", DTYPE_F64, config);
  moved_output(single, "cpu", DTYPE_F32, config);
  moved_output(narrow, "cpu", DTYPE_BF16, config);
  assert_true(relative(single, exact, ROWS * 32) < 1e-5);
  const double error = relative(narrow, exact, ROWS * 32);
  if (!(error < 0.03)) fail_msg("bf16 tangents are %.4f off", error);
}

static size_t measured(int64_t depth, bool recompute, bool moving) {
  struct setting setting;
  struct pass pass;
  struct arena measuring;
  struct tangent_span span;
  open_setting(&setting, (struct cfm_transformer_config){.depth = depth, .recompute = recompute});
  open_pass(&pass, &setting, "measure", DTYPE_F32);
  arena_measure(&measuring, "measured");
  pass.tape.arena = &measuring;
  if (moving) tangent_begin(&pass.tape, &span);
  run(&pass, moving);
  if (moving) tangent_end(&pass.tape, &span);
  close_pass(&pass);
  close_setting(&setting);
  return measuring.peak;
}

/* Every further block takes its output and that output's tangent. */
static void recomputed_blocks_give_their_memory_back(void **state) {
  (void)state;
  const size_t row = ROWS * WIDTH * sizeof(float), slack = 2 * ARENA_ALIGNMENT;
  const size_t each = (measured(9, true, true) - measured(1, true, true)) / 8;
  assert_true(each <= 2 * row + slack);
  assert_true((measured(9, false, true) - measured(1, false, true)) / 8 > 5 * each);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(network_moves),
                                     cmocka_unit_test(backward_is_the_adjoint),
                                     cmocka_unit_test(bf16_stays_within_bounds),
                                     cmocka_unit_test(recomputed_blocks_give_their_memory_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
