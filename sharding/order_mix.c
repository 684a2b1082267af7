#include <math.h>

#include "sharding/order.h"

/* Gives each of the `left` samples to the corpus with the largest remainder, the first of equals.
 */
static void give_remainders(struct order_mix *mix, double *remainders, int64_t left) {
  for (; left > 0; left--) {
    int64_t most = 0;
    for (int64_t i = 1; i < mix->count; i++)
      if (remainders[i] > remainders[most]) most = i;
    mix->shares[most]++;
    remainders[most] = -1;
  }
}

static void set_shares(struct order_mix *mix, const double *weights, double sum) {
  double remainders[ORDER_CORPORA];
  int64_t left = ORDER_BLOCK;
  for (int64_t i = 0; i < mix->count; i++) {
    const double share = ORDER_BLOCK * (weights[i] / sum);
    mix->shares[i] = (int64_t)floor(share);
    remainders[i] = share - floor(share);
    left -= mix->shares[i];
  }
  give_remainders(mix, remainders, left);
}

enum status order_mix_make(struct order_mix *mix, const double *weights, const int64_t *rows,
                           int64_t count) {
  double sum = 0;
  *mix = (struct order_mix){.count = count};
  CHECK(count >= 1 && count <= ORDER_CORPORA, STATUS_MISMATCH, "%lld corpora; 1 to %d can be mixed",
        (long long)count, ORDER_CORPORA);
  for (int64_t i = 0; i < count; i++) sum += weights[i];
  CHECK(sum > 0 && isfinite(sum), STATUS_MISMATCH, "the weights of a mix have the sum %g", sum);
  set_shares(mix, weights, sum);
  for (int64_t i = 0; i < count; i++) {
    mix->first[i + 1] = mix->first[i] + rows[i];
    CHECK(weights[i] == 0 || mix->shares[i] > 0, STATUS_MISMATCH,
          "weight %lld (%g of %g) is less than a thousandth; leave that input out, or raise it",
          (long long)i, weights[i], sum);
    CHECK(mix->shares[i] == 0 || rows[i] > 0, STATUS_MISMATCH,
          "input %lld has the weight %g but no rows", (long long)i, weights[i]);
  }
  return STATUS_OK;
}
