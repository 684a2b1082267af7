#include "stages/train/muon.h"

#include <math.h>
#include <string.h>

#include "sharding/dense_polar.h"
#include "sharding/tree.h"

static const float ON_X = 3.4445f, ON_GRAM = -4.7750f, ON_SQUARE = 2.0315f;
static const double TINY = 1e-8;

void muon_momentum(float *restrict u, float *restrict m, const float *restrict gradient,
                   int64_t count, double beta, double gradient_scale, int64_t k) {
  const float keep = (float)beta, take = (float)(1 - beta), scale = (float)gradient_scale;
  const float on_momentum = (float)(beta / (1 - pow(beta, (double)(k + 1))));
  const float on_gradient = (float)((1 - beta) / (1 - pow(beta, (double)k)));
  for (int64_t i = 0; i < count; i++) {
    const float g = scale * gradient[i];
    m[i] = keep * m[i] + take * g;
    u[i] = on_momentum * m[i] + on_gradient * g;
  }
}

/* The canonical pieces of the rows held here: slices of a cut matrix, else all rows as one. */
static int64_t piece_count(const struct muon_matrix *matrix) {
  return matrix->vocab ? vocab_slices_local(matrix->vocab) : 1;
}

static struct split piece(const struct muon_matrix *matrix, int64_t i) {
  if (!matrix->vocab) return (struct split){0, matrix->rows};
  const struct split rows = vocab_slice(matrix->vocab, matrix->vocab->first_slice + i);
  const int64_t first = matrix->vocab->rows.begin;
  return (struct split){rows.begin - first, rows.end - first};
}

static double square_sum(const float *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
  return sum;
}

static enum status frobenius(double *norm, const float *u, const struct muon_matrix *matrix) {
  double squares[VOCAB_SLICES_MAX];
  for (int64_t i = 0; i < piece_count(matrix); i++) {
    const struct split rows = piece(matrix, i);
    squares[i] = square_sum(u + rows.begin * matrix->cols, split_count(rows) * matrix->cols);
  }
  double sum = tree_sum_doubles(squares, 1, piece_count(matrix));
  if (matrix->vocab && matrix->vocab->group)
    TRY(comm_tree_sum(matrix->vocab->group, &sum, 1, DTYPE_F64));
  *norm = sqrt(sum);
  return STATUS_OK;
}

static void scale_by(float *x, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i++) x[i] *= factor;
}

/* gram[cols, cols] = x' x over all rows of the matrix. */
static enum status gram_of_columns(float *gram, const float *x, const struct muon_matrix *matrix) {
  const int64_t cols = matrix->cols, pieces = piece_count(matrix), size = cols * cols;
  const size_t mark = arena_mark(matrix->scratch);
  const struct tree_floats tree = {
      .levels = arena_take(matrix->scratch, (size_t)(tree_depth(pieces) * size) * sizeof(float)),
      .stride = size,
      .leaves = pieces};
  float *leaf = arena_take(matrix->scratch, (size_t)size * sizeof(float));
  for (int64_t i = 0; tree.levels && i < pieces; i++) {
    const struct split rows = piece(matrix, i);
    memset(leaf, 0, (size_t)size * sizeof(float));
    matrix->kernels->linear_backward_weight(leaf, x + rows.begin * cols, x + rows.begin * cols,
                                            split_count(rows), cols, cols, cols, cols);
    tree_add_floats(&tree, i, 0, size, leaf);
  }
  if (tree.levels) memcpy(gram, tree.levels, (size_t)size * sizeof(float));
  arena_reset(matrix->scratch, mark);
  if (!matrix->vocab || !matrix->vocab->group || !tree.levels) return STATUS_OK;
  return comm_tree_sum(matrix->vocab->group, gram, size, DTYPE_F32);
}

static enum status gram_of(float *gram, const float *x, const struct muon_matrix *matrix,
                           bool wide) {
  if (!wide) return gram_of_columns(gram, x, matrix);
  const int64_t rows = matrix->rows, cols = matrix->cols;
  matrix->kernels->linear_forward(gram, x, x, NULL, rows, rows, cols, rows, cols);
  return STATUS_OK;
}

/* polynomial = b gram + c gram^2, n x n. */
static void combine(float *polynomial, const float *gram, int64_t n,
                    const struct kernels *kernels) {
  kernels->linear_forward(polynomial, gram, gram, NULL, n, n, n, n, n);
  for (int64_t i = 0; i < n * n; i++) polynomial[i] = ON_GRAM * gram[i] + ON_SQUARE * polynomial[i];
}

/* x = a x + polynomial x, or a x + x polynomial; `product` is scratch of the size of x. */
static void apply(float *x, float *product, const float *polynomial,
                  const struct muon_matrix *matrix, bool wide) {
  const int64_t rows = matrix->rows, cols = matrix->cols;
  if (wide)
    matrix->kernels->linear_backward_input(product, polynomial, x, rows, rows, cols, cols, rows,
                                           false);
  else
    matrix->kernels->linear_forward(product, x, polynomial, NULL, rows, cols, cols, cols, cols);
  for (int64_t i = 0; i < rows * cols; i++) x[i] = ON_X * x[i] + product[i];
}

static enum status iterate(float *u, const struct muon_matrix *matrix, float *product, float *gram,
                           float *polynomial) {
  const bool wide = !matrix->vocab && matrix->rows < matrix->cols;
  const int64_t n = wide ? matrix->rows : matrix->cols;
  for (int i = 0; i < MUON_ITERATIONS; i++) {
    TRY(gram_of(gram, u, matrix, wide));
    combine(polynomial, gram, n, matrix->kernels);
    apply(u, product, polynomial, matrix, wide);
  }
  return STATUS_OK;
}

static void scale_by_shape(float *u, const struct muon_matrix *matrix) {
  const double ratio = (double)matrix->fan_out / (double)matrix->fan_in;
  scale_by(u, matrix->rows * matrix->cols, (float)sqrt(ratio > 1 ? ratio : 1));
}

static enum status orthogonalise(float *u, const struct muon_matrix *matrix, float *product,
                                 float *gram, float *polynomial) {
  const int64_t count = matrix->rows * matrix->cols;
  double norm;
  TRY(frobenius(&norm, u, matrix));
  scale_by(u, count, (float)(1 / (norm + TINY)));
  TRY(iterate(u, matrix, product, gram, polynomial));
  scale_by_shape(u, matrix);
  return STATUS_OK;
}

static enum status orthogonalise_together(float *u, const struct muon_matrix *matrix) {
  const struct dense_polar polar = {.rows = matrix->rows,
                                    .columns = matrix->cols,
                                    .owner = matrix->owner,
                                    .steps = MUON_ITERATIONS,
                                    .a = ON_X,
                                    .b = ON_GRAM,
                                    .c = ON_SQUARE,
                                    .tiny = TINY};
  if (arena_is_measuring(matrix->scratch)) {
    const size_t mark = arena_mark(matrix->scratch);
    arena_take(matrix->scratch, dense_polar_scratch(matrix->grid, &polar));
    arena_reset(matrix->scratch, mark);
    return STATUS_OK;
  }
  TRY(dense_polar_make(matrix->grid, u, &polar, matrix->scratch));
  if (u) scale_by_shape(u, matrix);
  return STATUS_OK;
}

enum status muon_orthogonalise(float *u, const struct muon_matrix *matrix) {
  if (matrix->grid) return orthogonalise_together(u, matrix);
  const size_t mark = arena_mark(matrix->scratch);
  const bool wide = !matrix->vocab && matrix->rows < matrix->cols;
  const int64_t n = wide ? matrix->rows : matrix->cols;
  const size_t square = (size_t)(n * n) * sizeof(float);
  float *product =
      arena_take(matrix->scratch, (size_t)(matrix->rows * matrix->cols) * sizeof(float));
  float *gram = arena_take(matrix->scratch, square);
  float *polynomial = arena_take(matrix->scratch, square);
  const enum status status = arena_is_measuring(matrix->scratch)
                                 ? (wide ? STATUS_OK : gram_of_columns(gram, u, matrix))
                                 : orthogonalise(u, matrix, product, gram, polynomial);
  arena_reset(matrix->scratch, mark);
  return status;
}
