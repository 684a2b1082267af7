/* What a training says and records: lines of the log, metrics.jsonl, facts of the manifest. */
#ifndef STAGES_TRAIN_TRAIN_REPORT_H
#define STAGES_TRAIN_TRAIN_REPORT_H

#include "stages/train/train_step.h"

/* Says what is trained, where, and in how much memory: bytes by account, activations included.
 * Collective over world: a micro-shard is measured. */
enum status train_report_start(struct train *train);

/* Whether the step that was done is one that is said: each log_every-th, the first, the last.
 * Local.
 */
bool train_report_due(const struct train *train);

/* Records a step, and says one line of it when it is due: losses, speed, and of several ranks what
 * their exchanges cost and which one is slowest. Local. WRITE when the record could not be written.
 */
enum status train_report_step(struct train *train, const struct train_result *result);

/* Records and says the loss on held-out rows. Local. As train_report_step. */
enum status train_report_validation(struct train *train, const struct train_losses *losses);

/* Records and says how it ended. Local. As train_report_step. */
enum status train_report_end(struct train *train, const char *hash);

#endif
