#include "stages/train/optimizer.h"

#include <string.h>

#include "stages/train/adam.h"
#include "stages/train/master.h"
#include "stages/train/muon.h"

enum {
  CHUNK = 2048,              /* elements worked on at a time, on the stack */
  PARALLEL_COUNT = 8 * CHUNK /* more of them are shared out to threads */
};

static int64_t held(const struct param *param) {
  return param->row_count * param->cols;
}

bool optimizer_takes_muon(const struct options *options, const struct param *param) {
  return options->optimizer == OPTIMIZER_MUON && param->kind == PARAM_MATRIX;
}

int64_t optimizer_state_bytes(const struct options *options, const struct param *param,
                              enum dtype element) {
  const int64_t low = param_dtype(param, element) == DTYPE_BF16 ? 2 : 0;
  const int64_t moments = optimizer_takes_muon(options, param) ? 4 : 8;
  return low + moments + (options->ema > 0 ? 4 : 0);
}

static void take_state(struct optimizer_tensor *tensor, const struct optimizer_setup *setup,
                       struct arena *arena) {
  const size_t count = (size_t)held(tensor->param), bytes = count * sizeof(float);
  if (param_dtype(tensor->param, setup->element) == DTYPE_BF16)
    tensor->low = arena_take_zeroed(arena, count * sizeof(int16_t));
  tensor->first = arena_take_zeroed(arena, bytes);
  if (!tensor->muon) tensor->second = arena_take_zeroed(arena, bytes);
  if (setup->options->ema > 0) tensor->average = arena_take_zeroed(arena, bytes);
}

static struct muon_matrix as_matrix(struct optimizer *optimizer, const struct param *param) {
  return (struct muon_matrix){.rows = param->row_count,
                              .cols = param->cols,
                              .fan_out = param->rows,
                              .fan_in = param->cols,
                              .vocab = param->sliced ? optimizer->vocab : NULL,
                              .kernels = &optimizer->products,
                              .scratch = &optimizer->scratch};
}

/* Makes the scratch arena large enough for the largest owned matrix. */
static enum status measure_scratch(struct optimizer *optimizer) {
  arena_measure(&optimizer->scratch, "optimizer scratch");
  for (int64_t i = 0; i < optimizer->count; i++) {
    const struct optimizer_tensor *tensor = optimizer->tensors + i;
    if (!tensor->owned || !tensor->muon) continue;
    const struct muon_matrix matrix = as_matrix(optimizer, tensor->param);
    arena_take(&optimizer->scratch, (size_t)held(tensor->param) * sizeof(float));
    TRY(muon_orthogonalise(NULL, &matrix));
    arena_reset(&optimizer->scratch, 0);
  }
  return arena_init(&optimizer->scratch, "optimizer scratch", optimizer->scratch.peak);
}

enum status optimizer_init(struct optimizer *optimizer, const struct optimizer_setup *setup,
                           struct arena *arena) {
  *optimizer =
      (struct optimizer){.options = setup->options, .vocab = setup->vocab, .count = setup->count};
  optimizer->tensors = arena_take_zeroed(arena, (size_t)setup->count * sizeof(*optimizer->tensors));
  for (int64_t i = 0; i < setup->count; i++) {
    struct optimizer_tensor tensor = {.param = setup->params[i]};
    tensor.owned = !tensor.param->derived && zero_owns(setup->zero, i);
    tensor.muon = optimizer_takes_muon(setup->options, tensor.param);
    if (tensor.owned) take_state(&tensor, setup, arena);
    if (optimizer->tensors) optimizer->tensors[i] = tensor;
  }
  if (arena_is_measuring(arena)) return STATUS_OK;
  TRY(kernels_open(&optimizer->products, setup->kernels, DTYPE_F32));
  return measure_scratch(optimizer);
}

void optimizer_free(struct optimizer *optimizer) {
  arena_free(&optimizer->scratch);
}

void optimizer_masters(const struct optimizer *optimizer, int64_t tensor, float *values,
                       int64_t first, int64_t count) {
  const struct optimizer_tensor *of = optimizer->tensors + tensor;
  master_load(values, of->param->data, of->low, first, count);
}

void optimizer_start(struct optimizer *optimizer) {
  for (int64_t i = 0; i < optimizer->count; i++) {
    const struct optimizer_tensor *tensor = optimizer->tensors + i;
    if (!tensor->owned) continue;
    if (tensor->low) memset(tensor->low, 0, (size_t)held(tensor->param) * sizeof(int16_t));
    if (tensor->average) optimizer_masters(optimizer, i, tensor->average, 0, held(tensor->param));
  }
}

void optimizer_begin(struct optimizer *optimizer) {
  optimizer->updates++;
  if (optimizer->options->ema > 0) optimizer->averaged++;
}

static void average(const struct optimizer *optimizer, float *averages, const float *masters,
                    int64_t count) {
  const double start = (1.0 + (double)optimizer->averaged) / (10.0 + (double)optimizer->averaged);
  const double decay = start < optimizer->options->ema ? start : optimizer->options->ema;
  const float keep = (float)decay, take = (float)(1 - decay);
  for (int64_t i = 0; i < count; i++) averages[i] = keep * averages[i] + take * masters[i];
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

static double decay_of(const struct optimizer *optimizer, const struct param *param) {
  const bool shrinks = param->kind == PARAM_MATRIX || param->kind == PARAM_TABLE;
  return shrinks ? optimizer->options->weight_decay : 0;
}

static bool apply_adam(struct optimizer *optimizer, struct optimizer_tensor *tensor,
                       const float *gradient, const struct optimizer_update *update) {
  bool finite = true;
  const struct options *options = optimizer->options;
  const struct adam adam = {.rate = update->rate,
                            .beta1 = options->beta1,
                            .beta2 = options->beta2,
                            .epsilon = options->epsilon,
                            .decay = decay_of(optimizer, tensor->param),
                            .gradient_scale = update->gradient_scale,
                            .nesterov = options->optimizer == OPTIMIZER_MUON};
  const int64_t all = held(tensor->param);
#pragma omp parallel for schedule(static) reduction(&& : finite) if (all > PARALLEL_COUNT)
  for (int64_t at = 0; at < all; at += CHUNK) {
    float w[CHUNK];
    const int64_t count = all - at < CHUNK ? all - at : CHUNK;
    master_load(w, tensor->param->data, tensor->low, at, count);
    adam_update(w, tensor->first + at, tensor->second + at, gradient + at, count,
                optimizer->updates, &adam);
    finite = finite && all_finite(w, count);
    master_store(tensor->param->data, tensor->low, w, at, count);
    if (tensor->average) average(optimizer, tensor->average + at, w, count);
  }
  return finite;
}

/* Moves the weights against the orthogonalised direction. */
static bool descend(const struct optimizer *optimizer, struct optimizer_tensor *tensor,
                    const float *direction, double learning_rate) {
  bool finite = true;
  const float rate = (float)learning_rate;
  const float keep = (float)(1 - learning_rate * decay_of(optimizer, tensor->param));
  const int64_t all = held(tensor->param);
#pragma omp parallel for schedule(static) reduction(&& : finite) if (all > PARALLEL_COUNT)
  for (int64_t at = 0; at < all; at += CHUNK) {
    float w[CHUNK];
    const int64_t count = all - at < CHUNK ? all - at : CHUNK;
    master_load(w, tensor->param->data, tensor->low, at, count);
    for (int64_t i = 0; i < count; i++) w[i] = keep * w[i] - rate * direction[at + i];
    finite = finite && all_finite(w, count);
    master_store(tensor->param->data, tensor->low, w, at, count);
    if (tensor->average) average(optimizer, tensor->average + at, w, count);
  }
  return finite;
}

static enum status apply_muon(struct optimizer *optimizer, struct optimizer_tensor *tensor,
                              const float *gradient, const struct optimizer_update *update,
                              bool *finite) {
  const int64_t count = held(tensor->param);
  const struct muon_matrix matrix = as_matrix(optimizer, tensor->param);
  const size_t mark = arena_mark(&optimizer->scratch);
  float *u = arena_take(&optimizer->scratch, (size_t)count * sizeof(float));
  muon_momentum(u, tensor->first, gradient, count, optimizer->options->muon_momentum,
                update->gradient_scale, optimizer->updates);
  const enum status status = muon_orthogonalise(u, &matrix);
  if (status == STATUS_OK) *finite = descend(optimizer, tensor, u, update->rate);
  arena_reset(&optimizer->scratch, mark);
  return status;
}

enum status optimizer_apply(struct optimizer *optimizer, int64_t tensor, const float *gradient,
                            const struct optimizer_update *update, bool *finite) {
  struct optimizer_tensor *of = optimizer->tensors + tensor;
  if (of->muon) return apply_muon(optimizer, of, gradient, update, finite);
  *finite = apply_adam(optimizer, of, gradient, update);
  return STATUS_OK;
}
