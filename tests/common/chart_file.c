#include "tests/common/chart_file.h"

#include <stdio.h>
#include <string.h>

static const char STYLE[] =
    "<style>svg{background:#fff;font:11px "
    "sans-serif}.grid{stroke:#ddd}.line{fill:none;stroke-width:"
    "2}.c0{stroke:#1f77b4}.c1{stroke:#d62728}.c2{stroke:#2ca02c}.c3{stroke:#ff7f0e}.c4{stroke:"
    "#9467bd}.c5{stroke:#8c564b}.c6{stroke:#17becf}.c7{stroke:#7f7f7f}.dot{fill:#fff}</style>";

/* The chart's svg alone, with a style and a legend of its own. */
static void extract(FILE *file, const char *html, const struct chart *chart) {
  const char *begin = strstr(html, "<svg "), *end = strstr(html, "</svg>");
  if (!begin || !end) return; /* no point */
  fprintf(file, "<svg xmlns='http://www.w3.org/2000/svg' %.*s",
          (int)(strchr(begin, '>') - begin - 4), begin + 5);
  fprintf(file, "%s%.*s", STYLE, (int)(end - strchr(begin, '>') - 1), strchr(begin, '>') + 1);
  for (size_t i = 0; i < chart->series_count; i++)
    fprintf(file, "<text x='80' y='%zu' class='c%zu' stroke-width='.4'>%s</text>", 22 + 13 * i,
            i % 8, chart->series[i].name);
  fprintf(file, "</svg>\n");
}

enum status chart_file_write(const char *path, const struct chart *chart) {
  struct text html = {0};
  FILE *file = fopen(path, "w");
  CHECK(file, STATUS_WRITE, "%s: cannot be written", path);
  const enum status status = chart_write(&html, chart);
  if (status == STATUS_OK) extract(file, html.bytes, chart);
  text_free(&html);
  CHECK(fclose(file) == 0, STATUS_WRITE, "%s: cannot be written", path);
  return status;
}
