/* Reports: curves from metrics, the record of an evaluation, charts, table and page. */
#include "tests/common/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/chart.h"
#include "monitoring/report.h"
#include "pipeline/base/file.h"

static const char *const METRICS =
    "{\"event\":\"train\",\"step\":1,\"losses\":{\"ce\":2.5},\"gradient_norm\":1}\n"
    "{\"event\":\"train\",\"step\":2,\"losses\":{\"ce\":\"nan\"},\"gradient_norm\":0.5}\n"
    "{\"event\":\"validation\",\"step\":2,\"losses\":{\"ce\":2.25}}\n"
    "{\"event\":\"train\",\"step\":3,\"los";

static void curves_are_read_by_event_and_key(void **state) {
  (void)state;
  struct curves curves = {0};
  assert_ok(file_write("metrics.jsonl", METRICS, strlen(METRICS)));
  assert_ok(curves_read(&curves, "elf", "metrics.jsonl"));
  assert_ok(curves_read(&curves, "none", "missing.jsonl"));
  const struct curve *ce = curves_find(&curves, "elf", "train", "losses.ce");
  assert_non_null(ce);
  assert_int_equal(curve_count(ce), 2);
  const double *x = (const double *)(const void *)ce->x.bytes;
  const double *y = (const double *)(const void *)ce->y.bytes;
  assert_true(x[1] == 2 && y[0] == 2.5 && isnan(y[1]));
  assert_non_null(curves_find(&curves, "elf", "validation", "losses.ce"));
  assert_null(curves_find(&curves, "elf", "train", "step"));
  curves_free(&curves);
}

static void a_broken_line_is_named(void **state) {
  (void)state;
  struct curves curves = {0};
  assert_ok(file_write("broken.jsonl", "{\"step\":1}\nnot json\n", 20));
  assert_status(STATUS_DAMAGED, curves_read(&curves, "elf", "broken.jsonl"));
  assert_non_null(strstr(error_message(), "'broken.jsonl' line 2"));
  curves_free(&curves);
}

static char *copy(const char *string) {
  char *bytes = calloc(strlen(string) + 1, 1);
  assert_non_null(bytes);
  return memcpy(bytes, string, strlen(string));
}

static void fill(struct evaluation *evaluation) {
  strcpy(evaluation->judge, "judge");
  evaluation->positions = 128;
  evaluation->unigram_loss = 6.5;
  struct evaluation_system *text = evaluation_add_system(evaluation);
  *text = (struct evaluation_system){
      .name = "held-out text", .judge_perplexity = 20, .token_entropy = 4, .texts = 2};
  struct evaluation_system *cfm = evaluation_add_system(evaluation);
  *cfm = (struct evaluation_system){.name = "cfm",
                                    .method = "cfm",
                                    .nfe = 8,
                                    .texts = 2,
                                    .judge_perplexity = 90,
                                    .token_entropy = 2,
                                    .distinct_1 = .5};
  cfm->samples[0] = copy("a <b> & \"c\"");
  struct evaluation_model *model = evaluation_add_model(evaluation);
  *model = (struct evaluation_model){.name = "ae", .part = "accuracy", .value = 0.75};
  struct evaluation_score *score = evaluation_add_score(evaluation);
  *score = (struct evaluation_score){.name = "targets",
                                     .nfe = 32,
                                     .texts = 5,
                                     .bleu = 15.25,
                                     .rouge = {40, 20, 30.5},
                                     .rouge_error = {0.125, 1, 2}};
  struct evaluation_bound *bound = evaluation_add_bound(evaluation);
  *bound = (struct evaluation_bound){.name = "cfm",
                                     .form = "embedded",
                                     .steps = 64,
                                     .continuous = true,
                                     .information = true,
                                     .rows = 3,
                                     .tokens = 12,
                                     .nats = 1.5,
                                     .error = 0.25,
                                     .tokens_per_byte = 0.5};
}

static void evaluations_survive_a_round_trip(void **state) {
  (void)state;
  struct evaluation written = {0}, read = {0};
  fill(&written);
  written.systems[1].judge_perplexity = (double)INFINITY;
  assert_ok(evaluation_write(&written, "evaluation.json"));
  assert_ok(evaluation_read(&read, "evaluation.json"));
  assert_int_equal(read.system_count, 2);
  assert_string_equal(read.systems[1].samples[0], "a <b> & \"c\"");
  assert_true(isnan(read.systems[1].judge_perplexity)); /* JSON has no infinity: not a number */
  assert_true(read.systems[0].token_entropy == 4 && read.models[0].value == 0.75);
  const struct evaluation_bound *bound = &read.bounds[0];
  assert_true(read.bound_count == 1 && bound->steps == 64 && bound->continuous &&
              bound->information);
  assert_true(bound->rows == 3 && bound->tokens == 12);
  const struct evaluation_score *score = &read.scores[0];
  assert_true(read.score_count == 1 && score->nfe == 32 && score->texts == 5);
  assert_true(score->bleu == 15.25 && score->rouge[2] == 30.5 && score->rouge_error[0] == 0.125);
  assert_true(bound->nats == 1.5 && bound->error == 0.25 && bound->tokens_per_byte == 0.5);
  evaluation_free(&written);
  evaluation_free(&read);
  assert_ok(file_write("other.json", "{\"protocol\":\"x\"}", 16));
  assert_status(STATUS_DAMAGED, evaluation_read(&read, "other.json"));
}

static void table_and_page_show_the_systems(void **state) {
  (void)state;
  struct recipe recipe = {.name = "demo"};
  struct report report = {.recipe = &recipe};
  struct text out = {0};
  fill(&report.evaluation);
  assert_ok(report_write_text(&out, &report, 1));
  assert_non_null(strstr(out.bytes, "collapsed")); /* entropy at half of held-out text's */
  assert_non_null(strstr(out.bytes, "90.00"));
  assert_non_null(strstr(out.bytes, "2.1640")); /* 1.5 nats in bits, and half of it a byte */
  assert_non_null(strstr(out.bytes, "1.0820"));
  text_clear(&out);
  assert_ok(report_write_page(&out, &report));
  assert_non_null(strstr(out.bytes, "a &lt;b&gt; &amp; &quot;c&quot;"));
  assert_non_null(strstr(out.bytes, "<svg"));
  assert_null(strstr(out.bytes, "<script"));
  text_free(&out);
  report_free(&report);
}

static void charts_leave_out_what_is_not_finite(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4}, y[] = {1, (double)NAN, (double)INFINITY, 2};
  const struct chart_series series = {"loss", 4, x, y, false};
  struct text html = {0};
  assert_ok(chart_write(&html, &(struct chart){"t", "x", "y", false, false, &series, 1}));
  assert_null(strstr(html.bytes, "nan"));
  assert_null(strstr(html.bytes, "inf"));
  text_clear(&html);
  assert_ok(chart_write(&html, &(struct chart){"t", "x", "y", false, true, &series, 0}));
  assert_non_null(strstr(html.bytes, "no data"));
  text_free(&html);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(curves_are_read_by_event_and_key),
      cmocka_unit_test(a_broken_line_is_named),
      cmocka_unit_test(evaluations_survive_a_round_trip),
      cmocka_unit_test(table_and_page_show_the_systems),
      cmocka_unit_test(charts_leave_out_what_is_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
