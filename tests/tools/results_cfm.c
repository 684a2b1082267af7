/* Writes the page of results of categorical flow maps from one evaluation:
 *
 *   results_cfm EVALUATION FOLDER LAMBDA [NOTE]
 *
 * Systems are named GROUP_sSEED (tests/results/cfm). FOLDER gets cfm.md, with tables of means and
 * deviations over seeds and what became of each expectation, and its charts; LAMBDA is that of the
 * schedule of `base`, NOTE a paragraph on how it was made. Exit 0: written, whatever came out.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/chart.h"
#include "monitoring/evaluation.h"
#include "tests/common/chart_file.h"

enum { CELLS = 256, SEEDS = 16, GROUPS = CHART_SERIES, POINTS = 16 };

/* One group at one number of network calls. */
struct cell {
  char group[EVALUATION_NAME_BYTES];
  int64_t nfe;
  int seeds;
  double perplexity[SEEDS], entropy[SEEDS], distinct[SEEDS];
};

struct results {
  struct evaluation evaluation;
  double lambda; /* of the schedule of `base` */
  struct cell cells[CELLS];
  int count;
};

static double mean(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return count ? sum / count : NAN;
}

static double deviation(const double *values, int count) {
  const double middle = mean(values, count);
  double sum = 0;
  for (int i = 0; i < count; i++) sum += (values[i] - middle) * (values[i] - middle);
  return count > 1 ? sqrt(sum / (count - 1)) : 0;
}

static struct cell *find(struct results *results, const char *group, int64_t nfe) {
  for (int i = 0; i < results->count; i++)
    if (results->cells[i].nfe == nfe && strcmp(results->cells[i].group, group) == 0)
      return &results->cells[i];
  return NULL;
}

static void add_system(struct results *results, const struct evaluation_system *system) {
  char group[EVALUATION_NAME_BYTES];
  snprintf(group, sizeof group, "%s", system->name);
  char *mark = strstr(group, "_s");
  if (!mark) return; /* held-out text */
  *mark = '\0';
  struct cell *cell = find(results, group, system->nfe);
  if (!cell && results->count < CELLS) {
    cell = &results->cells[results->count++];
    *cell = (struct cell){.nfe = system->nfe};
    snprintf(cell->group, sizeof cell->group, "%s", group);
  }
  if (!cell || cell->seeds == SEEDS) return;
  cell->perplexity[cell->seeds] = system->judge_perplexity;
  cell->entropy[cell->seeds] = system->token_entropy;
  cell->distinct[cell->seeds++] = system->distinct_2;
}

static double perplexity_of(struct results *results, const char *group, int64_t nfe) {
  const struct cell *cell = find(results, group, nfe);
  return cell ? mean(cell->perplexity, cell->seeds) : NAN;
}

static double entropy_of(struct results *results, const char *group, int64_t nfe) {
  const struct cell *cell = find(results, group, nfe);
  return cell ? mean(cell->entropy, cell->seeds) : NAN;
}

/* "mean ± deviation |", the latter where there is more than one seed. */
static void write_spread(FILE *page, const double *values, int count, int digits) {
  fprintf(page, " %.*f", digits, mean(values, count));
  if (count > 1) fprintf(page, " ± %.*f", digits, deviation(values, count));
  fprintf(page, " |");
}

static void write_table(FILE *page, const struct results *results) {
  const struct evaluation_system *data = &results->evaluation.systems[0];
  fprintf(page,
          "| generator | calls | seeds | judge perplexity | token entropy | distinct-2 |\n"
          "|---|---|---|---|---|---|\n"
          "| held-out text | | | %.1f | %.3f | %.3f |\n",
          data->judge_perplexity, data->token_entropy, data->distinct_2);
  for (int i = 0; i < results->count; i++) {
    const struct cell *c = &results->cells[i];
    fprintf(page, "| %s | %" PRId64 " | %d |", c->group, c->nfe, c->seeds);
    write_spread(page, c->perplexity, c->seeds, 1);
    write_spread(page, c->entropy, c->seeds, 3);
    fprintf(page, " %.3f |\n", mean(c->distinct, c->seeds));
  }
}

/* One expectation: what was measured, and whether it holds. A difference of means of two groups is
 * no more than chance where it is within `spread`, its deviation over seeds. */
static void expect(FILE *page, const char *what, double left, const char *sign, double right,
                   double spread) {
  const bool known = isfinite(left) && isfinite(right);
  const bool holds = sign[0] == '<' ? left < right : left > right;
  fprintf(page, "| %s | %.4g %s %.4g | %s%s |\n", what, left, sign, right,
          !known  ? "not measured"
          : holds ? "yes"
                  : "**no**",
          known && fabs(left - right) < spread ? ", within the spread" : "");
}

/* At 4 calls a group stands to another as `sign` says, in entropy or perplexity. */
static void compare(FILE *page, struct results *results, const char *what, const char *left,
                    const char *sign, const char *right) {
  const struct cell *a = find(results, left, 4), *b = find(results, right, 4);
  const bool entropy = strncmp(what, "entropy", 7) == 0;
  double apart[SEEDS];
  const int count = a && b ? (a->seeds < b->seeds ? a->seeds : b->seeds) : 0;
  for (int i = 0; i < count; i++)
    apart[i] = entropy ? a->entropy[i] - b->entropy[i] : a->perplexity[i] - b->perplexity[i];
  expect(page, what, entropy ? entropy_of(results, left, 4) : perplexity_of(results, left, 4), sign,
         entropy ? entropy_of(results, right, 4) : perplexity_of(results, right, 4),
         deviation(apart, count));
}

static void write_expectations(FILE *page, struct results *results) {
  const double data = results->evaluation.systems[0].token_entropy;
  fprintf(page, "| expected | measured | holds |\n|---|---|---|\n");
  compare(page, results, "perplexity at 4 calls: distilled below base", "forward_kl", "<", "base");
  expect(page, "entropy at 4 calls: distilled within 5 % of the data's",
         fabs(entropy_of(results, "forward_kl", 4) / data - 1), "<", 0.05, 0);
  for (int64_t nfe = 1; nfe <= 2; nfe++) {
    const char *calls = nfe == 1 ? "1 call" : "2 calls";
    char what[96];
    snprintf(what, sizeof what, "entropy at %s: the base's below 80 %% of the data's", calls);
    expect(page, what, entropy_of(results, "base", nfe) / data, "<", 0.8, 0);
    snprintf(what, sizeof what, "entropy at %s: the distilled's above 80 %% of the data's", calls);
    expect(page, what, entropy_of(results, "forward_kl", nfe) / data, ">", 0.8, 0);
  }
  compare(page, results, "entropy at 4 calls: forward KL above reverse KL", "forward_kl", ">",
          "reverse_kl");
  compare(page, results, "entropy at 4 calls: JSD above reverse KL", "jsd", ">", "reverse_kl");
}

/* Points of one line, in the order of the evaluation. */
struct line {
  char name[EVALUATION_NAME_BYTES];
  double x[POINTS], y[POINTS];
  size_t count;
};

static struct line *line_of(struct line *lines, size_t *count, const char *name) {
  for (size_t i = 0; i < *count; i++)
    if (strcmp(lines[i].name, name) == 0) return &lines[i];
  if (*count == GROUPS) return NULL;
  lines[*count] = (struct line){.count = 0};
  snprintf(lines[*count].name, sizeof lines[*count].name, "%s", name);
  return &lines[(*count)++];
}

static void add_point(struct line *line, double x, double y) {
  if (!line || line->count == POINTS) return;
  line->x[line->count] = x;
  line->y[line->count++] = y;
}

static enum status write_chart(const char *folder, const char *name, const struct chart *chart) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.svg", folder, name);
  return chart_file_write(path, chart);
}

static enum status write_lines(const char *folder, const char *name, struct chart chart,
                               const struct line *lines, size_t count) {
  struct chart_series series[GROUPS];
  for (size_t i = 0; i < count; i++)
    series[i] = (struct chart_series){
        .name = lines[i].name, .count = lines[i].count, .x = lines[i].x, .y = lines[i].y};
  chart.series = series;
  chart.series_count = count;
  return write_chart(folder, name, &chart);
}

/* Perplexity and entropy over calls. */
static enum status write_calls(const struct results *results, const char *folder, bool entropy) {
  static struct line lines[GROUPS];
  size_t count = 0;
  for (int i = 0; i < results->count; i++) {
    const struct cell *c = &results->cells[i];
    if (strncmp(c->group, "lambda", 6) == 0) continue;
    add_point(line_of(lines, &count, c->group), (double)c->nfe,
              mean(entropy ? c->entropy : c->perplexity, c->seeds));
  }
  const struct chart chart = {.title = "",
                              .x_label = "network calls",
                              .y_label = entropy ? "token entropy (nats)" : "judge perplexity",
                              .log_x = true,
                              .log_y = !entropy};
  return write_lines(folder, entropy ? "cfm-entropy" : "cfm-perplexity", chart, lines, count);
}

/* The share of the error-decoding schedule of a group of bases; NAN for others. */
static double lambda_of(const struct results *results, const char *group) {
  if (strcmp(group, "base") == 0) return results->lambda;
  return strncmp(group, "lambda", 6) == 0 ? atof(group + 6) / 100 : NAN;
}

static int by_x(const void *a, const void *b) {
  const double *left = a, *right = b;
  return (left[0] > right[0]) - (left[0] < right[0]);
}

/* Perplexity over lambda, a line for each number of calls. */
static enum status write_lambdas(const struct results *results, const char *folder) {
  static struct line lines[GROUPS];
  size_t count = 0;
  for (int i = 0; i < results->count; i++) {
    const struct cell *c = &results->cells[i];
    char name[32];
    snprintf(name, sizeof name, "%" PRId64 " calls", c->nfe);
    const double lambda = lambda_of(results, c->group);
    if (isfinite(lambda))
      add_point(line_of(lines, &count, name), lambda, mean(c->perplexity, c->seeds));
  }
  for (size_t i = 0; i < count; i++) {
    double pairs[POINTS][2];
    for (size_t j = 0; j < lines[i].count; j++)
      pairs[j][0] = lines[i].x[j], pairs[j][1] = lines[i].y[j];
    qsort(pairs, lines[i].count, sizeof *pairs, by_x);
    for (size_t j = 0; j < lines[i].count; j++)
      lines[i].x[j] = pairs[j][0], lines[i].y[j] = pairs[j][1];
  }
  const struct chart chart = {
      .title = "", .x_label = "lambda", .y_label = "judge perplexity", .log_y = true};
  return write_lines(folder, "cfm-lambda", chart, lines, count);
}

static enum status write_page(struct results *results, const char *folder, const char *note) {
  char path[1024];
  snprintf(path, sizeof path, "%s/cfm.md", folder);
  FILE *page = fopen(path, "w");
  CHECK(page, STATUS_WRITE, "%s: cannot be written", path);
  fprintf(page,
          "# Categorical flow maps on two cores\n\nWritten by `make results-cfm` from one "
          "evaluation (judge `%s`, %.3f nats a token for a unigram model); means and deviations "
          "over seeds. %s\n\n## What was expected\n\n",
          results->evaluation.judge, results->evaluation.unigram_loss, note);
  write_expectations(page, results);
  fprintf(page,
          "\n![judge perplexity over network calls](cfm-perplexity.svg)\n"
          "![token entropy over network calls](cfm-entropy.svg)\n\n"
          "`base` steps by Euler's rule; the others, distilled from it by the divergence they "
          "are named after, by their maps%s.\n\n"
          "## The schedule\n\n"
          "![judge perplexity over lambda](cfm-lambda.svg)\n\nalpha(t) = (1 - lambda) t + "
          "lambda gamma(t); `base` has %g, the groups `lambdaN` N hundredths.\n\n"
          "## All numbers\n\n",
          find(results, "distilled75", 4) ? "; `distilled75` is from `lambda75`, by forward KL"
                                          : "",
          results->lambda);
  write_table(page, results);
  CHECK(fclose(page) == 0, STATUS_WRITE, "%s: cannot be written", path);
  return STATUS_OK;
}

static enum status run(struct results *results, const char *record, const char *folder,
                       const char *note) {
  TRY(evaluation_read(&results->evaluation, record));
  CHECK(results->evaluation.system_count > 0, STATUS_MISMATCH, "%s has no systems", record);
  for (size_t i = 0; i < results->evaluation.system_count; i++)
    add_system(results, &results->evaluation.systems[i]);
  TRY(write_page(results, folder, note));
  TRY(write_calls(results, folder, false));
  TRY(write_calls(results, folder, true));
  return write_lambdas(results, folder);
}

int main(int count, char **arguments) {
  static struct results results;
  if (count != 4 && count != 5) {
    fprintf(stderr, "usage: results_cfm EVALUATION FOLDER LAMBDA [NOTE]\n");
    return 64;
  }
  results.lambda = atof(arguments[3]);
  const enum status status =
      run(&results, arguments[1], arguments[2], count == 5 ? arguments[4] : "");
  if (status != STATUS_OK) fprintf(stderr, "results_cfm: %s\n", error_message());
  evaluation_free(&results.evaluation);
  return status == STATUS_OK ? 0 : error_exit_code(status);
}
