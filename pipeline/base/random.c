#include "pipeline/base/random.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#include "pipeline/base/hash.h"

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

void random_fill_bits(uint32_t *bits, int64_t count, struct random_stream stream, uint64_t first) {
  int64_t i = 0;
  for (; i < count && (first + (uint64_t)i) % 4; i++)
    bits[i] = random_bits(stream, first + (uint64_t)i);
  for (; i + 4 <= count; i += 4) {
    const philox4x32_ctr_t block = block_at(stream, (first + (uint64_t)i) / 4);
    memcpy(bits + i, block.v, sizeof block.v);
  }
  for (; i < count; i++) bits[i] = random_bits(stream, first + (uint64_t)i);
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

/* Four single-precision normals from one block: 32 bits an angle, 32 bits a radius. */
static void four_normals(float out[4], struct random_stream stream, uint64_t block) {
  const philox4x32_ctr_t bits = block_at(stream, block);
  for (int pair = 0; pair < 2; pair++) {
    const float u = ((float)(bits.v[2 * pair] >> 8) + 0.5f) * 0x1p-24f;
    const float angle = (float)TWO_PI * ((float)(bits.v[2 * pair + 1] >> 8) * 0x1p-24f);
    const float radius = sqrtf(-2.0f * logf(u));
    out[2 * pair] = radius * cosf(angle);
    out[2 * pair + 1] = radius * sinf(angle);
  }
}

static void fill_normal(float *values, int64_t count, struct random_stream stream, uint64_t first) {
  for (int64_t i = 0; i < count;) {
    float four[4];
    const uint64_t position = first + (uint64_t)i;
    four_normals(four, stream, position / 4);
    for (uint64_t lane = position % 4; lane < 4 && i < count; lane++) values[i++] = four[lane];
  }
}

enum { CHUNK = 4096 }; /* more are shared out to threads */

void random_fill_normal(float *values, int64_t count, struct random_stream stream, uint64_t first) {
#pragma omp parallel for schedule(static) if (count > CHUNK)
  for (int64_t i = 0; i < count; i += CHUNK)
    fill_normal(values + i, count - i < CHUNK ? count - i : CHUNK, stream, first + (uint64_t)i);
}
