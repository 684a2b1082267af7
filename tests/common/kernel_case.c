#include "tests/common/kernel_case.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/model/kernels/cpu_linear.h"
#include "stages/model/kernels/cpu_simd.h"
#include "stages/model/kernels/processor.h"
#include "tests/common/tap.h"

static struct kernel_array *take(struct kernel_run *run, int64_t count, enum dtype dtype) {
  assert_true(run->used < KERNEL_CASE_ARRAYS);
  struct kernel_array *array = &run->arrays[run->used++];
  const size_t bytes = (size_t)count * dtype_bytes(dtype);
  *array = (struct kernel_array){malloc(bytes ? bytes : 1), count, dtype};
  assert_non_null(array->data);
  return array;
}

static double random_value(const struct kernel_run *run, int64_t i) {
  const struct random_stream stream = random_open(7, "kernel case", (uint64_t)run->used, 0);
  return 1.5 * random_normal(stream, (uint64_t)i);
}

static void write(const struct kernel_array *array, int64_t i, double value) {
  if (array->dtype == DTYPE_BF16)
    ((bf16 *)array->data)[i] = bf16_from_float((float)value);
  else if (array->dtype == DTYPE_F32)
    ((float *)array->data)[i] = (float)value;
  else
    ((int32_t *)array->data)[i] = (int32_t)value;
}

static double read(const struct kernel_array *array, int64_t i) {
  if (array->dtype == DTYPE_BF16) return (double)bf16_to_float(((const bf16 *)array->data)[i]);
  if (array->dtype == DTYPE_F32) return (double)((const float *)array->data)[i];
  return ((const int32_t *)array->data)[i];
}

void *kernel_case_elements(struct kernel_run *run, int64_t count) {
  const struct kernel_array *array = take(run, count, run->kernels->element);
  for (int64_t i = 0; i < count; i++) write(array, i, random_value(run, i));
  return array->data;
}

void *kernel_case_sums(struct kernel_run *run, int64_t count) {
  const struct kernel_array *array = take(run, count, run->kernels->sum);
  for (int64_t i = 0; i < count; i++) write(array, i, random_value(run, i));
  return array->data;
}

void *kernel_case_positive(struct kernel_run *run, int64_t count) {
  const struct kernel_array *array = take(run, count, run->kernels->sum);
  for (int64_t i = 0; i < count; i++) write(array, i, 1 + 0.5 * sin(random_value(run, i)));
  return array->data;
}

int32_t *kernel_case_integers(struct kernel_run *run, int64_t count, int32_t low, int32_t high) {
  const struct kernel_array *array = take(run, count, DTYPE_I32);
  const struct random_stream stream = random_open(7, "integers", (uint64_t)run->used, 0);
  for (int64_t i = 0; i < count; i++)
    write(array, i, low + (double)random_below(stream, (uint64_t)i, (uint64_t)(high - low)));
  return array->data;
}

static struct kernel_run run_case(kernel_case *call, const struct kernels *kernels,
                                  const int64_t *sizes, int threads) {
  struct kernel_run run = {.kernels = kernels, .sizes = sizes};
  omp_set_num_threads(threads);
  call(&run);
  omp_set_num_threads(1);
  return run;
}

static void free_run(struct kernel_run *run) {
  for (int i = 0; i < run->used; i++) free(run->arrays[i].data);
}

/* Normalised square error; infinite numbers and NaN count as equal to their like. */
static double distance(const struct kernel_array *expected, const struct kernel_array *found) {
  double error = 0, norm = 1e-20;
  for (int64_t i = 0; i < expected->count; i++) {
    const double a = read(expected, i), b = read(found, i);
    if ((isnan(a) && isnan(b)) || a == b) {
      if (isfinite(a)) norm += a * a;
      continue;
    }
    if (!isfinite(a) || !isfinite(b)) return INFINITY;
    error += (a - b) * (a - b);
    norm += a * a;
  }
  return sqrt(error / norm);
}

static void check_table(const char *name, const char *level, kernel_case *call,
                        const struct kernels *kernels, const int64_t *sizes,
                        const struct kernel_run *expected) {
  struct kernel_run one = run_case(call, kernels, sizes, 1);
  struct kernel_run three = run_case(call, kernels, sizes, 3);
  const double limit = kernels->element == DTYPE_BF16 ? 6e-3 : 2e-5;
  for (int i = 0; i < one.used; i++) {
    const double error = distance(&expected->arrays[i], &one.arrays[i]);
    if (!(error <= limit))
      fail_msg("%s (%s, %s; sizes %lld %lld %lld %lld %lld %lld): array %d is off by %.2e", name,
               level, dtype_name(kernels->element), (long long)sizes[0], (long long)sizes[1],
               (long long)sizes[2], (long long)sizes[3], (long long)sizes[4], (long long)sizes[5],
               i, error);
    if (memcmp(one.arrays[i].data, three.arrays[i].data,
               (size_t)one.arrays[i].count * dtype_bytes(one.arrays[i].dtype)) != 0)
      fail_msg("%s (%s): array %d has other bits with 3 threads", name, level, i);
  }
  free_run(&one);
  free_run(&three);
}

/* The table of a processor without vectors that we have kernels for. */
static void check_plain_table(const char *name, kernel_case *call, const int64_t *sizes,
                              enum dtype element, const struct kernel_run *expected) {
  struct kernels kernels;
  assert_ok(kernels_open(&kernels, "reference", element));
  if (element == DTYPE_BF16)
    cpu_linear_bf16(&kernels);
  else
    cpu_linear_f32(&kernels);
  check_table(name, "plain", call, &kernels, sizes, expected);
}

/* The tables of every instruction set of this processor. */
static void check_tables(const char *name, kernel_case *call, const int64_t *sizes,
                         enum dtype element, const struct kernel_run *expected) {
  struct kernels kernels;
  assert_ok(kernels_open(&kernels, "cpu", element));
  const enum processor_level level = processor_level();
  if (processor_has_tiles() && element == DTYPE_BF16) {
    cpu_bf16_amx(&kernels);
    check_table(name, "amx", call, &kernels, sizes, expected);
  }
  if (level == PROCESSOR_AVX512BF16 && element == DTYPE_BF16) {
    cpu_bf16_avx512bf16(&kernels);
    check_table(name, "avx512bf16", call, &kernels, sizes, expected);
  }
  if (level >= PROCESSOR_AVX512) {
    if (element == DTYPE_BF16)
      cpu_bf16_avx512(&kernels);
    else
      cpu_f32_avx512(&kernels);
    check_table(name, "avx512", call, &kernels, sizes, expected);
  }
  if (level >= PROCESSOR_AVX2) {
    if (element == DTYPE_BF16)
      cpu_bf16_avx2(&kernels);
    else
      cpu_f32_avx2(&kernels);
    check_table(name, "avx2", call, &kernels, sizes, expected);
  }
}

void kernel_case_check(const char *name, kernel_case *call, const int64_t *sizes,
                       enum dtype element) {
  struct kernels reference, cpu;
  assert_ok(kernels_open(&reference, "reference", element));
  assert_ok(kernels_open(&cpu, "cpu", element));
  struct kernel_run expected = run_case(call, &reference, sizes, 1);
  check_table(name, "cpu", call, &cpu, sizes, &expected);
  check_tables(name, call, sizes, element, &expected);
  check_plain_table(name, call, sizes, element, &expected);
  free_run(&expected);
}
