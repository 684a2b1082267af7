/* Line charts as SVG text: what report.html and the dashboard show. */
#ifndef MONITORING_CHART_H
#define MONITORING_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

struct chart_series {
  const char *name; /* borrowed */
  size_t count;
  const double *x, *y; /* borrowed; points that are not finite are left out */
  bool dashed;
};

struct chart {
  const char *title, *x_label, *y_label; /* borrowed */
  bool log_x, log_y;                     /* only positive values are drawn then */
  const struct chart_series *series;     /* borrowed */
  size_t series_count;                   /* at most CHART_SERIES; colours repeat beyond 8 */
};

enum { CHART_SERIES = 32 };

/* Appends one <figure> with an <svg> and a legend; says "no data" when there is no point. Text is
 * escaped. Local. ENVIRONMENT when memory is out. */
enum status chart_write(struct text *html, const struct chart *chart);

/* Appends `string` with &, <, > and quotes escaped for HTML; bytes that are not UTF-8 become
 * U+FFFD. Local. */
enum status chart_escape(struct text *html, const char *string);

#endif
