/* Random access to one row of a store whose file is in memory already, and how long a training step
 * of 20 ms waits for its batch (R-IO-1). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "monitoring/timer.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/loader.h"
#include "sharding/store_writer.h"
#include "tests/common/bench.h"

enum { SHARDS = 4, ROWS = 4000, LENGTH = 1024, POSITIONS = 128, WIDTH = 512 };
enum { READS = 5000, BATCH = 32, STEPS = 150, PATH = 1200 };

static const struct store_writer_column token_column = {
    .name = "tokens", .dtype = DTYPE_U16, .dimensions = 1, .shape = {LENGTH}};
static const struct store_writer_column latent_column = {.name = "embeddings",
                                                         .dtype = DTYPE_BF16,
                                                         .dimensions = 2,
                                                         .shape = {POSITIONS, WIDTH},
                                                         .planes = true};

struct bench {
  char folder[PATH];
  struct store store;
  struct store_column column;
  struct source_cache cache;
};

static void demand(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, error_message());
  exit(EXIT_FAILURE);
}

/* Ids as frequent as those of text, or normal values. */
static void make_row(void *out, const struct store_writer_column *column, int64_t row) {
  const struct random_stream draw = random_open(1, "bench", (uint64_t)row, 0);
  uint16_t *ids = out;
  if (column == &token_column)
    for (uint64_t i = 0; i < LENGTH; i++)
      ids[i] = (uint16_t)random_below(draw, 2 * i, 1 + random_below(draw, 2 * i + 1, 32000));
  else
    for (uint64_t i = 0; i < POSITIONS * WIDTH; i++)
      ids[i] = bf16_from_float((float)random_normal(draw, i));
}

static void write_shard(const struct bench *bench, const struct store_writer_column *column,
                        int64_t index, int64_t rows) {
  static uint16_t row[POSITIONS * WIDTH];
  struct store_writer writer;
  const struct store_writer_options options = {.folder = bench->folder,
                                               .name = column->name,
                                               .tag = "",
                                               .index = index,
                                               .columns = column,
                                               .column_count = 1,
                                               .level = column == &token_column ? -100 : 1};
  const int64_t width = column == &token_column ? LENGTH : POSITIONS * WIDTH;
  demand(store_writer_open(&writer, &options) == STATUS_OK, "shard");
  for (int64_t i = 0; i < rows; i++) {
    make_row(row, column, index * rows + i);
    demand(store_writer_add(&writer, 0, row, width) == STATUS_OK, "row");
  }
  demand(store_writer_close(&writer) == STATUS_OK, "shard");
}

static void write_stores(const struct bench *bench) {
  struct manifest manifest = {0};
  demand(!file_remove(bench->folder) && !file_make_folder(bench->folder), bench->folder);
  for (int64_t shard = 0; shard < SHARDS; shard++) {
    write_shard(bench, &token_column, shard, ROWS);
    write_shard(bench, &latent_column, shard, ROWS / 50);
  }
  demand(manifest_collect(&manifest, bench->folder) == STATUS_OK, "manifest");
  demand(manifest_write(&manifest, bench->folder) == STATUS_OK, "manifest");
  manifest_free(&manifest);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double processor_now(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static double p99_of(double *seconds) {
  qsort(seconds, READS, sizeof *seconds, by_size);
  return 1e3 * seconds[READS * 99 / 100 - 1];
}

/* Milliseconds within which 99 of 100 rows in random order are read; every file was read before. */
static void measure_p99(struct bench *bench, const char *name) {
  static double seconds[READS], processor[READS];
  static int32_t row[POSITIONS * WIDTH];
  char longer[64];
  const struct random_stream draw = random_open(2, "bench", 0, 0);
  for (int64_t i = 0; i < bench->store.rows; i++)
    demand(!store_read(&bench->column, &bench->cache, i, row, NULL), "row");
  for (int i = 0; i < READS; i++) {
    const int64_t at = (int64_t)random_below(draw, (uint64_t)i, (uint64_t)bench->store.rows);
    const double begun = timer_now(), used = processor_now();
    demand(!store_read(&bench->column, &bench->cache, at, row, NULL), "row");
    processor[i] = processor_now() - used;
    seconds[i] = timer_now() - begun;
  }
  bench_row(name, p99_of(seconds), "ms", 0, "");
  snprintf(longer, sizeof longer, "%s_processor", name);
  bench_row(longer, p99_of(processor), "ms", 0, "");
}

static void work_for(double seconds) {
  const double begun = timer_now();
  while (timer_now() - begun < seconds) continue;
}

/* Share of a step that its training waits, in per cent. */
static double waiting(const struct bench *bench) {
  const struct loader_field field = {&bench->column, DTYPE_I32, LENGTH, 0};
  const struct loader_options options = {
      .order = {.seed = 3, .rows = bench->store.rows, .batch = BATCH},
      .slots = BATCH,
      .fields = &field,
      .field_count = 1,
      .depth = -1};
  struct loader *loader;
  const struct loader_batch *batch;
  demand(loader_open(&loader, &options) == STATUS_OK, "loader");
  const double begun = timer_now();
  for (int64_t step = 0; step < STEPS; step++) {
    demand(loader_get(loader, step, &batch) == STATUS_OK, "batch");
    work_for(0.02);
  }
  const double whole = timer_now() - begun, waited = loader_waits(loader).total_seconds;
  loader_close(loader);
  return 100 * waited / whole;
}

static void measure(struct bench *bench, const char *column, const char *name) {
  demand(store_open(&bench->store, bench->folder, column) == STATUS_OK, column);
  demand(store_find(&bench->store, &bench->column, column) == STATUS_OK, column);
  measure_p99(bench, name);
  if (column == token_column.name) bench_row("loader_wait", waiting(bench), "% of a step", 0, "");
  source_cache_free(&bench->cache);
  store_close(&bench->store);
}

int main(void) {
  static struct bench bench;
  const char *temporary = getenv("TMPDIR");
  snprintf(bench.folder, PATH, "%s/millrace-bench-loader", temporary ? temporary : "/tmp");
  bench_head();
  write_stores(&bench);
  measure(&bench, token_column.name, "loader_p99");
  measure(&bench, latent_column.name, "loader_p99_embeddings");
  demand(file_remove(bench.folder) == STATUS_OK, bench.folder);
  return EXIT_SUCCESS;
}
