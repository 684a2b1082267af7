#include "monitoring/report.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "monitoring/chart.h"
#include "monitoring/metric_file.h"
#include "monitoring/sweep_table.h"
#include "pipeline/base/file.h"

static enum status read_metrics(struct report *report, const struct recipe *recipe,
                                const char *run_folder) {
  for (size_t i = 0; i < recipe->node_count; i++) {
    const struct recipe_node *node = &recipe->nodes[i];
    char path[PATH_MAX];
    if (!((1u << node->kind) & IN_TRAINING)) continue;
    CHECK(snprintf(path, sizeof path, "%s/%s/" METRIC_FILE_NAME, run_folder, node->name) < PATH_MAX,
          STATUS_MISMATCH, "path too long: '%s'", run_folder);
    TRY(curves_read(&report->curves, node->name, path));
  }
  return STATUS_OK;
}

static enum status read_evaluation(struct report *report, const struct recipe *recipe,
                                   const struct recipe_node *node, const char *run_folder) {
  const struct recipe_node *found;
  char path[PATH_MAX];
  TRY(recipe_upstream(&found, recipe, node, IN_EVALUATE));
  if (!found) return STATUS_OK;
  CHECK(snprintf(path, sizeof path, "%s/%s/" EVALUATION_FILE_NAME, run_folder, found->name) <
            PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", run_folder);
  return evaluation_read(&report->evaluation, path);
}

static enum status add_table(struct report *report, const struct recipe_node *node,
                             const char *csv) {
  struct text *html = &report->sweeps;
  TRY(text_add(html, "<h2>"));
  TRY(chart_escape(html, node->name));
  TRY(text_add(html, "</h2>\n<table>\n"));
  TRY(sweep_table_html(html, csv));
  return text_add(html, "</table>\n");
}

static enum status read_sweep(struct report *report, const struct recipe_node *node,
                              const char *run_folder) {
  char csv[PATH_MAX], markdown[PATH_MAX];
  struct text table = {0};
  const int length = snprintf(csv, sizeof csv, "%s/%s/" SWEEP_TABLE_CSV, run_folder, node->name);
  CHECK(length < PATH_MAX && snprintf(markdown, sizeof markdown, "%s/%s/" SWEEP_TABLE_MARKDOWN,
                                      run_folder, node->name) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", run_folder);
  TRY(text_add(&report->sweeps_plain, "\n"));
  TRY(file_read(&report->sweeps_plain, markdown));
  enum status status = file_read(&table, csv);
  if (status == STATUS_OK) status = add_table(report, node, table.bytes);
  text_free(&table);
  return status;
}

static enum status read_sweeps(struct report *report, const struct recipe *recipe,
                               const struct recipe_node *node, const char *run_folder) {
  for (size_t i = 0; i < recipe->node_count; i++) {
    const struct recipe_node *other = &recipe->nodes[i];
    if (other->kind == KIND_SWEEP && (other == node || recipe_depends(recipe, node, other)))
      TRY(read_sweep(report, other, run_folder));
  }
  return STATUS_OK;
}

enum status report_gather(struct report *report, const struct recipe *recipe,
                          const struct recipe_node *node, const char *run_folder) {
  *report = (struct report){.recipe = recipe};
  enum status status = read_evaluation(report, recipe, node, run_folder);
  if (status == STATUS_OK) status = read_metrics(report, recipe, run_folder);
  if (status == STATUS_OK) status = read_sweeps(report, recipe, node, run_folder);
  if (status != STATUS_OK) report_free(report);
  TRY(status);
  return STATUS_OK;
}

void report_free(struct report *report) {
  evaluation_free(&report->evaluation);
  curves_free(&report->curves);
  text_free(&report->sweeps);
  text_free(&report->sweeps_plain);
  *report = (struct report){0};
}

double report_entropy_share(const struct evaluation *evaluation,
                            const struct evaluation_system *system) {
  const double held_out = evaluation->systems[0].token_entropy;
  return held_out > 0 ? system->token_entropy / held_out : 0;
}

double report_bits(double nats) {
  return nats / log(2);
}
