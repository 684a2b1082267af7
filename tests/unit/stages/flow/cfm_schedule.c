/* The schedule of categorical flows against values integrated numerically. */
#include "tests/common/tap.h"

#include <math.h>

#include "stages/flow/cfm_schedule.h"

enum { VOCABULARIES = 7, TIMES = 10 };

static const int64_t vocabularies[VOCABULARIES] = {27, 256, 4096, 32000, 50257, 131072, 200019};
static const double times[TIMES] = {.001, .01, .05, .1, .25, .5, .75, .9, .99, .999};
static const double expected[TIMES][VOCABULARIES] = {
    {.01271, .07522, .32298, .48598, .51199, .55840, .57573},
    {.10575, .32558, .54723, .63266, .64641, .67161, .68130},
    {.31268, .52527, .65616, .70789, .71661, .73295, .73936},
    {.42567, .59595, .69558, .73672, .74379, .75718, .76247},
    {.56843, .67831, .74470, .77406, .77925, .78919, .79317},
    {.66944, .73855, .78366, .80490, .80875, .81619, .81919},
    {.73438, .78017, .81243, .82841, .83137, .83712, .83946},
    {.77512, .80796, .83259, .84528, .84765, .85232, .85423},
    {.82302, .84269, .85894, .86780, .86950, .87286, .87425},
    {.84745, .86140, .87368, .88065, .88200, .88470, .88582}};

static void gamma_equals_the_published_table(void **state) {
  (void)state;
  for (int v = 0; v < VOCABULARIES; v++)
    for (int t = 0; t < TIMES; t++) {
      const double gamma = cfm_schedule_gamma(vocabularies[v], times[t]);
      if (fabs(gamma - expected[t][v]) > 2e-5)
        fail_msg("V = %lld, t = %g: %.6f, expected %.5f", (long long)vocabularies[v], times[t],
                 gamma, expected[t][v]);
    }
}

static void table_follows_gamma(void **state) {
  (void)state;
  for (int v = 0; v < VOCABULARIES; v += 3) {
    struct cfm_schedule schedule;
    cfm_schedule_init(&schedule, vocabularies[v], 1, 1);
    for (int t = 0; t < TIMES; t++) {
      const double exact = cfm_schedule_gamma(vocabularies[v], times[t]);
      assert_true(fabs(cfm_schedule_alpha(&schedule, times[t]) - exact) < 1e-3);
    }
  }
}

static void alpha_rises_from_0_to_1(void **state) {
  (void)state;
  const double lambdas[] = {0, .5, .75, .9, 1};
  for (int l = 0; l < 5; l++) {
    struct cfm_schedule schedule;
    cfm_schedule_init(&schedule, 4096, lambdas[l], l % 2 ? 0.125 : 1);
    assert_true(cfm_schedule_alpha(&schedule, 0) == 0);
    assert_true(cfm_schedule_alpha(&schedule, 1) == 1);
    for (int i = 0; i < 500; i++) {
      const double low = cfm_schedule_alpha(&schedule, i / 500.0);
      const double high = cfm_schedule_alpha(&schedule, (i + 1) / 500.0);
      assert_true(low <= high);
    }
  }
}

/* Seen at a quarter of its power, a token needs twice the ratio of signal to noise. */
static void leverage_scales_the_ratio(void **state) {
  (void)state;
  struct cfm_schedule whole, quarter;
  cfm_schedule_init(&whole, 4096, 1, 1);
  cfm_schedule_init(&quarter, 4096, 1, 0.25);
  for (int i = 100; i < 900; i++) {
    const double a = whole.gamma[i], b = quarter.gamma[i];
    assert_true(fabs(b / (1 - b) - 2 * a / (1 - a)) < 1e-9 * b / (1 - b));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gamma_equals_the_published_table),
      cmocka_unit_test(table_follows_gamma),
      cmocka_unit_test(alpha_rises_from_0_to_1),
      cmocka_unit_test(leverage_scales_the_ratio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
