#include "stages/tokenize/unigram_loss.h"

#include <math.h>

double unigram_loss(const int64_t *counts, const int64_t *of, int64_t size) {
  double total = (double)size, tokens = 0, sum = 0;
  for (int64_t i = 0; i < size; i++) total += (double)of[i];
  for (int64_t i = 0; i < size; i++) {
    tokens += (double)counts[i];
    if (counts[i]) sum -= (double)counts[i] * log(((double)of[i] + 1) / total);
  }
  return tokens > 0 ? sum / tokens : 0;
}
