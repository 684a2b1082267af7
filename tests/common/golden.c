#include "tests/common/golden.h"

#include <math.h>
#include <string.h>

/* FNV-1a, 64 bits. */
static uint64_t key_of(const char *name) {
  uint64_t key = 0xcbf29ce484222325u;
  for (; *name; name++) key = (key ^ (unsigned char)*name) * 0x100000001b3u;
  return key;
}

static double uniform_at(uint64_t key, int64_t index) {
  uint64_t x = key + (uint64_t)(index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x = x ^ (x >> 31);
  return (double)(x >> 40) / 8388608.0 - 1;
}

double golden_uniform(const char *name, int64_t index) {
  return uniform_at(key_of(name), index);
}

void golden_fill(float *values, int64_t count, const char *name, double scale, double offset) {
  const uint64_t key = key_of(name);
  for (int64_t i = 0; i < count; i++) values[i] = (float)(offset + scale * uniform_at(key, i));
}

static double scale_of(const struct param *param, int64_t inputs) {
  if (strstr(param->name, "relative_attention_bias")) return 1;
  if (strcmp(param->name, "shared.weight") == 0) return 1.7;
  const double scale = sqrt(3 / (double)inputs);
  return strstr(param->name, ".q.") ? scale / 8 : scale;
}

/* Checkpoints store it [in, out]. */
static void fill_kernel(const struct param *param) {
  const uint64_t key = key_of(param->name);
  const double scale = sqrt(3 / (double)param->cols);
  float *data = param->data;
  for (int64_t i = 0; i < param->rows; i++)
    for (int64_t j = 0; j < param->cols; j++)
      data[i * param->cols + j] = (float)(scale * uniform_at(key, j * param->rows + i));
}

void golden_fill_param(const struct param *param) {
  const int64_t count = param_count(param);
  if (param->dimensions == 1)
    golden_fill(param->data, count, param->name, 0.1, strstr(param->name, "norm") ? 1 : 0);
  else if (strstr(param->name, "_kernel"))
    fill_kernel(param);
  else
    golden_fill(param->data, count, param->name, scale_of(param, param->cols), 0);
}

int32_t golden_id(const char *name, int64_t index, int64_t vocabulary) {
  return (int32_t)floor((golden_uniform(name, index) + 1) / 2 * (double)vocabulary);
}

double golden_project(const char *name, const float *row, int64_t cols) {
  const uint64_t key = key_of(name);
  double sum = 0;
  for (int64_t c = 0; c < cols; c++) sum += (double)row[c] * uniform_at(key, c);
  return sum;
}
