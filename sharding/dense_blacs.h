/* Prototypes of the BLACS and ScaLAPACK routines we call (the packages have no C headers), and the
 * pieces of a matrix on the grid. Fortran passes everything by address. Only dense_grid*.c and
 * dense_polar.c include this.
 */
#ifndef SHARDING_DENSE_BLACS_H
#define SHARDING_DENSE_BLACS_H

#include "sharding/dense_grid.h"

int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);

int numroc_(const int *n, const int *block, const int *place, const int *source, const int *count);
void descinit_(int *descriptor, const int *m, const int *n, const int *row_block,
               const int *column_block, const int *row_source, const int *column_source,
               const int *context, const int *leading, int *info);
void pdpotrf_(const char *uplo, const int *n, double *a, const int *ia, const int *ja,
              const int *desca, int *info);
void pdpotrs_(const char *uplo, const int *n, const int *sides, const double *a, const int *ia,
              const int *ja, const int *desca, double *b, const int *ib, const int *jb,
              const int *descb, int *info);
void psgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
             const float *alpha, const float *a, const int *ia, const int *ja, const int *desca,
             const float *b, const int *ib, const int *jb, const int *descb, const float *beta,
             float *c, const int *ic, const int *jc, const int *descc);
void pdsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *ia,
              const int *ja, const int *desca, double *w, double *z, const int *iz, const int *jz,
              const int *descz, double *work, const int *lwork, int *iwork, const int *liwork,
              int *info);

/* The blocks of an n x m matrix that this rank holds, column-major as Fortran wants. */
struct dense_piece {
  double *values; /* from the scratch arena */
  int64_t n, m;
  int rows, columns; /* held here */
  int descriptor[9];
};

/* Describes a piece, without memory. Local. MISMATCH as dense_grid_check. */
enum status dense_piece_describe(struct dense_piece *piece, const struct dense_grid *grid,
                                 int64_t n, int64_t m);

/* The global index of local row (or column) `i` at `place` of `places`, and how many of `n` are
 * held there. Local. */
int64_t dense_grid_global(int64_t i, int place, int places);
int64_t dense_grid_held(int64_t n, int place, int places);

/* Takes memory for a piece and describes it. Local. MISMATCH as dense_grid_check. */
enum status dense_piece_take(struct dense_piece *piece, const struct dense_grid *grid, int64_t n,
                             int64_t m, struct arena *scratch);

/* Bytes of a piece. Local. */
size_t dense_piece_bytes(const struct dense_grid *grid, int64_t n, int64_t m);

/* Fills the piece from a whole matrix. Local. */
void dense_piece_fill(struct dense_piece *piece, const struct dense_grid *grid,
                      const double *whole);

/* Puts the whole matrix together on every rank. Collective. */
enum status dense_piece_collect(const struct dense_piece *piece, const struct dense_grid *grid,
                                double *whole);

/* Agrees on the outcome of a routine: info != 0 on any rank becomes NUMERIC (info > 0, with
 * `meaning`) or INTERNAL on all. Collective. */
enum status dense_grid_agree(struct dense_grid *grid, int info, const char *routine,
                             const char *meaning);

#endif
