#include "stages/model/kernels/product.h"

#include <assert.h>
#include <stddef.h>

#include "stages/model/kernels/onednn.h"
#include "stages/model/kernels/product_tile.h"
#include "stages/model/kernels/scratch.h"

static struct scratch scratch, wide_scratch;

static void run(const struct product *product) {
  if (product->a_column == 1) {
    product_rows_run(product, &scratch);
    return;
  }
  assert(product->a_row == 1 && product->bias == NULL);
  product_columns_run(product, &scratch);
}

/* Whether the library multiplies bf16 on this machine. */
static bool multiplies_bf16(void) {
  const struct onednn_shape shape = {.m = 1,
                                     .n = 1,
                                     .k = 1,
                                     .a_row = 1,
                                     .a_column = 1,
                                     .b_row = 1,
                                     .b_column = 1,
                                     .c_row = 1,
                                     .input = DTYPE_BF16,
                                     .output = DTYPE_BF16};
  const struct onednn_product *product;
  onednn_find(&product, &shape, 1);
  return product != NULL;
}

void product_run(const struct product *product) {
  if (product->m <= 0 || product->n <= 0 || product->k <= 0) return;
  if (product->input != DTYPE_BF16 || multiplies_bf16()) {
    run(product);
    return;
  }
  const struct product wide = product_widen(product, &wide_scratch);
  run(&wide);
  product_narrow(product, &wide);
}

void product_close(void) {
  scratch_free(&scratch);
  scratch_free(&wide_scratch);
  onednn_close();
}
