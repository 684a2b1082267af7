/* What the files of the categorical flow formulation (cfm*.c) share.
 *
 * The state of the flow lives in R^V, but the network only sees its image under the table E [V, d]:
 * y = (1 - alpha) g + alpha E[c] with g ~ N(0, E'E). So noise is drawn in d dimensions through the
 * Cholesky factor L of E'E, and every state, teacher and sampler carries d numbers a position
 * (pipeline/docs/decisions/0003-noise-in-table-width.md). Letters: B rows, T positions, d table
 * width, V vocabulary.
 */
#ifndef STAGES_FLOW_CFM_STATE_H
#define STAGES_FLOW_CFM_STATE_H

#include <stdint.h>

#include "stages/flow/cfm_schedule.h"
#include "stages/flow/flow.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/networks/cfm_transformer.h"

enum { CFM_TILE_ROWS = 512 };

/* The learned weight of losses, a small network of both times (cfm_weight.c). */
struct cfm_balance {
  struct scalar_embedder from, span;
  struct param *out, *bias;
};

/* One network with its tables. */
struct cfm_model {
  struct cfm_transformer network;
  struct param *table;        /* [V, d] input table E, sliced; a teacher has none of its own */
  struct param *output;       /* [V, width] rows of the output head, sliced */
  struct cfm_balance balance; /* declared where losses have a learned weight */
};

/* The covariance of the noise (cfm_noise.c). */
struct cfm_noise {
  struct kernels products; /* F32, or F64 where elements are */
  double *exact;           /* [d, d] L in double, as the last prepare left it */
  double *square;          /* [d, d] scratch */
  void *matrix;            /* [d, d] scratch, of the products' type */
  void *rows, *result;     /* [CFM_TILE_ROWS, d] scratch, of the products' type */
  float *tile;             /* [CFM_TILE_ROWS, d] scratch */
  struct arena scratch;    /* of the Gram matrix; its memory is the run's */
};

struct cfm {
  struct cfm_model model;
  struct cfm_model teacher; /* distillation: the frozen base */
  struct param *factor;     /* [d, d] derived: L; its data are d x d elements */
  struct cfm_schedule schedule;
  int64_t width; /* d */
  struct cfm_noise noise;
};

/* What is drawn for one row. */
struct cfm_row {
  double from, to; /* alpha_s and alpha_t; equal on the diagonal */
  double middle;   /* alpha_u, where the semigroup identity halves the jump */
  bool jump;       /* off the diagonal (distillation) */
  int64_t prefix;  /* positions given clean */
  int64_t covered; /* positions after it that the loss covers */
};

/* What is drawn for a batch; arrays in the tape's records arena. */
struct cfm_draw {
  struct cfm_row *rows; /* [B] */
  double *from, *to;    /* [B] the rows' times again */
  float *weight;        /* [B * T] 1 where the loss on the diagonal covers the position, else 0 */
  float *jump_weight;   /* [B * T] the same of rows off the diagonal */
  float *clean;         /* [B * T] 1 where the token is given clean, else 0 */
};

/* Rows off the diagonal as a batch of their own; arrays in the tape's records arena. */
struct cfm_jumps {
  int64_t count, positions;
  int64_t *index;             /* [count * positions] rows of the whole batch */
  double *from, *middle, *to; /* [count] in alpha */
  double *omega;              /* [count * positions] */
  float *weight;              /* [count * positions] */
  float *clean;               /* [count * positions] as of struct cfm_draw */
};

/* Takes memory from `arena`; then flow_kind.prepare and complete_gradients of the formulation. */
enum status cfm_noise_init(struct flow *flow, struct arena *arena);
enum status cfm_noise_prepare(struct flow *flow);
enum status cfm_noise_gradients(struct flow *flow);

/* Draws one row, or all of a batch: functions of (seed, sample, step, stratum). Local. */
struct cfm_row cfm_draw_row(const struct flow *flow, const struct flow_batch *batch, int64_t row);
struct cfm_draw cfm_draw(const struct flow *flow, const struct flow_batch *batch,
                         struct tape *tape);

/* y[B * T, d] = (1 - alpha) L eta + alpha E[tokens], alpha = from[b], or 1 in the prefix. Gradients
 * flow into the table and the factor. Collective over the vocabulary group. */
struct value *cfm_noisy(const struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const struct cfm_draw *draw);

/* Hidden states for the head: the network on the normalised state y; on a moving tape
 * (stages/model/tape/tangent.h) state and times may move. Local. */
struct value *cfm_hidden(struct tape *tape, const struct cfm_model *model, struct value *y,
                         const struct cfm_times *times, int64_t batch, int64_t positions);

/* What cfm_weigh makes weights from, for rows * positions tokens. */
struct cfm_weighing {
  float *weight;           /* 1 where the loss covers the token, else 0; overwritten */
  const double *distance;  /* ||q - p||^2 of student and target */
  const double *loss;      /* borrowed until backward */
  const double *from, *to; /* [rows] times of the learned weight */
  int64_t rows, positions;
  double power, constant; /* r and c of the adaptive weight */
  double total;           /* normaliser of this part of the objective */
};

/* Declares balance.{s_embedder,span_embedder,out}, which start at a weight of 1. Local. */
void cfm_balance_declare(struct cfm_balance *balance, struct params *params);

/* Makes weight[i] what the loss of token i counts in the objective: the adaptive weight (||q -
 * p||^2
 * + c)^-r, divided by its mean over the tokens of the batch and limited, as options say, over the
 * total; with a learned weight, times exp(-u), u a function of the row's times, and adds u to the
 * objective. Local. */
void cfm_weigh(const struct flow *flow, struct tape *tape, const struct cfm_weighing *of);

/* Whose predictions teach: the frozen base's or the student's own. Borrowed. Local. */
const struct cfm_model *cfm_teacher(const struct flow *flow);

/* X_{s,u}(y) = ((1 - u) y + (u - s) mean) / (1 - s), u = until[j]; prefixes stay as they are.
 * Local.
 */
struct value *cfm_advance(struct tape *tape, const struct cfm_jumps *jumps, const struct value *y,
                          const struct value *mean, const double *until);

/* How fast state and times move; NULL: not. */
struct cfm_rates {
  const struct value *state;
  const double *from, *to;
};

/* Sets `hidden` (unless NULL) to the student's states of psi_{s,t}, and `rate` to their change, by
 * the exact forward derivative. What it takes is given back. Local. */
void cfm_move(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
              const struct value *y, const struct cfm_rates *rates, struct value *hidden,
              struct value *rate);

/* The change of the student's hidden states along (1 - s) times the flow, whose mean is `mean`:
 * exact or a difference, as distill_loss says. Local. */
struct value *cfm_eulerian_rate(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                                const struct value *y, const struct value *mean);

/* Zeroed numbers of what bends a teacher, and those of jump j. Local. */
struct head_bend *cfm_bend_open(struct tape *tape, const struct cfm_jumps *jumps);
void cfm_bend_set(struct head_bend *bend, const struct cfm_jumps *jumps, int64_t j, double a,
                  double b);

/* Teachers of the identities that a flow map has (cfm_eulerian.c, cfm_lagrangian.c); the tape is
 * paused. Collective over the vocabulary group. */
void cfm_eulerian_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                          struct value *y, struct head_teacher *teacher);
void cfm_lagrangian_teacher(struct flow *flow, struct tape *tape, const struct cfm_jumps *jumps,
                            struct value *y, struct head_teacher *teacher);

/* The rows of a batch that batch->rows asks for, as a batch of all its rows; arrays in the tape's
 * records. Local. */
struct flow_batch cfm_pick_rows(const struct flow *flow, struct tape *tape,
                                const struct flow_batch *batch);

/* The distillation part of the objective: rows off the diagonal against a two-step teacher.
 * Collective over the vocabulary group. */
enum status cfm_distill_loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                             const struct cfm_draw *draw, struct value *y, struct value *hidden,
                             double total, struct flow_losses *losses);

/* flow_kind.sample of the formulation. */
enum status cfm_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens);

/* flow_kind.bound of the formulation. */
enum status cfm_bound(struct flow *flow, struct tape *tape,
                      const struct flow_bound_request *request, double *terms);

#endif
