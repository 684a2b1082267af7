/* One matrix product by a plain call of oneDNN, as its manual shows it: what the wrapper is
 * measured against. Ends the program on failure. */
#ifndef TESTS_COMMON_RAW_PRODUCT_H
#define TESTS_COMMON_RAW_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* c[m, n] = or += a[m, k] b[k, n], contiguous, each of a and b stored as it is or transposed. */
struct raw_product_shape {
  void *c, *a, *b;
  int64_t m, n, k;
  bool a_transposed, b_transposed, bf16, bf16_out, add;
};

struct raw_product;

/* Makes the product. Owned by the caller. Local. */
struct raw_product *raw_product_make(const struct raw_product_shape *shape);
void raw_product_run(struct raw_product *product);
void raw_product_free(struct raw_product *product);

#endif
