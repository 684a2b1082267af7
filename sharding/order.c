#include "sharding/order.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/random.h"

enum { ROUNDS = 6 };

/* One permutation: a key for each round and the width of each half in bits. */
struct feistel {
  uint64_t keys[ROUNDS];
  int half_bits;
};

/* Rounds are keyed by (seed, epoch); the mixing within a round is a hash of the right half. */
static struct feistel make(const struct order *order, int64_t epoch) {
  struct feistel feistel = {.half_bits = 1};
  const struct random_stream stream = random_open(order->seed, "order", (uint64_t)epoch, 0);
  while (feistel.half_bits < 31 && ((uint64_t)order->rows - 1) >> (2 * feistel.half_bits))
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

int64_t order_permute(const struct order *order, int64_t epoch, int64_t position) {
  if (order->sequential) return position;
  const struct feistel feistel = make(order, epoch);
  uint64_t value = (uint64_t)position;
  do /* the cycle through `position` comes back into the range, at the latest at its start */
    value = apply(&feistel, value);
  while (value >= (uint64_t)order->rows);
  return (int64_t)value;
}

struct order_sample order_at(const struct order *order, int64_t step, int64_t slot) {
  const int64_t index = step * order->batch + slot;
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

void order_fingerprint(char hex[HASH_HEX_BYTES], const struct order *order,
                       const struct order_fingerprint *parts) {
  char text[512];
  const int length = snprintf(
      text, sizeof text, "data %s tokenizer %s seed %llu batch %lld rows %lld x %lld %d %d",
      parts->data_hash, parts->tokenizer_hash, (unsigned long long)order->seed,
      (long long)order->batch, (long long)order->rows, (long long)parts->row_length,
      order->sequential, order->single_pass);
  hash_to_hex(hex,
              hash_bytes128(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1));
}
