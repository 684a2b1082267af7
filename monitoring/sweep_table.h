/* The table of a sweep: a row for each configuration, with what its nodes came to. */
#ifndef MONITORING_SWEEP_TABLE_H
#define MONITORING_SWEEP_TABLE_H

#include "monitoring/sweep_outcomes.h"
#include "pipeline/base/error.h"
#include "pipeline/driver/publication.h"
#include "pipeline/driver/sweep_run.h"

#define SWEEP_TABLE_CSV "table.csv"
#define SWEEP_TABLE_MARKDOWN "table.md"

struct sweep_row {
  size_t configuration; /* number in the sweep */
  struct sweep_standing standing;
  struct outcomes outcomes; /* owned; empty unless finished */
};

struct sweep_table {
  const struct sweep_of *of; /* borrowed */
  struct sweep_row *rows;    /* owned; the best first, failures last */
  const char **columns;      /* owned; names of outcomes, the metric first; borrowed from rows */
  size_t column_count;
};

/* Gathers the table of a sweep. Local. MISMATCH when the metric is not an outcome, naming the
 * nearest. Free it in any case. */
enum status sweep_table_gather(struct sweep_table *table, const struct sweep_of *of);
void sweep_table_free(struct sweep_table *table);

/* Append the table as comma-separated values (all columns) and as Markdown (the metric, and some
 * others). Local. */
enum status sweep_table_csv(struct text *text, const struct sweep_table *table);
enum status sweep_table_markdown(struct text *text, const struct sweep_table *table);

/* Makes the folder of a sweep node: table.csv and table.md, which `markdown` receives too. Local.
 * ENVIRONMENT when configurations were not made, the status of the first failure when more failed
 * than the recipe allows: then the tables are in the unfinished folder. */
enum status sweep_table_make(struct publication *publication, const struct sweep_of *of,
                             struct text *markdown);

/* Appends the rows of a table.csv as those of an HTML table. Local. DAMAGED when a quoted cell has
 * no end. */
enum status sweep_table_html(struct text *html, const char *csv);

#endif
