/* Sums, joins and cuts of values. */
#ifndef STAGES_MODEL_LAYERS_COMBINE_H
#define STAGES_MODEL_LAYERS_COMBINE_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

/* y = a + b, of one shape. Local. */
struct value *combine_add(struct tape *tape, struct value *a, struct value *b);

/* y = factor * x. Local. */
struct value *combine_scale(struct tape *tape, struct value *x, double factor);

/* y[n, ca + cb] = [a | b]. Local. */
struct value *combine_columns(struct tape *tape, struct value *a, struct value *b);

/* Per sequence of the batch: a's rows, then b's. a[batch * Ta, c], b[batch * Tb, c]. Local. */
struct value *combine_rows(struct tape *tape, struct value *a, struct value *b, int64_t batch);

/* Per sequence of the batch: rows [first, first + count) of x. Local. */
struct value *combine_cut_rows(struct tape *tape, struct value *x, int64_t batch, int64_t first,
                               int64_t count);

/* Rows index[i] of x, in that order; a row may appear once at most. Borrowed until backward. Local.
 */
struct value *combine_pick_rows(struct tape *tape, struct value *x, const int64_t *index,
                                int64_t count);

/* y[batch * P, c]: the learned rows tokens[P, c], times factor[b] (NULL: 1), plus row b of x
 * [batch, c] (NULL: nothing). Local. */
struct value *combine_tokens(struct tape *tape, struct param *tokens, const float *factor,
                             struct value *x, int64_t batch);

#endif
