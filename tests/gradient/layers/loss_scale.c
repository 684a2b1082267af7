/* The learned weight of losses against differences: exp(-u) loss + u. */
#include "stages/model/layers/loss_scale.h"

#include <math.h>

#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { ROWS = 3, POSITIONS = 4 };

static const float share[ROWS * POSITIONS] = {1, 0, 2, 1, 0, 0, 0, 0, .5f, .5f, 3, 1};
static const double loss[ROWS * POSITIONS] = {2, 9, .1, 4, 1, 1, 1, 1, 3, 0, 1, 5};

static struct value *scaled(void *context, struct tape *tape, struct value *const *inputs,
                            double *objective) {
  float *weight = context;
  const double *u = inputs[0]->data;
  loss_scale_forward(tape, weight, inputs[0], share, loss, POSITIONS);
  for (int i = 0; u && i < ROWS * POSITIONS; i++)
    *objective += (double)share[i] * (exp(-u[i / POSITIONS]) * loss[i] + u[i / POSITIONS]);
  return NULL;
}

static void scales_and_adds(void **state) {
  (void)state;
  float weight[ROWS * POSITIONS] = {0};
  gradient_check(&(struct gradient_case){
      .build = scaled, .context = weight, .inputs = {{ROWS, 1}}, .tolerance = 1e-6});
  assert_true(weight[1] == 0 && weight[2] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scales_and_adds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
