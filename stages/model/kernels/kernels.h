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

/* What softmax_tile_statistics finds in a row of logits l, arrays of [n] (sum type, borrowed). Sums
 * of many terms are compensated. */
struct softmax_statistics {
  void *maximum;
  void *sum, *square; /* of exp(l - maximum), and of its square */
  void *total;        /* of l; NULL where nobody wants it */
  void *target_logit; /* the target's where it lies in the tile, else unchanged */
};

/* What a softmax is compared with: `hit` at the target and `floor` everywhere. */
struct softmax_target {
  const int32_t *ids; /* [n], counted as the vocabulary; negative: no target */
  double hit, floor;
};

enum divergence { DIVERGENCE_FORWARD_KL, DIVERGENCE_REVERSE_KL, DIVERGENCE_JENSEN_SHANNON };

/* A tile of student logits l and of teacher logits, [n, v] each with rows `stride` apart: q =
 * exp(l - lse) is compared with p = omega softmax(first) + (1 - omega) softmax(second), or with
 * softmax(first) where second is NULL. Arrays of [n] are of the sum type. All borrowed. */
struct distill_tile {
  enum divergence divergence;
  int64_t stride;
  const void *logits, *first, *second;
  const void *lse; /* [n]; statistics read it for the Jensen-Shannon divergence alone */
  const void *first_lse, *second_lse, *omega; /* [n]; the last two only with `second` */
};

/* What distill_tile_statistics finds in a row, arrays of [n] (sum type, borrowed). With m =
 * (p + q) / 2, sums over the tile of
 *
 *              forward     reverse                              Jensen-Shannon
 *   relative   0           exp(l - maximum) (l - log p)         0
 *   teacher    p log p     0                                    p log (p / m)
 *   student    p l         0                                    q log (q / m)
 */
struct distill_statistics {
  void *maximum;
  void *sum, *square; /* of exp(l - maximum), and of its square */
  void *cross;        /* of p exp(l - maximum) */
  void *relative, *teacher, *student;
  void *agreement; /* of p^2 */
};

/* Least argument of the logarithm in bend_tile. */
#define BEND_FLOOR 1e-6

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
