/* Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011) from Random123.
 *
 * A draw is a pure function of (seed, purpose, sample, step, position): never of rank, world size,
 * thread, batch neighbours or of how many draws came before. `sample` is the global sample index
 * (0 where there is none), `step` the optimizer or sampler step (0 where the draw must not change),
 * `position` the element within the sample.
 */
#ifndef PIPELINE_BASE_RANDOM_H
#define PIPELINE_BASE_RANDOM_H

#include <stdint.h>

struct random_stream {
  uint64_t key; /* hash of (seed, purpose) */
  uint64_t sample;
  uint32_t step;
};

/* The stream of draws for one purpose ("noise", "time", "init.blocks.0.w") and one sample. Local.
 */
struct random_stream random_open(uint64_t seed, const char *purpose, uint64_t sample,
                                 uint32_t step);

/* 32 random bits. `position` < 2^34. Local. */
uint32_t random_bits(struct random_stream stream, uint64_t position);

/* bits[i] = random_bits(stream, first + i). `first` + count < 2^34. Local. */
void random_fill_bits(uint32_t *bits, int64_t count, struct random_stream stream, uint64_t first);

/* 53-bit uniform in the open interval (0, 1): 0 and 1 are never returned. `position` < 2^33.
 * Local. */
double random_uniform(struct random_stream stream, uint64_t position);

/* Standard normal by Box-Muller on 53-bit uniforms. `position` < 2^33. Local. */
double random_normal(struct random_stream stream, uint64_t position);

/* Integer in [0, bound), without modulo bias beyond 2^-53. Local. */
uint64_t random_below(struct random_stream stream, uint64_t position, uint64_t bound);

/* values[i] = the standard normal at position first + i, single precision; the same values for any
 * division of a range into calls. `first` + count < 2^34. Local. */
void random_fill_normal(float *values, int64_t count, struct random_stream stream, uint64_t first);

#endif
