#include "pipeline/driver/bench_rates.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"

/* Of a core with bf16 products (Zen 5), what steps of a few hundred million parameters reach, and a
 * disk or a share of a parallel file system. */
static const struct bench_rates defaults = {
    .product = 400e9, .share = 0.6, .memory = 8e9, .exchange = 4e9, .storage = 500e6};

/* value and ratio of the row called `name` in a table; false when there is none. */
static bool find_row(const char *table, const char *name, double *value, double *ratio) {
  const size_t length = strlen(name);
  for (const char *line = table; line && *line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, name, length) != 0 || line[length] != ',') continue;
    *ratio = 0;
    return sscanf(line + length, ",%lf,%*[^,],%lf", value, ratio) >= 1;
  }
  return false;
}

static enum status read_table(struct text *table, const char *folder, const char *name) {
  char path[PATH_MAX];
  const int length = snprintf(path, sizeof path, "%s/%s.csv", folder, name);
  text_clear(table);
  if (length >= PATH_MAX || !file_exists(path)) return STATUS_OK;
  return file_read(table, path);
}

static enum status read_all(struct bench_rates *rates, struct text *table, const char *folder,
                            int64_t cores) {
  double value, ratio;
  TRY(read_table(table, folder, "kernels"));
  const bool product = table->bytes && find_row(table->bytes, "gemm_wrapper", &value, &ratio);
  if (product) rates->product = value * 1e9 / (double)cores;
  TRY(read_table(table, folder, "step"));
  const bool share = table->bytes && find_row(table->bytes, "step_cfm_400m", &value, &ratio);
  if (share && ratio > 0) rates->share = ratio;
  TRY(read_table(table, folder, "allreduce"));
  if (table->bytes && find_row(table->bytes, "allreduce_256MiB", &value, &ratio))
    rates->exchange = value * 1e9;
  rates->measured = product && share;
  return STATUS_OK;
}

enum status bench_rates_read(struct bench_rates *rates, const char *folder, int64_t cores) {
  struct text table = {0};
  *rates = defaults;
  const enum status status = read_all(rates, &table, folder, cores);
  text_free(&table);
  return status;
}
