#include "monitoring/sweep_outcomes.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/curves.h"
#include "monitoring/evaluation.h"
#include "monitoring/metric_file.h"

const struct outcome *outcomes_at(const struct outcomes *outcomes, size_t index) {
  return (const struct outcome *)(const void *)outcomes->items.bytes + index;
}

const struct outcome *outcomes_find(const struct outcomes *outcomes, const char *name) {
  for (size_t i = 0; i < outcomes_count(outcomes); i++)
    if (strcmp(outcomes_at(outcomes, i)->name, name) == 0) return outcomes_at(outcomes, i);
  return NULL;
}

void outcomes_free(struct outcomes *outcomes) {
  text_free(&outcomes->items);
}

/* "node.detail.what"; no detail where it is empty. */
static enum status add(struct outcomes *outcomes, const char *node, const char *detail,
                       const char *what, double value) {
  struct outcome outcome = {.value = value};
  snprintf(outcome.name, sizeof outcome.name, "%s%s%s.%s", node, *detail ? "." : "", detail, what);
  return text_add_bytes(&outcomes->items, &outcome, sizeof outcome);
}

static const char *calls_of(char out[32], int64_t nfe) {
  out[0] = '\0';
  if (nfe) snprintf(out, 32, "nfe%" PRId64, nfe);
  return out;
}

static enum status add_system(struct outcomes *outcomes, const struct evaluation_system *system) {
  char nfe[32];
  calls_of(nfe, system->nfe);
  TRY(add(outcomes, system->name, nfe, "judge_perplexity", system->judge_perplexity));
  TRY(add(outcomes, system->name, nfe, "token_entropy", system->token_entropy));
  TRY(add(outcomes, system->name, nfe, "distinct_1", system->distinct_1));
  return add(outcomes, system->name, nfe, "distinct_2", system->distinct_2);
}

static enum status add_score(struct outcomes *outcomes, const struct evaluation_score *score) {
  static const char *const names[] = {"rouge_1", "rouge_2", "rouge_l"};
  char nfe[32];
  TRY(add(outcomes, score->name, calls_of(nfe, score->nfe), "bleu", score->bleu));
  for (int i = 0; i < 3; i++) TRY(add(outcomes, score->name, nfe, names[i], score->rouge[i]));
  return STATUS_OK;
}

static enum status add_bound(struct outcomes *outcomes, const struct evaluation_bound *bound) {
  char form[EVALUATION_NAME_BYTES + 24];
  snprintf(form, sizeof form, "%s%" PRId64, bound->form, bound->steps);
  return add(outcomes, bound->name, form, "nats", bound->nats);
}

/* The first system is held-out text, which no configuration changes. */
static enum status add_evaluation(struct outcomes *outcomes, const struct evaluation *evaluation) {
  for (size_t i = 1; i < evaluation->system_count; i++)
    TRY(add_system(outcomes, &evaluation->systems[i]));
  for (size_t i = 0; i < evaluation->bound_count; i++)
    TRY(add_bound(outcomes, &evaluation->bounds[i]));
  for (size_t i = 0; i < evaluation->score_count; i++)
    TRY(add_score(outcomes, &evaluation->scores[i]));
  for (size_t i = 0; i < evaluation->model_count; i++)
    TRY(add(outcomes, evaluation->models[i].name, "", evaluation->models[i].part,
            evaluation->models[i].value));
  return STATUS_OK;
}

/* The last point of a curve, where there is one. */
static enum status add_last(struct outcomes *outcomes, const struct curves *curves,
                            const char *node, const char *event, const char *what) {
  const struct curve *curve = curves_find(curves, node, event, "loss");
  if (!curve || curve_count(curve) == 0) return STATUS_OK;
  const double *values = (const double *)(const void *)curve->y.bytes;
  return add(outcomes, node, "", what, values[curve_count(curve) - 1]);
}

static enum status add_training(struct outcomes *outcomes, const char *node, const char *path) {
  struct curves curves = {0};
  enum status status = curves_read(&curves, node, path);
  if (status == STATUS_OK) status = add_last(outcomes, &curves, node, "validation", "loss");
  if (status == STATUS_OK) status = add_last(outcomes, &curves, node, "step", "training_loss");
  curves_free(&curves);
  return status;
}

enum status outcomes_add(struct outcomes *outcomes, const struct recipe_node *node,
                         const char *folder) {
  const bool trains = (IN_TRAINING & (1 << node->kind)) != 0;
  struct evaluation evaluation = {0};
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/%s", folder,
                 trains ? METRIC_FILE_NAME : EVALUATION_FILE_NAME) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  if (trains) return add_training(outcomes, node->name, path);
  enum status status = evaluation_read(&evaluation, path);
  if (status == STATUS_OK) status = add_evaluation(outcomes, &evaluation);
  evaluation_free(&evaluation);
  return status;
}
