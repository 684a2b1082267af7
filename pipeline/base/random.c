#include "pipeline/base/random.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#include "pipeline/base/hash.h"
#include "pipeline/base/random_blocks.h"

static const double TWO_PI = 6.283185307179586476925286766559;

struct random_stream random_open(uint64_t seed, const char *purpose, uint64_t sample,
                                 uint32_t step) {
  const struct random_stream stream = {
      .key = hash_bytes_seeded(purpose, strlen(purpose), seed), .sample = sample, .step = step};
  return stream;
}

static philox4x32_ctr_t block_at(struct random_stream stream, uint64_t block) {
  const philox4x32_ctr_t counter = {
      {(uint32_t)block, stream.step, (uint32_t)stream.sample, (uint32_t)(stream.sample >> 32)}};
  const philox4x32_key_t key = {{(uint32_t)stream.key, (uint32_t)(stream.key >> 32)}};
  return philox4x32(counter, key);
}

/* Uniform in (0, 1) from 53 bits: the odd multiples of 2^-54. */
static double unit_interval(uint32_t low, uint32_t high) {
  const uint64_t bits = (((uint64_t)high << 32) | low) >> 11;
  return ((double)bits + 0.5) * 0x1p-53;
}

uint32_t random_bits(struct random_stream stream, uint64_t position) {
  return block_at(stream, position / 4).v[position % 4];
}

/* What a chunk of blocks that begins at `block` has of the draws from a position on: `count` of
 * them after the first `skip`. */
struct run {
  uint64_t block;
  int blocks;
  int64_t skip, count;
};

static struct run run_at(uint64_t position, int64_t left) {
  const int64_t skip = (int64_t)(position % RANDOM_WORDS), most = RANDOM_CHUNK - skip;
  const int64_t count = left < most ? left : most;
  const int blocks = (int)((skip + count + RANDOM_WORDS - 1) / RANDOM_WORDS);
  return (struct run){position / RANDOM_WORDS, blocks, skip, count};
}

/* Values of 32 bits at positions `first` to first + count, as `make` makes them. */
static void fill(void *values, int64_t count, struct random_stream stream, uint64_t first,
                 random_maker *make) {
  union {
    uint32_t bits[RANDOM_CHUNK];
    float normals[RANDOM_CHUNK];
  } chunk;
  const size_t bytes = sizeof chunk / RANDOM_CHUNK;
  for (int64_t i = 0, taken; i < count; i += taken) {
    const struct run run = run_at(first + (uint64_t)i, count - i);
    taken = run.count;
    make(&chunk, run.blocks, stream, run.block);
    memcpy((unsigned char *)values + (size_t)i * bytes,
           (unsigned char *)&chunk + (size_t)run.skip * bytes, (size_t)taken * bytes);
  }
}

void random_fill_bits(uint32_t *bits, int64_t count, struct random_stream stream, uint64_t first) {
  fill(bits, count, stream, first, random_kernel_pick()->bits);
}

double random_uniform(struct random_stream stream, uint64_t position) {
  const philox4x32_ctr_t block = block_at(stream, position / 2);
  const uint64_t half = 2 * (position % 2);
  return unit_interval(block.v[half], block.v[half + 1]);
}

double random_normal(struct random_stream stream, uint64_t position) {
  const philox4x32_ctr_t block = block_at(stream, position / 2);
  const double radius = sqrt(-2.0 * log(unit_interval(block.v[0], block.v[1])));
  const double angle = TWO_PI * unit_interval(block.v[2], block.v[3]);
  return radius * (position % 2 ? sin(angle) : cos(angle));
}

uint64_t random_below(struct random_stream stream, uint64_t position, uint64_t bound) {
  const double scaled = random_uniform(stream, position) * (double)bound;
  const uint64_t value = (uint64_t)scaled;
  return value < bound ? value : bound - 1;
}

enum { CHUNK = 4096 }; /* more are shared out to threads */

void random_fill_normal(float *values, int64_t count, struct random_stream stream, uint64_t first) {
  random_maker *make = random_kernel_pick()->normals;
#pragma omp parallel for schedule(static) if (count > CHUNK)
  for (int64_t i = 0; i < count; i += CHUNK)
    fill(values + i, count - i < CHUNK ? count - i : CHUNK, stream, first + (uint64_t)i, make);
}
