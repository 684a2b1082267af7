#include "stages/model/kernels/product.h"

#include <assert.h>
#include <stddef.h>

#include "stages/model/kernels/onednn.h"
#include "stages/model/kernels/product_tile.h"
#include "stages/model/kernels/scratch.h"

static struct scratch scratch;

void product_run(const struct product *product) {
  if (product->m <= 0 || product->n <= 0 || product->k <= 0) return;
  if (product->a_column == 1) {
    product_rows_run(product, &scratch);
    return;
  }
  assert(product->a_row == 1 && product->bias == NULL);
  product_columns_run(product, &scratch);
}

void product_close(void) {
  scratch_free(&scratch);
  onednn_close();
}
