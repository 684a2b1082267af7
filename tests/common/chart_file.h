/* A chart as an SVG file of its own, for pages of results. */
#ifndef TESTS_COMMON_CHART_FILE_H
#define TESTS_COMMON_CHART_FILE_H

#include "monitoring/chart.h"

/* Writes the chart with a style and a legend; an empty file when there is no point. Local. WRITE on
 * failure. */
enum status chart_file_write(const char *path, const struct chart *chart);

#endif
