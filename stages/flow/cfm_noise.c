/* The noise of categorical flows: its covariance G = E'E, the Cholesky factor L that noise is drawn
 * with, and the gradient of the table E through it. Once a step each, at 2 V d^2 FLOP.
 */
#include "sharding/dense.h"
#include "stages/flow/cfm_state.h"

static const double JITTER = 1e-6; /* of the Gram matrix, relative to its mean diagonal */

/* From this many rows a column on, rounding in F32 is far below the jitter. */
enum { FAST_ROWS = 16 };

/* gram[C, C] = rows' rows with the products of the network's own type. */
static void multiply_gram(void *context, float *gram, const void *rows, int64_t n, int64_t C) {
  const struct kernels *kernels = context;
  for (int64_t i = 0; i < C * C; i++) gram[i] = 0;
  kernels->linear_backward_weight(gram, rows, rows, n, C, C, C, C);
}

static enum status gram(struct flow *flow, double *exact, struct arena *scratch) {
  const struct cfm *cfm = flow->state;
  const struct dense_product product = {multiply_gram, (void *)flow->kernels};
  const bool fast = flow->kernels->sum == DTYPE_F32 && flow->vocab->size >= FAST_ROWS * cfm->width;
  const struct dense_table table = {.rows = cfm->model.table->data,
                                    .dtype = flow->kernels->element,
                                    .C = cfm->width,
                                    .product = fast ? &product : NULL};
  return dense_gram(flow->vocab, exact, &table, scratch);
}

enum status cfm_noise_init(struct flow *flow, struct arena *arena) {
  struct cfm *cfm = flow->state;
  struct cfm_noise *noise = &cfm->noise;
  const size_t d = (size_t)cfm->width;
  TRY(kernels_open(&noise->products, flow->kernels->name, flow->kernels->sum));
  const size_t each = dtype_bytes(noise->products.element);
  noise->exact = arena_take_zeroed(arena, d * d * sizeof(double));
  noise->square = arena_take_zeroed(arena, d * d * sizeof(double));
  noise->matrix = arena_take(arena, d * d * each);
  noise->rows = arena_take(arena, CFM_TILE_ROWS * d * each);
  noise->result = arena_take(arena, CFM_TILE_ROWS * d * each);
  noise->tile = arena_take(arena, CFM_TILE_ROWS * d * sizeof(float));
  struct arena measured;
  arena_measure(&measured, "gram");
  TRY(gram(flow, NULL, &measured));
  noise->scratch = (struct arena){
      .account = "gram", .base = arena_take(arena, measured.peak), .size = measured.peak};
  return STATUS_OK;
}

static void store_factor(struct flow *flow, struct cfm *cfm) {
  const int64_t d = cfm->width;
  float *row = cfm->noise.tile;
  for (int64_t i = 0; i < d; i++) {
    for (int64_t j = 0; j < d; j++) row[j] = (float)cfm->noise.exact[i * d + j];
    unsigned char *target = cfm->factor->data;
    target += (size_t)(i * d) * dtype_bytes(flow->kernels->element);
    flow->kernels->convert_from_float(target, row, d);
  }
}

/* L with L L' = E'E, from the rows of all members. */
enum status cfm_noise_prepare(struct flow *flow) {
  struct cfm *cfm = flow->state;
  TRY(gram(flow, cfm->noise.exact, &cfm->noise.scratch));
  TRY(dense_cholesky(cfm->noise.exact, cfm->width, JITTER));
  store_factor(flow, cfm);
  return STATUS_OK;
}

static double sum_at(const struct flow *flow, const void *sums, int64_t index) {
  return flow->kernels->sum == DTYPE_F64 ? ((const double *)sums)[index]
                                         : (double)((const float *)sums)[index];
}

/* matrix = (D L^-1)', D the gradient of L: what rows of E are multiplied with. */
static void solve(const struct flow *flow, struct cfm *cfm) {
  struct cfm_noise *noise = &cfm->noise;
  const int64_t d = cfm->width;
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++)
      noise->square[j * d + i] = sum_at(flow, cfm->factor->gradient, i * d + j);
  dense_solve_lower_transposed(noise->exact, noise->square, d, d);
  for (int64_t i = 0; i < d; i++) {
    for (int64_t j = 0; j < d; j++) noise->tile[j] = (float)noise->square[j * d + i];
    unsigned char *row = noise->matrix;
    row += (size_t)(i * d) * dtype_bytes(noise->products.element);
    noise->products.convert_from_float(row, noise->tile, d);
  }
}

/* tile = `rows` rows of E times (D L^-1)'. */
static void multiply_rows(const struct flow *flow, const struct cfm *cfm, int64_t first,
                          int64_t rows) {
  const struct cfm_noise *noise = &cfm->noise;
  const int64_t d = cfm->width;
  const unsigned char *table = cfm->model.table->data;
  table += (size_t)(first * d) * dtype_bytes(flow->kernels->element);
  flow->kernels->convert_to_float(noise->tile, table, rows * d);
  noise->products.convert_from_float(noise->rows, noise->tile, rows * d);
  noise->products.linear_forward(noise->result, noise->rows, noise->matrix, NULL, rows, d, d, d, d);
  noise->products.convert_to_float(noise->tile, noise->result, rows * d);
}

static void add_rows(const struct flow *flow, struct param *table, int64_t first, int64_t rows,
                     const float *values) {
  if (table->sink) {
    table->sink->add(table->sink->context, table, first, rows, values);
    return;
  }
  const int64_t begin = first * table->cols, count = rows * table->cols;
  float *narrow = table->gradient;
  double *wide = table->gradient;
  for (int64_t i = 0; i < count; i++) {
    if (flow->kernels->sum == DTYPE_F64) wide[begin + i] += (double)values[i];
    if (flow->kernels->sum == DTYPE_F32) narrow[begin + i] += values[i];
  }
}

/* The Rao-Blackwellised gradient of the table through the noise: with D the gradient of L and
 * g = L eta, E[eps | g] = E G^-1 g gives dE += E (D L^-1)' (docs/decisions). */
enum status cfm_noise_gradients(struct flow *flow) {
  struct cfm *cfm = flow->state;
  struct param *table = cfm->model.table;
  if (table->frozen || (!table->sink && !table->gradient)) return STATUS_OK;
  solve(flow, cfm);
  for (int64_t first = 0; first < table->row_count; first += CFM_TILE_ROWS) {
    const int64_t left = table->row_count - first;
    const int64_t rows = left < CFM_TILE_ROWS ? left : CFM_TILE_ROWS;
    multiply_rows(flow, cfm, first, rows);
    add_rows(flow, table, first, rows, cfm->noise.tile);
  }
  return STATUS_OK;
}
