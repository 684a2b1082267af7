#include "stages/model/tape/param.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/model/tape/param_spectral.h"

enum { FIRST_CAPACITY = 64 };

void params_init(struct params *params, struct arena *arena) {
  assert(!arena_is_measuring(arena));
  *params = (struct params){.arena = arena};
}

static void grow(struct params *params) {
  const int64_t capacity = params->capacity ? 2 * params->capacity : FIRST_CAPACITY;
  struct param **items = arena_take(params->arena, (size_t)capacity * sizeof(*items));
  if (params->count) memcpy(items, params->items, (size_t)params->count * sizeof(*items));
  params->items = items;
  params->capacity = capacity;
}

static struct param *add(struct params *params, struct param described, const char *format,
                         va_list arguments) {
  if (params->count == params->capacity) grow(params);
  struct param *param = arena_take(params->arena, sizeof(*param));
  *param = described;
  const int length = vsnprintf(param->name, PARAM_NAME_BYTES, format, arguments);
  assert(length > 0 && length < PARAM_NAME_BYTES);
  (void)length;
  assert(!params_find(params, param->name));
  param->row_count = param->rows;
  param->layer = params->layer;
  params->items[params->count++] = param;
  return param;
}

struct param_layer *params_begin_layer(struct params *params) {
  assert(!params->layer);
  params->layer = arena_take_zeroed(params->arena, sizeof(*params->layer));
  params->layer->first = params->count;
  return params->layer;
}

void params_end_layer(struct params *params) {
  params->layer->end = params->count;
  params->layer = NULL;
}

static struct param describe(enum param_kind kind, int64_t rows, int64_t cols, enum param_init init,
                             double scale) {
  struct param param = {.kind = kind,
                        .rows = rows,
                        .cols = cols,
                        .dimensions = 2,
                        .init = init,
                        .scale = scale,
                        .rate = 1};
  param.shape[0] = rows;
  param.shape[1] = cols;
  return param;
}

struct param *params_add_matrix(struct params *params, int64_t rows, int64_t cols,
                                enum param_init init, double scale, const char *name, ...) {
  va_list arguments;
  va_start(arguments, name);
  struct param *param =
      add(params, describe(PARAM_MATRIX, rows, cols, init, scale), name, arguments);
  va_end(arguments);
  return param;
}

struct param *params_add_table(struct params *params, int64_t rows, int64_t cols,
                               enum param_init init, double scale, const char *name, ...) {
  va_list arguments;
  va_start(arguments, name);
  struct param *param =
      add(params, describe(PARAM_TABLE, rows, cols, init, scale), name, arguments);
  va_end(arguments);
  return param;
}

struct param *params_add_tokens(struct params *params, int64_t rows, int64_t cols,
                                enum param_init init, double scale, const char *name, ...) {
  va_list arguments;
  va_start(arguments, name);
  struct param *param =
      add(params, describe(PARAM_TOKENS, rows, cols, init, scale), name, arguments);
  va_end(arguments);
  param->dimensions = 3;
  param->shape[0] = 1;
  param->shape[1] = rows;
  param->shape[2] = cols;
  return param;
}

struct param *params_add_vector(struct params *params, int64_t count, enum param_init init,
                                double scale, const char *name, ...) {
  va_list arguments;
  va_start(arguments, name);
  struct param *param = add(params, describe(PARAM_VECTOR, 1, count, init, scale), name, arguments);
  va_end(arguments);
  param->dimensions = 1;
  param->shape[0] = count;
  return param;
}

void param_slice(struct param *param, int64_t begin, int64_t count) {
  assert(begin >= 0 && count >= 0 && begin + count <= param->rows);
  param->row_begin = begin;
  param->row_count = count;
  param->sliced = true;
}

static enum dtype sum_dtype(enum dtype element) {
  return element == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

enum dtype param_dtype(const struct param *param, enum dtype element) {
  return param->kind == PARAM_VECTOR ? sum_dtype(element) : element;
}

int64_t param_count(const struct param *param) {
  return param->rows * param->cols;
}

int64_t params_count(const struct params *params) {
  int64_t count = 0;
  for (int64_t i = 0; i < params->count; i++)
    if (!params->items[i]->derived) count += param_count(params->items[i]);
  return count;
}

static size_t local_count(const struct param *param) {
  return (size_t)(param->row_count * param->cols);
}

static void bind_gradient(struct param *param, struct arena *arena, enum dtype element) {
  const size_t bytes = local_count(param) * dtype_bytes(sum_dtype(element));
  param->gradient = param->frozen ? NULL : arena_take_zeroed(arena, bytes);
}

void params_bind(struct params *params, struct arena *arena, enum dtype element,
                 bool with_gradients) {
  for (int64_t i = 0; i < params->count; i++) {
    struct param *param = params->items[i];
    if (param->place == PARAM_ELSEWHERE) continue;
    param->data = arena_take(arena, local_count(param) * dtype_bytes(param_dtype(param, element)));
  }
  for (int64_t i = 0; with_gradients && i < params->count; i++)
    bind_gradient(params->items[i], arena, element);
}

enum { PARALLEL_COUNT = 1 << 16 }; /* elements; more are shared out to threads */

static void store(void *data, int64_t index, enum dtype dtype, double value) {
  if (dtype == DTYPE_F64) ((double *)data)[index] = value;
  if (dtype == DTYPE_F32) ((float *)data)[index] = (float)value;
  if (dtype == DTYPE_BF16) ((bf16 *)data)[index] = bf16_from_float((float)value);
}

/* The width of the initial distribution, or the constant. */
static double init_width(const struct param *param) {
  switch (param->init) {
  case PARAM_ZERO:
    return 0;
  case PARAM_ONE:
  case PARAM_SPECTRAL:
    return 1;
  case PARAM_NORMAL:
  case PARAM_UNIFORM:
    return param->scale;
  case PARAM_XAVIER_UNIFORM:
    return param->scale * sqrt(6.0 / (double)(param->rows + param->cols));
  case PARAM_FAN_IN_NORMAL:
    return param->scale / sqrt((double)param->cols);
  }
  return 0;
}

static double init_value(const struct param *param, double width, struct random_stream stream,
                         int64_t index) {
  switch (param->init) {
  case PARAM_NORMAL:
  case PARAM_FAN_IN_NORMAL:
  case PARAM_SPECTRAL:
    return width * random_normal(stream, (uint64_t)index);
  case PARAM_UNIFORM:
  case PARAM_XAVIER_UNIFORM:
    return width * (2 * random_uniform(stream, (uint64_t)index) - 1);
  case PARAM_ZERO:
  case PARAM_ONE:
    break;
  }
  return width;
}

static void initialise(const struct param *param, enum dtype dtype, uint64_t seed) {
  char purpose[PARAM_NAME_BYTES + 8];
  snprintf(purpose, sizeof purpose, "init.%s", param->name);
  const struct random_stream stream = random_open(seed, purpose, 0, 0);
  const double width = init_width(param);
  const int64_t first = param->row_begin * param->cols, count = param->row_count * param->cols;
#pragma omp parallel for if (count > PARALLEL_COUNT)
  for (int64_t i = 0; i < count; i++)
    store(param->data, i, dtype, init_value(param, width, stream, first + i));
}

void params_initialise(const struct params *params, enum dtype element, uint64_t seed) {
  for (int64_t i = 0; i < params->count; i++) {
    const struct param *param = params->items[i];
    if (param->place == PARAM_ELSEWHERE) continue;
    const enum dtype dtype = param_dtype(param, element);
    initialise(param, dtype, seed);
    if (param->init == PARAM_SPECTRAL) param_spectral_scale(param, dtype, params->arena);
  }
}

struct param *params_find(const struct params *params, const char *name) {
  for (int64_t i = 0; i < params->count; i++)
    if (strcmp(params->items[i]->name, name) == 0) return params->items[i];
  return NULL;
}

void params_clear_gradients(const struct params *params, enum dtype element) {
  for (int64_t i = 0; i < params->count; i++) {
    const struct param *param = params->items[i];
    if (!param->gradient) continue;
    memset(param->gradient, 0, local_count(param) * dtype_bytes(sum_dtype(element)));
  }
}
