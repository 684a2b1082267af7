#include "monitoring/sweep_table.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

/* Of the metric's value, an order that puts the best first and what has none last. */
struct rank {
  double key;
  size_t row;
};

static enum status gather_row(struct sweep_row *row, const struct sweep_of *of, size_t index) {
  const struct recipe_node *sweep = of->node;
  struct sweep_run own;
  row->configuration = index;
  TRY(sweep_look(&row->standing, of, index));
  if (row->standing.state != SWEEP_FINISHED) return STATUS_OK;
  TRY(sweep_run_open(&own, of, index));
  enum status status = STATUS_OK;
  for (size_t i = 0; i < sweep->input_count && status == STATUS_OK; i++) {
    const struct recipe_node *node = &of->run->recipe.nodes[sweep->inputs[i]], *there;
    char folder[PATH_MAX];
    status = recipe_find(&there, &own.run.recipe, node->name);
    const bool shared = status == STATUS_OK && own.shared[there - own.run.recipe.nodes];
    if (status == STATUS_OK) status = run_path(folder, shared ? of->run : &own.run, node->name, "");
    if (status == STATUS_OK) status = outcomes_add(&row->outcomes, node, folder);
  }
  sweep_run_close(&own);
  return status;
}

static bool has_column(const struct sweep_table *table, const char *name) {
  for (size_t i = 0; i < table->column_count; i++)
    if (strcmp(table->columns[i], name) == 0) return true;
  return false;
}

/* The names of all outcomes in the order in which rows bring them, the metric first. */
static enum status find_columns(struct sweep_table *table, const char *metric) {
  size_t most = 0;
  for (size_t i = 0; i < table->of->sweep.count; i++)
    most += outcomes_count(&table->rows[i].outcomes);
  table->columns = calloc(most + 1, sizeof *table->columns);
  CHECK(table->columns, STATUS_ENVIRONMENT, "out of memory: the columns of a table");
  for (size_t i = 0; i < table->of->sweep.count; i++)
    for (size_t j = 0; j < outcomes_count(&table->rows[i].outcomes); j++) {
      const char *name = outcomes_at(&table->rows[i].outcomes, j)->name;
      if (!has_column(table, name)) table->columns[table->column_count++] = name;
    }
  for (size_t i = 0; i < table->column_count; i++) {
    if (strcmp(table->columns[i], metric) != 0) continue;
    const char *found = table->columns[i];
    memmove(table->columns + 1, table->columns, i * sizeof *table->columns);
    table->columns[0] = found;
    return STATUS_OK;
  }
  if (!*metric || table->column_count == 0) return STATUS_OK;
  const char *nearest = text_nearest(metric, table->columns, table->column_count);
  FAIL(STATUS_MISMATCH, "%s: node '%s': metric '%s' is not an outcome; %s '%s'",
       table->of->node->where, table->of->node->name, metric,
       nearest ? "did you mean" : "the first one is", nearest ? nearest : table->columns[0]);
}

static int by_key(const void *a, const void *b) {
  const struct rank *left = a, *right = b;
  if (left->key != right->key) return left->key < right->key ? -1 : 1;
  return left->row < right->row ? -1 : 1;
}

static double key_of(const struct sweep_row *row, const struct options *options) {
  const struct outcome *metric = outcomes_find(&row->outcomes, options->metric);
  if (row->standing.state != SWEEP_FINISHED) return (double)INFINITY;
  if (!*options->metric) return 0;
  if (!metric || !isfinite(metric->value)) return DBL_MAX;
  return options->goal == GOAL_HIGHEST ? -metric->value : metric->value;
}

static enum status sort(struct sweep_table *table) {
  const size_t count = table->of->sweep.count;
  struct rank *ranks = calloc(count, sizeof *ranks);
  struct sweep_row *sorted = calloc(count, sizeof *sorted);
  for (size_t i = 0; ranks && sorted && i < count; i++)
    ranks[i] = (struct rank){key_of(&table->rows[i], &table->of->node->options), i};
  if (ranks && sorted) qsort(ranks, count, sizeof *ranks, by_key);
  for (size_t i = 0; ranks && sorted && i < count; i++) sorted[i] = table->rows[ranks[i].row];
  const bool good = ranks && sorted;
  free(ranks);
  if (good) free(table->rows);
  if (good) table->rows = sorted;
  if (!good) free(sorted);
  CHECK(good, STATUS_ENVIRONMENT, "out of memory: the rows of a table");
  return STATUS_OK;
}

enum status sweep_table_gather(struct sweep_table *table, const struct sweep_of *of) {
  *table = (struct sweep_table){.of = of};
  table->rows = calloc(of->sweep.count, sizeof *table->rows);
  CHECK(table->rows, STATUS_ENVIRONMENT, "out of memory: the rows of a table");
  for (size_t i = 0; i < of->sweep.count; i++) TRY(gather_row(&table->rows[i], of, i));
  TRY(find_columns(table, of->node->options.metric));
  return sort(table);
}

void sweep_table_free(struct sweep_table *table) {
  for (size_t i = 0; table->rows && i < table->of->sweep.count; i++)
    outcomes_free(&table->rows[i].outcomes);
  free(table->rows);
  free(table->columns);
  *table = (struct sweep_table){0};
}

static enum status write_file(const struct publication *publication, const char *name,
                              const struct text *content) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/%s", publication->folder.partial, name);
  return file_write(path, content->bytes, content->length);
}

static enum status write_files(struct publication *publication, const struct sweep_table *table,
                               struct text *markdown) {
  struct text csv = {0};
  enum status status = sweep_table_csv(&csv, table);
  if (status == STATUS_OK) status = write_file(publication, SWEEP_TABLE_CSV, &csv);
  text_free(&csv);
  TRY(status);
  TRY(sweep_table_markdown(markdown, table));
  return write_file(publication, SWEEP_TABLE_MARKDOWN, markdown);
}

/* Whether the sweep counts as made. */
static enum status judge(const struct sweep_table *table, const char *folder) {
  size_t counts[SWEEP_STATES] = {0};
  int first = 0;
  for (size_t i = 0; i < table->of->sweep.count; i++) {
    const struct sweep_standing *standing = &table->rows[i].standing;
    counts[standing->state]++;
    if (standing->state == SWEEP_FAILED && !first) first = standing->exit_code;
  }
  const size_t missing = counts[SWEEP_RUNNING] + counts[SWEEP_TO_BE_MADE];
  CHECK(missing == 0, STATUS_ENVIRONMENT, "%zu of %zu configurations were not made: %s/%s", missing,
        table->of->sweep.count, folder, SWEEP_TABLE_MARKDOWN);
  CHECK((int64_t)counts[SWEEP_FAILED] <= table->of->node->options.failures,
        error_status_of_exit(first), "%zu of %zu configurations failed, %lld may: %s/%s",
        counts[SWEEP_FAILED], table->of->sweep.count, (long long)table->of->node->options.failures,
        folder, SWEEP_TABLE_MARKDOWN);
  return STATUS_OK;
}

static enum status publish(struct publication *publication) {
  const char *folder = publication->folder.partial;
  TRY(manifest_add_file(&publication->manifest, folder, SWEEP_TABLE_CSV));
  TRY(manifest_add_file(&publication->manifest, folder, SWEEP_TABLE_MARKDOWN));
  return publication_finish(publication, 1);
}

enum status sweep_table_make(struct publication *publication, const struct sweep_of *of,
                             struct text *markdown) {
  struct sweep_table table;
  enum status status = sweep_table_gather(&table, of);
  if (status == STATUS_OK) status = write_files(publication, &table, markdown);
  if (status == STATUS_OK) status = judge(&table, publication->folder.partial);
  sweep_table_free(&table);
  if (status == STATUS_OK) status = publish(publication);
  return status;
}
