#include "stages/model/kernels/product_tile.h"

#include "pipeline/base/bf16.h"

struct product_cut product_tile_cut(int64_t total, int64_t unit, int64_t limit, int64_t wanted) {
  const int64_t units = (total + unit - 1) / unit;
  int64_t pieces = (total + limit - 1) / limit;
  if (pieces < wanted) pieces = wanted;
  const int64_t size = (units + pieces - 1) / pieces * unit;
  if (size >= total) return (struct product_cut){total, 1, total};
  const int64_t count = (total + size - 1) / size;
  return (struct product_cut){size, count, total - (count - 1) * size};
}

struct onednn_shape product_tile_shape(const struct product *product, int64_t m, int64_t n,
                                       int64_t k) {
  return (struct onednn_shape){.m = m,
                               .n = n,
                               .k = k,
                               .a_row = product->a_row,
                               .a_column = product->a_column,
                               .b_row = product->b_row,
                               .b_column = product->b_column,
                               .c_row = product->c_row,
                               .input = product->input,
                               .output = product->output,
                               .bias = product->bias != NULL,
                               .add = product->add};
}

static float read_element(const void *values, int64_t dtype, int64_t i) {
  return dtype == DTYPE_BF16 ? bf16_to_float(((const bf16 *)values)[i])
                             : ((const float *)values)[i];
}

static void write_element(void *values, int64_t dtype, int64_t i, float value) {
  if (dtype == DTYPE_BF16)
    ((bf16 *)values)[i] = bf16_from_float(value);
  else
    ((float *)values)[i] = value;
}

static void run_plain(const struct onednn_shape *s, void *c, const void *a, const void *b,
                      const float *bias) {
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->n; j++) {
      float sum = 0;
      for (int64_t k = 0; k < s->k; k++)
        sum += read_element(a, s->input, i * s->a_row + k * s->a_column) *
               read_element(b, s->input, k * s->b_row + j * s->b_column);
      if (s->bias) sum += bias[j];
      if (s->add) sum += read_element(c, s->output, i * s->c_row + j);
      write_element(c, s->output, i * s->c_row + j, sum);
    }
}

void product_tile_run(const struct onednn_product *tile, const struct onednn_shape *shape, void *c,
                      const void *a, const void *b, const void *bias, void *scratch) {
  if (tile && onednn_run(tile, c, a, b, bias, scratch)) return;
  run_plain(shape, c, a, b, bias);
}
