#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/train/adam.h"
#include "stages/train/master.h"
#include "stages/train/moments.h"
#include "stages/train/muon.h"
#include "stages/train/optimizer.h"

enum {
  CHUNK = 1024,               /* elements worked on at a time, on the stack */
  PARALLEL_COUNT = 16 * CHUNK /* more of them are shared out to threads */
};

/* One update of one tensor. */
struct work {
  const struct optimizer *optimizer;
  const struct optimizer_tensor *tensor;
  const struct gradients_sum *gradient;
  struct adam adam; /* rate, decay and scale are Muon's as well */
  bool narrow;      /* moments are bf16 */
  struct random_stream rounding;
  float keep_average;
};

/* Numbers of a chunk, as F32. */
struct chunk {
  int64_t at, count;
  float w[CHUNK], g[CHUNK], m[CHUNK], v[CHUNK];
  uint32_t bits[CHUNK];
};

void optimizer_begin(struct optimizer *optimizer) {
  optimizer->updates++;
  if (optimizer->options->ema > 0) optimizer->averaged++;
}

static double average_decay(const struct optimizer *optimizer) {
  const double start = (1.0 + (double)optimizer->averaged) / (10.0 + (double)optimizer->averaged);
  return start < optimizer->options->ema ? start : optimizer->options->ema;
}

static double decay_of(const struct optimizer *optimizer, const struct param *param) {
  const bool shrinks = param->kind == PARAM_MATRIX || param->kind == PARAM_TABLE;
  return shrinks ? optimizer->options->weight_decay : 0;
}

static struct work open_work(const struct optimizer *optimizer, int64_t tensor,
                             const struct gradients_sum *gradient,
                             const struct optimizer_update *update) {
  const struct options *options = optimizer->options;
  const struct param *param = optimizer->tensors[tensor].param;
  const double factor = optimizer->tensors[tensor].muon ? 1 : param->rate;
  char purpose[PARAM_NAME_BYTES + 16];
  snprintf(purpose, sizeof purpose, "moments.%s", param->name);
  return (struct work){
      .optimizer = optimizer,
      .tensor = optimizer->tensors + tensor,
      .gradient = gradient,
      .adam = {.rate = update->rate * factor,
               .beta1 = options->beta1,
               .beta2 = options->beta2,
               .epsilon = options->epsilon,
               .decay = decay_of(optimizer, param) / factor,
               .gradient_scale = update->gradient_scale,
               .nesterov = options->optimizer == OPTIMIZER_MUON},
      .narrow = options->moments == MOMENTS_BF16,
      .rounding = random_open((uint64_t)options->seed, purpose, 0, (uint32_t)optimizer->updates),
      .keep_average = (float)average_decay(optimizer)};
}

static int64_t held(const struct work *work) {
  return work->tensor->param->row_count * work->tensor->param->cols;
}

static struct chunk open_chunk(const struct work *work, int64_t at) {
  struct chunk chunk;
  const int64_t all = held(work);
  chunk.at = at;
  chunk.count = all - at < CHUNK ? all - at : CHUNK;
  return chunk;
}

static void draw_bits(const struct work *work, struct chunk *chunk) {
  const struct param *param = work->tensor->param;
  if (work->narrow)
    random_fill_bits(chunk->bits, chunk->count, work->rounding,
                     (uint64_t)(param->row_begin * param->cols + chunk->at));
}

static void load_gradient(const struct work *work, struct chunk *chunk) {
  gradients_read(chunk->g, work->gradient, chunk->at, chunk->count);
}

static void load_weights(const struct work *work, struct chunk *chunk) {
  master_load(chunk->w, work->tensor->param->data, work->tensor->low, chunk->at, chunk->count);
}

static bool all_finite(const float *values, int64_t count) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    bad |= (bits & 0x7f800000u) == 0x7f800000u;
  }
  return bad == 0;
}

/* Keeps the new weights, takes them into the average, and says whether all are finite. */
static bool store_weights(const struct work *work, const struct chunk *chunk) {
  master_store(work->tensor->param->data, work->tensor->low, chunk->w, chunk->at, chunk->count);
  const float keep = work->keep_average, take = 1 - keep;
  float *average = work->tensor->average ? work->tensor->average + chunk->at : NULL;
  for (int64_t i = 0; average && i < chunk->count; i++)
    average[i] = keep * average[i] + take * chunk->w[i];
  return all_finite(chunk->w, chunk->count);
}

static bool adam_chunk(const struct work *work, int64_t at) {
  struct chunk chunk = open_chunk(work, at);
  const struct optimizer_tensor *tensor = work->tensor;
  draw_bits(work, &chunk);
  load_weights(work, &chunk);
  load_gradient(work, &chunk);
  moments_load(chunk.m, tensor->first, work->narrow, at, chunk.count);
  moments_load(chunk.v, tensor->second, work->narrow, at, chunk.count);
  adam_update(chunk.w, chunk.m, chunk.v, chunk.g, chunk.count, work->optimizer->updates,
              &work->adam);
  moments_store(tensor->first, work->narrow, chunk.m, at, chunk.count, chunk.bits, 0);
  moments_store(tensor->second, work->narrow, chunk.v, at, chunk.count, chunk.bits, 16);
  return store_weights(work, &chunk);
}

/* u = Nesterov momentum of a chunk. */
static void momentum_chunk(const struct work *work, float *u, int64_t at) {
  struct chunk chunk = open_chunk(work, at);
  draw_bits(work, &chunk);
  load_gradient(work, &chunk);
  moments_load(chunk.m, work->tensor->first, work->narrow, at, chunk.count);
  muon_momentum(u + at, chunk.m, chunk.g, chunk.count, work->optimizer->options->muon_momentum,
                work->adam.gradient_scale, work->optimizer->updates);
  moments_store(work->tensor->first, work->narrow, chunk.m, at, chunk.count, chunk.bits, 0);
}

/* Moves a chunk of weights against the orthogonalised direction. */
static bool descend_chunk(const struct work *work, const float *direction, int64_t at) {
  struct chunk chunk = open_chunk(work, at);
  const float rate = (float)work->adam.rate;
  const float keep = (float)(1 - work->adam.rate * work->adam.decay);
  load_weights(work, &chunk);
  for (int64_t i = 0; i < chunk.count; i++)
    chunk.w[i] = keep * chunk.w[i] - rate * direction[at + i];
  return store_weights(work, &chunk);
}

static bool apply_adam(const struct work *work) {
  bool finite = true;
  const int64_t all = held(work);
#pragma omp parallel for schedule(static) reduction(&& : finite) if (all > PARALLEL_COUNT)
  for (int64_t at = 0; at < all; at += CHUNK) finite = adam_chunk(work, at) && finite;
  return finite;
}

static bool descend(const struct work *work, const float *direction) {
  bool finite = true;
  const int64_t all = held(work);
#pragma omp parallel for schedule(static) reduction(&& : finite) if (all > PARALLEL_COUNT)
  for (int64_t at = 0; at < all; at += CHUNK) finite = descend_chunk(work, direction, at) && finite;
  return finite;
}

static enum status apply_muon(struct optimizer *optimizer, const struct work *work, bool *finite) {
  const int64_t all = held(work);
  const struct muon_matrix matrix = optimizer_matrix(optimizer, work->tensor);
  const size_t mark = arena_mark(&optimizer->scratch);
  float *u = arena_take(&optimizer->scratch, (size_t)all * sizeof(float));
#pragma omp parallel for schedule(static) if (all > PARALLEL_COUNT)
  for (int64_t at = 0; at < all; at += CHUNK) momentum_chunk(work, u, at);
  const enum status status = muon_orthogonalise(u, &matrix);
  if (status == STATUS_OK) *finite = descend(work, u);
  arena_reset(&optimizer->scratch, mark);
  return status;
}

enum status optimizer_apply(struct optimizer *optimizer, int64_t tensor,
                            const struct gradients_sum *gradient,
                            const struct optimizer_update *update, bool *finite) {
  const struct work work = open_work(optimizer, tensor, gradient, update);
  if (work.tensor->muon) return apply_muon(optimizer, &work, finite);
  *finite = apply_adam(&work);
  return STATUS_OK;
}

enum status optimizer_help(struct optimizer *optimizer, int64_t tensor) {
  const struct muon_matrix matrix = optimizer_matrix(optimizer, optimizer->tensors + tensor);
  return muon_orthogonalise(NULL, &matrix);
}
