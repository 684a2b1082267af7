/* What the vocabulary heads share, part six: the nucleus of a softmax, its most probable ids that
 * have a given share together (arXiv 1904.09751).
 */
#ifndef STAGES_MODEL_LAYERS_HEAD_NUCLEUS_H
#define STAGES_MODEL_LAYERS_HEAD_NUCLEUS_H

#include "stages/model/layers/head_best.h"

/* floors[N]: the nucleus of softmax(logits / best->temperature) holds the ids whose logit is not
 * below. Two streamed passes count shares over the distance to the highest logit, the second within
 * the interval that the first found, so that ids whose logits differ by less than 4e-5 temperatures
 * count as one. Shares are whole numbers: the same floors for any group. Memory of the tape; NULL
 * when that measures. Collective over the vocabulary group; failures are left in tape->status. */
const double *head_nucleus_floors(struct tape *tape, const struct head_best *best, double top_p);

#endif
