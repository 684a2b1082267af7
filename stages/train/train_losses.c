#include "stages/train/train_losses.h"

#include <string.h>

enum status train_losses_weigh(struct train *train, const struct train_data *data,
                               struct train_losses *losses) {
  *losses = (struct train_losses){{0}, {0}};
  for (int64_t j = 0; j < grid_micro_steps(&train->grid); j++) {
    const struct flow_batch batch = train_data_micro(data, j);
    double *weight = train->scalars + j * FLOW_PARTS;
    memset(weight, 0, FLOW_PARTS * sizeof(*weight));
    train->flow.kind->weights(&train->flow, &batch, weight);
  }
  return grid_sum_scalars(&train->grid, losses->total, train->scalars, FLOW_PARTS);
}

void train_losses_keep(struct train *train, int64_t j, const struct flow_losses *micro,
                       bool second) {
  double *kept = train->scalars + j * FLOW_PARTS;
  for (int part = 0; part < FLOW_PARTS; part++)
    kept[part] = second ? kept[part] + micro->sum[part] : micro->sum[part];
}

enum status train_losses_sum(struct train *train, struct train_losses *losses) {
  return grid_sum_scalars(&train->grid, losses->sum, train->scalars, FLOW_PARTS);
}

double train_losses_part(const struct train_losses *losses, int64_t part) {
  return losses->total[part] > 0 ? losses->sum[part] / losses->total[part] : 0;
}

double train_losses_objective(const struct train_losses *losses, const struct flow_kind *kind) {
  if (kind->objective) return kind->objective(losses->sum, losses->total);
  double loss = 0;
  for (int64_t part = 0; kind->parts[part]; part++) loss += train_losses_part(losses, part);
  return loss;
}

void train_losses_record(const struct train_losses *losses, const struct flow_kind *kind,
                         struct metric_file *metrics) {
  metric_file_real(metrics, "loss", train_losses_objective(losses, kind));
  metric_file_open_group(metrics, "parts");
  for (int64_t part = 0; kind->parts[part]; part++)
    if (losses->total[part] > 0) /* covered by some row */
      metric_file_real(metrics, kind->parts[part], train_losses_part(losses, part));
  metric_file_close_group(metrics);
}
