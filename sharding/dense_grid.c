#include "sharding/dense_grid.h"

#include <inttypes.h>
#include <string.h>

#include "sharding/dense_blacs.h"

static const int zero = 0, block = DENSE_GRID_BLOCK;

void dense_grid_shape(int *rows, int *columns, int ranks) {
  *rows = 1;
  while ((*rows + 1) * (*rows + 1) <= ranks) ++*rows;
  *columns = ranks / *rows;
}

enum status dense_grid_init(struct dense_grid *grid, struct comm *comm) {
  *grid = (struct dense_grid){.comm = comm, .context = -1, .row = -1, .column = -1};
  dense_grid_shape(&grid->rows, &grid->columns, comm->size);
  grid->system = Csys2blacs_handle(comm->handle);
  grid->context = grid->system;
  Cblacs_gridinit(&grid->context, "Row", grid->rows, grid->columns);
  if (comm->rank >= grid->rows * grid->columns) grid->context = -1;
  if (grid->context < 0) return STATUS_OK;
  int rows, columns;
  Cblacs_gridinfo(grid->context, &rows, &columns, &grid->row, &grid->column);
  CHECK(rows == grid->rows && columns == grid->columns, STATUS_INTERNAL,
        "BLACS made a %d x %d grid, asked for %d x %d", rows, columns, grid->rows, grid->columns);
  return STATUS_OK;
}

void dense_grid_free(struct dense_grid *grid) {
  if (!grid->comm) return;
  if (grid->context >= 0) Cblacs_gridexit(grid->context);
  Cfree_blacs_system_handle(grid->system);
  *grid = (struct dense_grid){0};
}

/* Rows (or columns) of `n` that the fullest place of `places` holds. */
static int64_t most_held(int64_t n, int places) {
  const int64_t blocks = (n + DENSE_GRID_BLOCK - 1) / DENSE_GRID_BLOCK;
  const int64_t held = (blocks + places - 1) / places * DENSE_GRID_BLOCK;
  return held < n ? held : n;
}

static bool fits(int64_t n, int64_t m, int rows, int columns) {
  return n <= INT32_MAX && m <= INT32_MAX &&
         most_held(n, rows) <= INT32_MAX / (most_held(m, columns) > 0 ? most_held(m, columns) : 1);
}

enum status dense_grid_check(int64_t n, int64_t m, int rows, int columns) {
  if (fits(n, m, rows, columns)) return STATUS_OK;
  int64_t low = 1;
  int64_t high = INT32_MAX;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (fits(middle, middle, rows, columns))
      low = middle;
    else
      high = middle;
  }
  FAIL(STATUS_MISMATCH,
       "a %" PRId64 " x %" PRId64 " matrix has more than 2^31 - 1 elements on a rank of a %d x %d "
       "grid; the largest square that fits is %" PRId64 ", or use more ranks",
       n, m, rows, columns, low);
}

static size_t rounded(size_t bytes) {
  return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

size_t dense_piece_bytes(const struct dense_grid *grid, int64_t n, int64_t m) {
  const int64_t elements = most_held(n, grid->rows) * most_held(m, grid->columns);
  return rounded((size_t)elements * sizeof(double));
}

size_t dense_grid_scratch(const struct dense_grid *grid, int64_t n, int64_t m) {
  return dense_piece_bytes(grid, n, n) + dense_piece_bytes(grid, n, m);
}

int64_t dense_grid_held(int64_t n, int place, int places) {
  const int all = (int)n;
  return numroc_(&all, &block, &place, &zero, &places);
}

enum status dense_piece_describe(struct dense_piece *piece, const struct dense_grid *grid,
                                 int64_t n, int64_t m) {
  *piece = (struct dense_piece){.n = n, .m = m};
  TRY(dense_grid_check(n, m, grid->rows, grid->columns));
  if (grid->context < 0) return STATUS_OK;
  const int global_rows = (int)n, global_columns = (int)m;
  piece->rows = (int)dense_grid_held(n, grid->row, grid->rows);
  piece->columns = (int)dense_grid_held(m, grid->column, grid->columns);
  const int leading = piece->rows > 0 ? piece->rows : 1;
  int info = 0;
  descinit_(piece->descriptor, &global_rows, &global_columns, &block, &block, &zero, &zero,
            &grid->context, &leading, &info);
  CHECK(info == 0, STATUS_INTERNAL, "descinit refuses argument %d", -info);
  return STATUS_OK;
}

enum status dense_piece_take(struct dense_piece *piece, const struct dense_grid *grid, int64_t n,
                             int64_t m, struct arena *scratch) {
  TRY(dense_piece_describe(piece, grid, n, m));
  piece->values = arena_take(scratch, dense_piece_bytes(grid, n, m));
  return STATUS_OK;
}

int64_t dense_grid_global(int64_t i, int place, int places) {
  return (i / DENSE_GRID_BLOCK * places + place) * DENSE_GRID_BLOCK + i % DENSE_GRID_BLOCK;
}

void dense_piece_fill(struct dense_piece *piece, const struct dense_grid *grid,
                      const double *whole) {
  for (int64_t j = 0; j < piece->columns; j++)
    for (int64_t i = 0; i < piece->rows; i++)
      piece->values[j * piece->rows + i] =
          whole[dense_grid_global(i, grid->row, grid->rows) * piece->m +
                dense_grid_global(j, grid->column, grid->columns)];
}

enum status dense_piece_collect(const struct dense_piece *piece, const struct dense_grid *grid,
                                double *whole) {
  memset(whole, 0, (size_t)(piece->n * piece->m) * sizeof *whole);
  for (int64_t j = 0; j < piece->columns; j++)
    for (int64_t i = 0; i < piece->rows; i++)
      whole[dense_grid_global(i, grid->row, grid->rows) * piece->m +
            dense_grid_global(j, grid->column, grid->columns)] = piece->values[j * piece->rows + i];
  /* One rank holds each element: the sum is exact. */
  return comm_allreduce(grid->comm, whole, piece->n * piece->m, DTYPE_F64, COMM_SUM);
}

static enum status status_of(int info, const char *routine, const char *meaning) {
  CHECK(info <= 0, STATUS_NUMERIC, "%s stops at %d: %s", routine, info, meaning);
  CHECK(info == 0, STATUS_INTERNAL, "%s refuses argument %d", routine, -info);
  return STATUS_OK;
}

enum status dense_grid_agree(struct dense_grid *grid, int info, const char *routine,
                             const char *meaning) {
  return comm_agree(grid->comm, status_of(info, routine, meaning));
}
