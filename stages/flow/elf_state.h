/* What the files of the ELF formulation (elf*.c) share (arXiv 2605.10938).
 *
 * Latents x are an encoder's outputs of unit variance. t = 0 is noise, t = 1 is data. A row is
 * either denoised, z_t = t x + (1 - t) sigma eps, or decoded: every position is corrupted by itself
 * and the network names the token. Letters: B rows, T positions, E latent width.
 */
#ifndef STAGES_FLOW_ELF_STATE_H
#define STAGES_FLOW_ELF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sharding/split.h"
#include "stages/flow/flow.h"
#include "stages/model/networks/elf_backbone.h"

enum elf_part { ELF_MSE, ELF_CE, ELF_PENALTIES };

/* 1 - t is never taken smaller than this: the velocity (x - z) / (1 - t) stays finite. */
#define ELF_SMALLEST_GAP 0.05

static inline double elf_gap(double time) {
  return 1 - time > ELF_SMALLEST_GAP ? 1 - time : ELF_SMALLEST_GAP;
}

struct elf {
  struct elf_backbone network, teacher; /* the latter of a distillation */
};

/* What is drawn for one row. */
struct elf_row {
  bool decode;     /* decode branch; else it is denoised */
  bool draft;      /* denoised with a first prediction of its own (self-conditioning) */
  bool dropped;    /* a pair whose source is hidden: zeros, in the encoder as well */
  double time;     /* 1 for decode rows */
  double until;    /* of a distillation, where the student's step ends */
  double guidance; /* w */
};

/* Draws one row: a function of (seed, sample, step, stratum). Local. */
struct elf_row elf_draw_row(const struct flow *flow, const struct flow_batch *batch, int64_t row);

/* The time below which a share u of training times lies: sigmoid(mean + deviation * normal
 * quantile(u)), 0 < u < 1. Local. */
double elf_time(const struct options *options, double u);

/* The latents of a row as it was drawn, [T, E]. Borrowed from the batch. Local. */
const float *elf_row_latents(const struct flow *flow, const struct flow_batch *batch,
                             const struct elf_row *rows, int64_t row);

/* Positions of a row that the objective covers: its tokens; of a pair its target and the option
 * elf_pads of the pads behind it. Local. */
struct split elf_covered(const struct flow *flow, const struct flow_batch *batch, int64_t row);

/* x[B * T, E], a constant: the rows' latents. Local. */
struct value *elf_latents(const struct flow *flow, struct tape *tape,
                          const struct flow_batch *batch, const struct elf_row *rows);

/* Writes the source of a pair over the beginning of values[T, E]: its latents, zeros where it is
 * dropped; leaves it as it is in decoded rows unless elf_clean_source. Local. */
void elf_show_source(float *values, const struct flow *flow, const struct flow_batch *batch,
                     const struct elf_row *rows, int64_t row);

/* What stands in the place of drafts where there is none, [B * T, E], a constant: zeros, but the
 * sources of pairs that are denoised with theirs. Local. */
struct value *elf_no_draft(const struct flow *flow, struct tape *tape,
                           const struct flow_batch *batch, const struct elf_row *rows);

/* z[B * T, E], a constant: the rows' noisy latents. Sources of pairs are clean; where they are
 * dropped zeros; in decoded rows noisy unless elf_clean_source. Local. */
struct value *elf_noisy(const struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const struct elf_row *rows);

/* The predicted latents x[count * T, E] of `count` sequences from their residual stream, by the
 * option elf_prediction: the output itself, z + gap * output for a velocity, z + gap * (z - sigma *
 * output) / max(t, 0.05) for unit noise, with gap = elf_gap(t). z [count * T, E] is what the
 * network saw (not read for x), a constant; time[count]. Local. */
struct value *elf_predict(const struct flow *flow, struct tape *tape,
                          const struct elf_backbone *net, struct value *hidden, struct value *z,
                          const double *time, int64_t count);

/* --- distillation (elf_distill.c) ------------------------------------------------------------ */

/* The round that a distillation is in, from 0, and the length of the student's steps there: 1 in
 * the last round, half of it in the one before. Local. */
int64_t elf_distill_round(const struct flow *flow);
double elf_distill_span(const struct flow *flow);

/* The teacher's times over a row's step: times[0] = time < ... < times[steps] = until, those
 * between drawn from the law of training times. Local. */
void elf_distill_grid(double *times, int64_t steps, const struct flow *flow,
                      const struct flow_batch *batch, int64_t row, const struct elf_row *drawn);

/* Some rows of a batch, and what the student sees of them. */
struct elf_lesson {
  int64_t count;
  const int64_t *rows;     /* [count] */
  struct value *z, *draft; /* [count * T, E], contiguous */
};

/* Latents [count * T, E], a constant: what the student has to predict for one step of its own to
 * end where the teacher's several do. They begin with the student's draft and go on with their own
 * predictions. Local. */
struct value *elf_distill_target(const struct flow *flow, struct tape *tape,
                                 const struct flow_batch *batch, const struct elf_row *rows,
                                 const struct elf_lesson *lesson);

/* flow_kind.loss and flow_kind.sample of the formulation. */
enum status elf_loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                     const double *total, struct flow_losses *losses);
enum status elf_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens);

/* The sampler's times: times[0] = 0 < ... < times[steps] = 1, by the option elf_grid of `sample`
 * and the law of training times of `train`; random ones are functions of the seed alone. Local. */
void elf_grid(double *times, int64_t steps, const struct options *train,
              const struct options *sample, uint64_t seed);

/* One step of the sampler for one text: z, draft[count] as they are before it, x the prediction.
 * The state moves from time `from` to `to` along the velocity (x - z) / (1 - from); a step to t = 1
 * gives x itself. Local. */
void elf_step(float *z, const float *x, int64_t count, double from, double to);

/* z[count] taken back towards noise: a z + (1 - a) scale eps; returns the time a t it now has.
 * a = 1 - gamma * (to - from), at least 0; gamma = 0 changes nothing. Local. */
double elf_renoise(float *z, int64_t count, double from, double to, double gamma, double scale,
                   struct random_stream stream);

#endif
