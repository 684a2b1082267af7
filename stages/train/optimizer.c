#include "stages/train/optimizer.h"

#include <string.h>

#include "stages/train/master.h"
#include "stages/train/muon.h"

static int64_t held(const struct param *param) {
  return param->row_count * param->cols;
}

bool optimizer_takes_muon(const struct options *options, const struct param *param) {
  return options->optimizer == OPTIMIZER_MUON && param->kind == PARAM_MATRIX;
}

int64_t optimizer_state_bytes(const struct options *options, const struct param *param,
                              enum dtype element) {
  const int64_t low = param_dtype(param, element) == DTYPE_BF16 ? 2 : 0;
  const int64_t each = options->moments == MOMENTS_BF16 ? 2 : 4;
  const int64_t moments = optimizer_takes_muon(options, param) ? each : 2 * each;
  return low + moments + (options->ema > 0 ? 4 : 0);
}

static void take_state(struct optimizer_tensor *tensor, const struct optimizer_setup *setup,
                       struct arena *arena) {
  const size_t count = (size_t)held(tensor->param), bytes = count * sizeof(float);
  const size_t moment_bytes = setup->options->moments == MOMENTS_BF16 ? bytes / 2 : bytes;
  if (param_dtype(tensor->param, setup->element) == DTYPE_BF16)
    tensor->low = arena_take_zeroed(arena, count * sizeof(int16_t));
  tensor->first = arena_take_zeroed(arena, moment_bytes);
  if (!tensor->muon) tensor->second = arena_take_zeroed(arena, moment_bytes);
  if (setup->options->ema > 0) tensor->average = arena_take_zeroed(arena, bytes);
}

struct muon_matrix optimizer_matrix(struct optimizer *optimizer,
                                    const struct optimizer_tensor *tensor) {
  const struct param *param = tensor->param;
  return (struct muon_matrix){.rows = param->row_count,
                              .cols = param->cols,
                              .fan_out = param->rows,
                              .fan_in = param->cols,
                              .vocab = param->sliced ? optimizer->vocab : NULL,
                              .grid = tensor->together ? optimizer->grid : NULL,
                              .owner = tensor->owner,
                              .kernels = &optimizer->products,
                              .scratch = &optimizer->scratch};
}

/* Makes the scratch arena large enough for the largest owned matrix. */
static enum status measure_scratch(struct optimizer *optimizer) {
  arena_measure(&optimizer->scratch, "optimizer scratch");
  for (int64_t i = 0; i < optimizer->count; i++) {
    const struct optimizer_tensor *tensor = optimizer->tensors + i;
    if (!tensor->muon || !(tensor->owned || tensor->together)) continue;
    const struct muon_matrix matrix = optimizer_matrix(optimizer, tensor);
    if (tensor->owned) arena_take(&optimizer->scratch, (size_t)held(tensor->param) * sizeof(float));
    TRY(muon_orthogonalise(NULL, &matrix));
    arena_reset(&optimizer->scratch, 0);
  }
  return arena_init(&optimizer->scratch, "optimizer scratch", optimizer->scratch.peak);
}

enum status optimizer_init(struct optimizer *optimizer, const struct optimizer_setup *setup,
                           struct arena *arena) {
  *optimizer = (struct optimizer){
      .options = setup->options, .vocab = setup->vocab, .grid = setup->grid, .count = setup->count};
  optimizer->tensors = arena_take_zeroed(arena, (size_t)setup->count * sizeof(*optimizer->tensors));
  for (int64_t i = 0; i < setup->count; i++) {
    struct optimizer_tensor tensor = {.param = setup->params[i]};
    tensor.owned = !tensor.param->derived && zero_owns(setup->zero, i);
    tensor.muon = optimizer_takes_muon(setup->options, tensor.param);
    tensor.together = setup->together && setup->together[i];
    tensor.owner = setup->zero->owner[i];
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
