#include "sharding/dense_polar.h"

#include <math.h>
#include <string.h>

#include "sharding/dense_blacs.h"

static const int one = 1;

/* A matrix on the grid, in F32. Rows in memory are columns of Fortran: the pieces are those of the
 * transpose, whose orthogonal factor is the transpose of the one asked for. */
struct floats {
  struct dense_piece piece; /* without values */
  float *values;
};

struct work {
  struct dense_grid *grid;
  const struct dense_polar *polar;
  int64_t side;                      /* of the Gram matrix: the shorter one */
  struct floats x, next, gram, poly; /* n x m, n x m, side x side, side x side */
};

static size_t bytes_of(const struct dense_grid *grid, int64_t n, int64_t m) {
  const size_t bytes = dense_piece_bytes(grid, n, m) * sizeof(float) / sizeof(double);
  return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

static int64_t shorter(const struct dense_polar *polar) {
  return polar->rows < polar->columns ? polar->rows : polar->columns;
}

/* The largest piece of any rank, to be packed for it. */
static size_t packed_bytes(const struct dense_grid *grid, const struct dense_polar *polar) {
  return bytes_of(grid, polar->columns, polar->rows);
}

size_t dense_polar_scratch(const struct dense_grid *grid, const struct dense_polar *polar) {
  const int64_t side = shorter(polar);
  return 3 * packed_bytes(grid, polar) + 2 * bytes_of(grid, side, side);
}

static enum status take(struct floats *floats, const struct dense_grid *grid, int64_t n, int64_t m,
                        struct arena *scratch) {
  TRY(dense_piece_describe(&floats->piece, grid, n, m));
  floats->values = arena_take_zeroed(scratch, bytes_of(grid, n, m));
  return STATUS_OK;
}

static enum status take_all(struct work *work, struct arena *scratch) {
  const struct dense_polar *polar = work->polar;
  TRY(take(&work->x, work->grid, polar->columns, polar->rows, scratch));
  TRY(take(&work->next, work->grid, polar->columns, polar->rows, scratch));
  TRY(take(&work->gram, work->grid, work->side, work->side, scratch));
  return take(&work->poly, work->grid, work->side, work->side, scratch);
}

/* What the rank at a place of the grid holds of the owner's matrix, packed into `piece` or taken
 * from it. Returns its bytes. */
static int64_t pack(float *whole, float *piece, const struct work *work, int rank, bool out) {
  const struct dense_grid *grid = work->grid;
  const int row = rank / grid->columns, column = rank % grid->columns;
  const int64_t n = work->polar->columns, m = work->polar->rows; /* of the transpose */
  int64_t held = 0;
  for (int64_t j = dense_grid_global(0, column, grid->columns), lj = 0; j < m;
       j = dense_grid_global(++lj, column, grid->columns))
    for (int64_t i = dense_grid_global(0, row, grid->rows), li = 0; i < n;
         i = dense_grid_global(++li, row, grid->rows), held++) {
      if (out)
        piece[held] = whole[j * n + i];
      else
        whole[j * n + i] = piece[held];
    }
  return held * (int64_t)sizeof(float);
}

static int64_t own_bytes(const struct work *work) {
  const struct dense_piece *piece = &work->x.piece;
  return (int64_t)piece->rows * piece->columns * (int64_t)sizeof(float);
}

static int64_t piece_bytes(const struct work *work, int rank) {
  const struct dense_grid *grid = work->grid;
  const int64_t rows = dense_grid_held(work->polar->columns, rank / grid->columns, grid->rows);
  const int64_t columns = dense_grid_held(work->polar->rows, rank % grid->columns, grid->columns);
  return rows * columns * (int64_t)sizeof(float);
}

/* The owner deals its matrix out. */
static enum status deal(struct work *work, float *whole, float *packed) {
  struct comm *comm = work->grid->comm;
  if (comm->rank != work->polar->owner)
    return comm_receive(comm, work->x.values, own_bytes(work),
                        work->polar->owner); /* 0 if standing by */
  for (int r = 0; r < work->grid->rows * work->grid->columns; r++) {
    const int64_t bytes = pack(whole, packed, work, r, true);
    if (r == comm->rank)
      memcpy(work->x.values, packed, (size_t)bytes);
    else
      TRY(comm_send(comm, packed, bytes, r));
  }
  return STATUS_OK;
}

static enum status collect(struct work *work, float *whole, float *packed) {
  struct comm *comm = work->grid->comm;
  if (comm->rank != work->polar->owner)
    return comm_send(comm, work->x.values, own_bytes(work), work->polar->owner);
  for (int r = 0; r < work->grid->rows * work->grid->columns; r++) {
    if (r != comm->rank) TRY(comm_receive(comm, packed, piece_bytes(work, r), r));
    (void)pack(whole, r == comm->rank ? work->x.values : packed, work, r, false);
  }
  return STATUS_OK;
}

static enum status normalise(struct work *work) {
  const int64_t count = own_bytes(work) / (int64_t)sizeof(float);
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)work->x.values[i] * (double)work->x.values[i];
  TRY(comm_allreduce(work->grid->comm, &sum, 1, DTYPE_F64, COMM_SUM));
  const float factor = (float)(1 / (sqrt(sum) + work->polar->tiny));
  for (int64_t i = 0; i < count; i++) work->x.values[i] *= factor;
  return STATUS_OK;
}

/* c = alpha op(a) op(b) + beta c, with k the inner size. */
static void multiply(const char *forms, int64_t k, float alpha, struct floats *a, struct floats *b,
                     float beta, struct floats *c) {
  const int m = (int)c->piece.n, n = (int)c->piece.m, inner = (int)k;
  psgemm_(&forms[0], &forms[1], &m, &n, &inner, &alpha, a->values, &one, &one, a->piece.descriptor,
          b->values, &one, &one, b->piece.descriptor, &beta, c->values, &one, &one,
          c->piece.descriptor);
}

static void copy(struct floats *to, const struct floats *from) {
  const size_t count = (size_t)from->piece.rows * (size_t)from->piece.columns;
  memcpy(to->values, from->values, count * sizeof(float));
}

static void step(struct work *work) {
  const struct dense_polar *polar = work->polar;
  const int64_t n = work->x.piece.n, m = work->x.piece.m;
  const bool wide = n < m;
  multiply(wide ? "NT" : "TN", wide ? m : n, 1, &work->x, &work->x, 0, &work->gram);
  copy(&work->poly, &work->gram);
  multiply("NN", work->side, polar->c, &work->gram, &work->gram, polar->b, &work->poly);
  copy(&work->next, &work->x);
  multiply("NN", work->side, 1, wide ? &work->poly : &work->x, wide ? &work->x : &work->poly,
           polar->a, &work->next);
  const struct floats before = work->x;
  work->x = work->next;
  work->next = before;
}

static enum status run(struct work *work, float *x, struct arena *scratch) {
  TRY(comm_agree(work->grid->comm, take_all(work, scratch)));
  float *packed = arena_take(scratch, packed_bytes(work->grid, work->polar));
  TRY(deal(work, x, packed));
  TRY(normalise(work));
  for (int i = 0; i < work->polar->steps && work->grid->context >= 0; i++) step(work);
  return collect(work, x, packed);
}

enum status dense_polar_make(struct dense_grid *grid, float *x, const struct dense_polar *polar,
                             struct arena *scratch) {
  const size_t mark = arena_mark(scratch);
  struct work work = {.grid = grid, .polar = polar, .side = shorter(polar)};
  const enum status status = run(&work, x, scratch);
  arena_reset(scratch, mark);
  return status;
}
