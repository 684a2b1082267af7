#include "stages/model/layers/attention_mask.h"

#include <assert.h>

static int32_t end_of(int64_t end) {
  assert(end <= INT32_MAX);
  return (int32_t)(end > 0 ? end : 0);
}

void attention_mask_padding(struct attention_range *ranges, int64_t queries, int64_t valid) {
  for (int64_t i = 0; i < queries; i++)
    ranges[i] = (struct attention_range){.first_end = end_of(valid)};
}

void attention_mask_causal(struct attention_range *ranges, int64_t queries, int64_t keys) {
  for (int64_t i = 0; i < queries; i++)
    ranges[i] = (struct attention_range){.first_end = end_of(i + 1 + keys - queries)};
}

void attention_mask_prefix(struct attention_range *ranges, int64_t queries, int64_t prefix,
                           int64_t valid, bool causal) {
  for (int64_t i = 0; i < queries; i++) {
    const int64_t own = causal && i + 1 < valid ? i + 1 : valid;
    ranges[i] = (struct attention_range){.first_end = end_of(i < prefix ? prefix : own)};
  }
}

/* The share (i + 1) / queries of `length`, rounded up. */
static int64_t share(int64_t i, int64_t queries, int64_t length) {
  return ((i + 1) * length + queries - 1) / queries;
}

void attention_mask_two_causal(struct attention_range *ranges, int64_t queries, int64_t first,
                               int64_t second) {
  for (int64_t i = 0; i < queries; i++)
    ranges[i] = (struct attention_range){.first_end = end_of(share(i, queries, first)),
                                         .second_begin = end_of(first),
                                         .second_end = end_of(first + share(i, queries, second))};
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void attention_mask_two_stream(struct attention_range *ranges, int64_t length, int64_t block) {
  for (int64_t i = 0; i < length; i++) {
    const int64_t begin = i / block * block, end = smaller(begin + block, length);
    ranges[i] = (struct attention_range){.first_end = end_of(end)};
    ranges[length + i] = (struct attention_range){.first_end = end_of(begin),
                                                  .second_begin = end_of(length + begin),
                                                  .second_end = end_of(length + end)};
  }
}
