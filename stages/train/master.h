/* Master weights: the F32 numbers that the optimizer works on, of which the network sees bf16.
 *
 * A master of F32 bits m is kept as its bf16 working copy h = m rounded to nearest (ties up) and
 * the difference l of the bits, m = (h << 16) + l with l in [-2^15, 2^15): two more bytes a weight,
 * and nothing is lost. Where the network works in F32, the weights are their own masters and `low`
 * is NULL.
 */
#ifndef STAGES_TRAIN_MASTER_H
#define STAGES_TRAIN_MASTER_H

#include <stdint.h>

/* values[i] = master i, count of them; `weights` is F32 when `low` is NULL, else bf16. Local. */
void master_load(float *values, const void *weights, const int16_t *low, int64_t first,
                 int64_t count);

/* Sets masters [first, first + count) and their working copies. Local. */
void master_store(void *weights, int16_t *low, const float *values, int64_t first, int64_t count);

#endif
