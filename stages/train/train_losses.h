/* The parts of an objective over one global batch, summed in canonical order. */
#ifndef STAGES_TRAIN_TRAIN_LOSSES_H
#define STAGES_TRAIN_TRAIN_LOSSES_H

#include "stages/train/train.h"

struct train_losses {
  double total[FLOW_PARTS]; /* normaliser: what each part covers in the whole batch */
  double sum[FLOW_PARTS];
};

/* Sets `total` from the rows that `data` loaded last. Collective over world. */
enum status train_losses_weigh(struct train *train, const struct train_data *data,
                               struct train_losses *losses);

/* Keeps the losses of this rank's micro step `j` for train_losses_sum; those of a second pass over
 * the same rows, for other parts, are added. Local. */
void train_losses_keep(struct train *train, int64_t j, const struct flow_losses *micro,
                       bool second);

/* Sets `sum` from the losses kept since. Collective over world. */
enum status train_losses_sum(struct train *train, struct train_losses *losses);

/* The mean of a part over what it covers (0 for nothing), and the objective. Local. */
double train_losses_part(const struct train_losses *losses, int64_t part);
double train_losses_objective(const struct train_losses *losses, const struct flow_kind *kind);

/* Writes loss and parts into a record. Local. */
void train_losses_record(const struct train_losses *losses, const struct flow_kind *kind,
                         struct metric_file *metrics);

#endif
