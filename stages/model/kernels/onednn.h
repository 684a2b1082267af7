/* Matrix products of fixed shape by oneDNN, each on one thread. Only onednn.c names the library.
 *
 * Products are made for one thread, whatever the number of threads around: then K is never split,
 * and an element of the result is one chain of sums over k, the same for any tile it lies in.
 * `product.h` cuts large products into such tiles and shares them out.
 */
#ifndef STAGES_MODEL_KERNELS_ONEDNN_H
#define STAGES_MODEL_KERNELS_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c[m, n] = or += a[m, k] b[k, n] + bias[n]; strides in elements, one of each pair is 1. All
 * members are of one width, so that two shapes are equal when their bytes are. */
struct onednn_shape {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row;
  int64_t input;  /* enum dtype of a and b: F32 or BF16 */
  int64_t output; /* enum dtype of c: F32, or that of the inputs */
  int64_t bias;   /* whether there is one (F32) */
  int64_t add;    /* to c instead of overwriting it */
};

struct onednn_product;

/* products[i] for each of `count` shapes, made at the first call and kept; NULL when the library
 * refuses it. Borrowed until the next call or onednn_close. Call from one thread. Local. */
void onednn_find(const struct onednn_product **products, const struct onednn_shape *shapes,
                 int count);

/* Whether each row of the result has the same bits for any number of rows. The library's fast path
 * (dense operands, AVX-512) has that property, shown by tests/unit/stages/model/product.c; its
 * general one does not. Local. */
bool onednn_keeps_rows(const struct onednn_product *product);

/* Bytes of scratch that a run of the product needs. Local. */
size_t onednn_scratch_bytes(const struct onednn_product *product);

/* Computes; `bias` is not read when the shape has none. `scratch` is aligned to 64 bytes and used
 * by no other thread meanwhile. May run on many threads at once. False when the library fails.
 * Local. */
bool onednn_run(const struct onednn_product *product, void *c, const void *a, const void *b,
                const void *bias, void *scratch);

/* Whether the library has the processor's tiles (AMX) to multiply bf16 with. Local. */
bool onednn_has_tiles(void);

/* Forgets all products and returns their memory. Local. */
void onednn_close(void);

#endif
