#include "sharding/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/random.h"

enum { ROUNDS = 6 };

/* One permutation: a key for each round and the width of each half in bits. */
struct feistel {
  uint64_t keys[ROUNDS];
  int half_bits;
};

/* Rounds are keyed by the stream; the mixing within a round is a hash of the right half. */
static struct feistel make(struct random_stream stream, int64_t size) {
  struct feistel feistel = {.half_bits = 1};
  while (feistel.half_bits < 31 && ((uint64_t)size - 1) >> (2 * feistel.half_bits))
    feistel.half_bits++;
  for (uint64_t i = 0; i < ROUNDS; i++)
    feistel.keys[i] = (uint64_t)random_bits(stream, 2 * i) << 32 | random_bits(stream, 2 * i + 1);
  return feistel;
}

static uint64_t apply(const struct feistel *feistel, uint64_t value) {
  const uint64_t mask = ((uint64_t)1 << feistel->half_bits) - 1;
  uint64_t left = value >> feistel->half_bits, right = value & mask;
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t mixed =
        left ^ (hash_bytes_seeded(&right, sizeof right, feistel->keys[i]) & mask);
    left = right;
    right = mixed;
  }
  return left << feistel->half_bits | right;
}

/* The image of `position` in [0, size). */
static int64_t permute(struct random_stream stream, int64_t size, int64_t position) {
  const struct feistel feistel = make(stream, size);
  uint64_t value = (uint64_t)position;
  do /* the cycle through `position` comes back into the range, at the latest at its start */
    value = apply(&feistel, value);
  while (value >= (uint64_t)size);
  return (int64_t)value;
}

int64_t order_place(uint64_t seed, const char *purpose, uint64_t id, int64_t size,
                    int64_t position) {
  return permute(random_open(seed, purpose, id, 0), size, position);
}

int64_t order_permute(const struct order *order, int64_t epoch, int64_t position) {
  if (order->sequential) return position;
  return order_place(order->seed, "order", (uint64_t)epoch, order->rows, position);
}

/* A sample of mixed corpora. */
static struct order_sample mixed(const struct order *order, int64_t index) {
  const struct order_mix *mix = &order->mix;
  const int64_t block = index / ORDER_BLOCK;
  int64_t place = permute(random_open(order->seed, "mix", (uint64_t)block, 0), ORDER_BLOCK,
                          index % ORDER_BLOCK);
  int64_t corpus = 0;
  for (; place >= mix->shares[corpus]; corpus++) place -= mix->shares[corpus];
  const int64_t position = block * mix->shares[corpus] + place;
  const int64_t rows = mix->first[corpus + 1] - mix->first[corpus];
  struct order_sample sample = {.index = index, .epoch = position / rows};
  const struct random_stream stream =
      random_open(order->seed, "corpus", (uint64_t)sample.epoch, (uint32_t)corpus);
  sample.row = mix->first[corpus] + permute(stream, rows, position % rows);
  return sample;
}

struct order_sample order_at(const struct order *order, int64_t step, int64_t slot) {
  const int64_t index = step * order->batch + slot;
  if (order->mix.count) return mixed(order, index);
  struct order_sample sample = {.index = index, .epoch = index / order->rows, .row = -1};
  if (order->single_pass && sample.epoch) return sample;
  sample.row = order_permute(order, sample.epoch, index % order->rows);
  return sample;
}

int64_t order_steps(const struct order *order) {
  return (order->rows + order->batch - 1) / order->batch;
}

uint64_t order_sample_hash(struct order_sample sample) {
  const int64_t parts[2] = {sample.index, sample.row};
  return sample.row < 0 ? 0 : hash_bytes(parts, sizeof parts);
}

uint64_t order_step_hash(const struct order *order, int64_t step) {
  uint64_t sum = 0;
  for (int64_t slot = 0; slot < order->batch; slot++)
    sum += order_sample_hash(order_at(order, step, slot));
  return sum;
}

/* Hash of the mix, to tell it in few words. */
static uint64_t mix_hash(const struct order_mix *mix) {
  const size_t count = (size_t)mix->count;
  const uint64_t first = hash_bytes(mix->first, (count + 1) * sizeof *mix->first);
  return hash_bytes_seeded(mix->shares, count * sizeof *mix->shares, first);
}

void order_fingerprint(char hex[HASH_HEX_BYTES], const struct order *order,
                       const struct order_fingerprint *parts) {
  char text[512], mix[32] = "";
  if (order->mix.count) snprintf(mix, sizeof mix, " mix %016" PRIx64, mix_hash(&order->mix));
  const int length = snprintf(
      text, sizeof text, "data %s tokenizer %s seed %llu batch %lld rows %lld x %lld %d %d%s",
      parts->data_hash, parts->tokenizer_hash, (unsigned long long)order->seed,
      (long long)order->batch, (long long)order->rows, (long long)parts->row_length,
      order->sequential, order->single_pass, mix);
  hash_to_hex(hex,
              hash_bytes128(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1));
}
