#include "monitoring/report.h"

#include <math.h>
#include <limits.h>
#include <stdio.h>

#include "monitoring/metric_file.h"

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

enum status report_gather(struct report *report, const struct recipe *recipe,
                          const struct recipe_node *node, const char *run_folder) {
  *report = (struct report){.recipe = recipe};
  enum status status = read_evaluation(report, recipe, node, run_folder);
  if (status == STATUS_OK) status = read_metrics(report, recipe, run_folder);
  if (status != STATUS_OK) report_free(report);
  TRY(status);
  return STATUS_OK;
}

void report_free(struct report *report) {
  evaluation_free(&report->evaluation);
  curves_free(&report->curves);
  *report = (struct report){0};
}

double report_entropy_share(const struct evaluation *evaluation,
                            const struct evaluation_system *system) {
  const double held_out = evaluation->systems[0].token_entropy;
  return held_out > 0 ? system->token_entropy / held_out : 0;
}

double report_bits(double nats) { return nats / log(2); }
