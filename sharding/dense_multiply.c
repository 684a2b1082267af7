#include "sharding/dense_multiply.h"

/* Panels of a and b that fit the second-level cache. */
enum { PANEL_ROWS = 64, PANEL_COLUMNS = 128, PANEL_DEPTH = 128 };

enum { PLAIN_ROWS = 4, PLAIN_COLUMNS = 4 };

static void plain_tile(double *c, int64_t stride, const double *a, const double *b, int64_t k) {
  double sums[PLAIN_ROWS][PLAIN_COLUMNS];
  for (int64_t i = 0; i < PLAIN_ROWS; i++)
    for (int64_t j = 0; j < PLAIN_COLUMNS; j++) sums[i][j] = c[i * stride + j];
  for (int64_t p = 0; p < k; p++, a += PLAIN_ROWS, b += PLAIN_COLUMNS)
    for (int64_t i = 0; i < PLAIN_ROWS; i++)
      for (int64_t j = 0; j < PLAIN_COLUMNS; j++) sums[i][j] += a[i] * b[j];
  for (int64_t i = 0; i < PLAIN_ROWS; i++)
    for (int64_t j = 0; j < PLAIN_COLUMNS; j++) c[i * stride + j] = sums[i][j];
}

const struct dense_kernel dense_kernel_plain = {PLAIN_ROWS, PLAIN_COLUMNS, plain_tile};

const struct dense_kernel *dense_kernel_pick(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return &dense_kernel_avx512;
  if (__builtin_cpu_supports("avx2")) return &dense_kernel_avx2;
  return &dense_kernel_plain;
}

struct block {
  int64_t first, count;
};

/* Panels of `width` columns of the view (transposed: of rows), filled up with zeros. */
static void pack(double *packed, struct dense_view view, struct block across, struct block depth,
                 int64_t width, double sign) {
  for (int64_t j = 0; j < across.count; j += width)
    for (int64_t p = 0; p < depth.count; p++)
      for (int64_t l = 0; l < width; l++) {
        const int64_t at =
            (depth.first + p) * view.row_stride + (across.first + j + l) * view.column_stride;
        *packed++ = j + l < across.count ? sign * view.values[at] : 0;
      }
}

static struct block block_at(int64_t first, int64_t size, int64_t end) {
  return (struct block){first, end - first < size ? end - first : size};
}

/* A tile at the edge goes through a whole tile of its own. */
static void edge_tile(const struct dense_kernel *kernel, double *c, int64_t stride, const double *a,
                      const double *b, const struct dense_sizes *size) {
  double tile[DENSE_TILE_ROWS_MAX * DENSE_TILE_COLUMNS_MAX] = {0};
  for (int64_t i = 0; i < size->m; i++)
    for (int64_t j = 0; j < size->n; j++) tile[i * kernel->columns + j] = c[i * stride + j];
  kernel->tile(tile, kernel->columns, a, b, size->k);
  for (int64_t i = 0; i < size->m; i++)
    for (int64_t j = 0; j < size->n; j++) c[i * stride + j] = tile[i * kernel->columns + j];
}

static void multiply_panels(const struct dense_kernel *kernel, double *c, int64_t stride,
                            const double *a, const double *b, struct block rows,
                            struct block columns, int64_t depth, bool lower) {
  for (int64_t j = 0; j < columns.count; j += kernel->columns)
    for (int64_t i = 0; i < rows.count; i += kernel->rows) {
      double *tile = c + (rows.first + i) * stride + columns.first + j;
      const double *left = a + i * depth;
      const double *right = b + j * depth;
      const struct dense_sizes size = {block_at(i, kernel->rows, rows.count).count,
                                       block_at(j, kernel->columns, columns.count).count, depth,
                                       false};
      if (lower && columns.first + j > rows.first + i + size.m - 1) continue;
      if (size.m == kernel->rows && size.n == kernel->columns)
        kernel->tile(tile, stride, left, right, depth);
      else
        edge_tile(kernel, tile, stride, left, right, &size);
    }
}

static void multiply_rows(const struct dense_kernel *kernel, double *c, int64_t stride,
                          struct dense_view a, struct dense_view b, const struct dense_sizes *sizes,
                          double sign, struct block rows) {
  double left[PANEL_ROWS * PANEL_DEPTH];
  double right[PANEL_COLUMNS * PANEL_DEPTH];
  const struct dense_view transposed = {a.values, a.column_stride, a.row_stride};
  const int64_t columns_end =
      sizes->lower && rows.first + rows.count < sizes->n ? rows.first + rows.count : sizes->n;
  for (int64_t p = 0; p < sizes->k; p += PANEL_DEPTH) {
    const struct block depth = block_at(p, PANEL_DEPTH, sizes->k);
    pack(left, transposed, rows, depth, kernel->rows, sign);
    for (int64_t j = 0; j < columns_end; j += PANEL_COLUMNS) {
      const struct block columns = block_at(j, PANEL_COLUMNS, columns_end);
      pack(right, b, columns, depth, kernel->columns, 1);
      multiply_panels(kernel, c, stride, left, right, rows, columns, depth.count, sizes->lower);
    }
  }
}

void dense_multiply_with(const struct dense_kernel *kernel, double *c, int64_t stride,
                         struct dense_view a, struct dense_view b, const struct dense_sizes *sizes,
                         double sign) {
  const int64_t blocks = (sizes->m + PANEL_ROWS - 1) / PANEL_ROWS;
#pragma omp parallel for schedule(dynamic) if (blocks > 1 && sizes->n * sizes->k > 4096)
  for (int64_t block = 0; block < blocks; block++)
    multiply_rows(kernel, c, stride, a, b, sizes, sign,
                  block_at(block * PANEL_ROWS, PANEL_ROWS, sizes->m));
}

void dense_multiply(double *c, int64_t stride, struct dense_view a, struct dense_view b,
                    const struct dense_sizes *sizes, double sign) {
  dense_multiply_with(dense_kernel_pick(), c, stride, a, b, sizes, sign);
}
