#include "monitoring/cost.h"

double cost_forward_flop(const struct cost_model *model) {
  const double products = 2.0 * (double)model->matrix_elements;
  const double attention =
      4.0 * (double)model->depth * (double)model->width * (double)model->positions;
  return products + attention;
}

double cost_training_flop(const struct cost_model *model) {
  return 3.0 * cost_forward_flop(model);
}
