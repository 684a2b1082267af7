#include "stages/model/kernels/product.h"

#include <assert.h>
#include <stddef.h>

#include "stages/model/kernels/onednn.h"
#include "stages/model/kernels/processor.h"
#include "stages/model/kernels/product_amx.h"
#include "stages/model/kernels/product_tile.h"
#include "stages/model/kernels/scratch.h"

static struct scratch scratch, wide_scratch;

/* Whether the library multiplies bf16 at all. */
static bool library_multiplies_bf16(void) {
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

/* Whether bf16 is multiplied faster as F32: on a processor without bf16 products, or whose bf16
 * products are slower. */
static bool widens(const struct product *product) {
  if (product->input != DTYPE_BF16) return false;
  return !processor_has_fast_pairs() || !library_multiplies_bf16();
}

bool product_uses_tiles(void) {
  return processor_has_tiles() && onednn_has_tiles();
}

void product_run(const struct product *product) {
  if (product->m <= 0 || product->n <= 0 || product->k <= 0) return;
  if (product->input == DTYPE_BF16 && product_uses_tiles()) {
    product_amx_run(product, &scratch, &wide_scratch);
    return;
  }
  const bool wide = widens(product);
  if (product->a_column == 1) {
    product_rows_run(product, &scratch, wide ? &wide_scratch : NULL);
    return;
  }
  assert(product->a_row == 1 && product->b_column == 1);
  assert(product->bias == NULL && product->output == DTYPE_F32);
  product_columns_run(product, &scratch,
                      wide || product->input == DTYPE_F32 ? &wide_scratch : NULL);
}

void product_close(void) {
  scratch_free(&scratch);
  scratch_free(&wide_scratch);
  onednn_close();
}
