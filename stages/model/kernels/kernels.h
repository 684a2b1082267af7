/* Kernels: the arithmetic of the layers as flat functions behind one table chosen by name.
 *
 * "reference" is the specification: plain loops. "cpu" starts from it and overwrites what it does
 * better. "measure" does nothing, for measuring tapes. No caller may know which table runs. Kernels
 * keep nothing but working memory, never fail, and treat non-finite numbers as numbers. One thread
 * calls them at a time, outside of parallel regions: they have threads of their own.
 */
#ifndef STAGES_MODEL_KERNELS_KERNELS_H
#define STAGES_MODEL_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"
#include "pipeline/base/random.h"

enum activation { ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_SILU }; /* GELU: tanh form */

/* Which keys a query sees: at most two intervals, [0]..[1] and [2]..[3]; empty when begin >= end.
 * Every mask is one: full, causal, key padding, prefix, one-way, block-causal two-stream. */
struct attention_range {
  int32_t first_begin, first_end, second_begin, second_end;
};

/* q[B * Tq, >= H * D], k and v [B * Tk, >= H * D] with row strides, y[B * Tq, H * D] contiguous.
 * Head h is columns [h * D, (h + 1) * D). A query that sees no key gives zeros. */
struct attention_shape {
  int64_t B, Tq, Tk, H, D;
  int64_t q_stride, k_stride, v_stride;
  double scale;                         /* usually 1 / sqrt(D) */
  const struct attention_range *ranges; /* [B, Tq], or [Tq] when shared; NULL: full */
  bool shared_ranges;
  bool has_bias; /* bias[H, Tq + Tk - 1] (sum): added to the score at offset key - query + Tq - 1 */
};

/* A tile of student and teacher logits, [n, v] each, and of each row the log-sum-exps of the
 * teachers and the share of the first (all sum type, borrowed). */
struct distill_tile {
  const void *logits, *first, *second;
  const void *first_lse, *second_lse, *omega;
};

/* What distill_tile_statistics makes, [n] each (sum type, borrowed). */
struct distill_statistics {
  void *maximum, *sum, *square, *cross, *entropy, *linear, *agreement;
};

struct kernels {
  const char *name;
  enum dtype element; /* F64, F32 or BF16 */
  enum dtype sum;     /* F64 when element is F64, else F32 */
#define KERNEL(name, parameters) void(*name) parameters;
#include "stages/model/kernels/kernels.def"
#undef KERNEL
};

/* Fills the table called `name` ("reference", "cpu", "measure") for one element type. Local.
 * MISMATCH for an unknown name, or a pair that does not exist ("cpu" has no F64). */
enum status kernels_open(struct kernels *kernels, const char *name, enum dtype element);

/* The element type this machine computes fastest in: BF16 where it has bf16 products, else F32.
 * Local. */
enum dtype kernels_best_element(void);

#endif
