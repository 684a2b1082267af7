/* Draws lines of points, for scripts that write pages of results:
 *
 *   chart FILE.svg TITLE X-LABEL Y-LABEL
 *
 * Standard input has a point a line: the line's name, a tab, x, a tab, y. Names appear in the order
 * of their first point. Exit 0: written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/chart_file.h"

enum { POINTS = 256, NAME_BYTES = 64, LINE_BYTES = 256 };

struct line {
  char name[NAME_BYTES];
  size_t count;
  double x[POINTS], y[POINTS];
};

struct lines {
  struct line items[CHART_SERIES];
  size_t count;
};

static struct line *find(struct lines *lines, const char *name) {
  for (size_t i = 0; i < lines->count; i++)
    if (strcmp(lines->items[i].name, name) == 0) return &lines->items[i];
  if (lines->count == CHART_SERIES) return NULL;
  struct line *line = &lines->items[lines->count++];
  snprintf(line->name, sizeof line->name, "%s", name);
  return line;
}

/* Points that are not numbers stand for runs that are not there. */
static void read_points(struct lines *lines) {
  char text[LINE_BYTES], name[NAME_BYTES];
  double x, y;
  while (fgets(text, sizeof text, stdin)) {
    if (sscanf(text, "%63[^\t]\t%lf\t%lf", name, &x, &y) != 3) continue;
    struct line *line = find(lines, name);
    if (!line || line->count == POINTS) continue;
    line->x[line->count] = x;
    line->y[line->count++] = y;
  }
}

int main(int argc, char **argv) {
  static struct lines lines;
  struct chart_series series[CHART_SERIES];
  if (argc != 5) {
    fprintf(stderr, "usage: chart FILE.svg TITLE X-LABEL Y-LABEL\n");
    return 64;
  }
  read_points(&lines);
  for (size_t i = 0; i < lines.count; i++)
    series[i] = (struct chart_series){.name = lines.items[i].name,
                                      .count = lines.items[i].count,
                                      .x = lines.items[i].x,
                                      .y = lines.items[i].y};
  const struct chart chart = {.title = argv[2],
                              .x_label = argv[3],
                              .y_label = argv[4],
                              .series = series,
                              .series_count = lines.count};
  if (chart_file_write(argv[1], &chart) == STATUS_OK) return EXIT_SUCCESS;
  fprintf(stderr, "chart: %s\n", error_message());
  return EXIT_FAILURE;
}
