#include "monitoring/chart.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 320, LEFT = 64, RIGHT = 16, TOP = 16, BOTTOM = 44, TICKS = 5 };
enum { COLOURS = 8 };

/* One axis: values to pixels. */
struct axis {
  bool logarithmic;
  double low, high; /* of the (logarithm of the) values */
  double from, to;  /* pixels of low and high */
};

static bool is_drawn(const struct chart *chart, double x, double y) {
  if (!isfinite(x) || !isfinite(y)) return false;
  return (!chart->log_x || x > 0) && (!chart->log_y || y > 0);
}

static double position(const struct axis *axis, double value) {
  const double v = axis->logarithmic ? log10(value) : value;
  return axis->from + (v - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void widen(struct axis *axis, double value) {
  const double v = axis->logarithmic ? log10(value) : value;
  if (v < axis->low) axis->low = v;
  if (v > axis->high) axis->high = v;
}

/* Fits both axes to the points; false when there is none. */
static bool fit(const struct chart *chart, struct axis *x, struct axis *y) {
  *x = (struct axis){chart->log_x, INFINITY, -INFINITY, LEFT, WIDTH - RIGHT};
  *y = (struct axis){chart->log_y, INFINITY, -INFINITY, HEIGHT - BOTTOM, TOP};
  for (size_t s = 0; s < chart->series_count; s++)
    for (size_t i = 0; i < chart->series[s].count; i++) {
      if (!is_drawn(chart, chart->series[s].x[i], chart->series[s].y[i])) continue;
      widen(x, chart->series[s].x[i]);
      widen(y, chart->series[s].y[i]);
    }
  if (x->low > x->high) return false;
  if (x->high - x->low < 1e-12) x->low -= 0.5, x->high += 0.5;
  const double margin = y->high - y->low < 1e-12 ? 0.5 : 0.05 * (y->high - y->low);
  y->low -= margin;
  y->high += margin;
  return true;
}

/* A round step of about a TICKS-th of the range: 1, 2 or 5 times a power of ten. */
static double tick_step(double range) {
  const double rough = range / TICKS;
  const double power = pow(10, floor(log10(rough)));
  const double lead = rough / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

/* A tick's number, short: thousands and millions by letter. */
static void tick_label(char label[24], double value) {
  const double size = fabs(value);
  if (size >= 1e6)
    snprintf(label, 24, "%.4gM", value / 1e6);
  else if (size >= 1e4)
    snprintf(label, 24, "%.4gk", value / 1e3);
  else
    snprintf(label, 24, "%.4g", value);
}

static enum status write_tick(struct text *html, const struct axis *axis, double at,
                              bool vertical) {
  const double pixel =
      axis->from + (at - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
  char label[24];
  tick_label(label, axis->logarithmic ? pow(10, at) : at);
  if (vertical)
    return text_format(html,
                       "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>"
                       "<text class='tick' x='%d' y='%.1f' text-anchor='end'>%s</text>",
                       LEFT, WIDTH - RIGHT, pixel, pixel, LEFT - 8, pixel + 4, label);
  return text_format(html,
                     "<line class='grid' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>"
                     "<text class='tick' x='%.1f' y='%d' text-anchor='middle'>%s</text>",
                     pixel, pixel, TOP, HEIGHT - BOTTOM, pixel, HEIGHT - BOTTOM + 18, label);
}

/* 1, 2 and 5 times each power of ten; powers alone over many of them. */
static enum status write_log_ticks(struct text *html, const struct axis *axis, bool vertical) {
  static const double leads[] = {1, 2, 5};
  const int count = axis->high - axis->low > 4 ? 1 : 3;
  for (int power = (int)floor(axis->low); power <= axis->high; power++)
    for (int i = 0; i < count; i++) {
      const double at = power + log10(leads[i]);
      if (at >= axis->low - 1e-9 && at <= axis->high + 1e-9)
        TRY(write_tick(html, axis, at, vertical));
    }
  return STATUS_OK;
}

static enum status write_ticks(struct text *html, const struct axis *axis, bool vertical) {
  if (axis->logarithmic && axis->high - axis->low > 0.5)
    return write_log_ticks(html, axis, vertical);
  const double step = tick_step(axis->high - axis->low);
  const int64_t first = (int64_t)ceil(axis->low / step);
  const int64_t last = (int64_t)floor(axis->high / step + 1e-9);
  for (int64_t i = first; i <= last; i++) TRY(write_tick(html, axis, (double)i * step, vertical));
  return STATUS_OK;
}

static enum status write_line(struct text *html, const struct chart *chart, size_t index,
                              const struct axis *x, const struct axis *y) {
  const struct chart_series *series = &chart->series[index];
  TRY(text_format(html, "<polyline class='line c%zu%s' points='", index % COLOURS,
                  series->dashed ? " dashed" : ""));
  for (size_t i = 0; i < series->count; i++)
    if (is_drawn(chart, series->x[i], series->y[i]))
      TRY(text_format(html, "%.1f,%.1f ", position(x, series->x[i]), position(y, series->y[i])));
  TRY(text_add(html, "'/>"));
  for (size_t i = 0; i < series->count && series->count <= 40; i++) {
    if (!is_drawn(chart, series->x[i], series->y[i])) continue;
    TRY(text_format(html, "<circle class='dot c%zu' cx='%.1f' cy='%.1f' r='3'><title>",
                    index % COLOURS, position(x, series->x[i]), position(y, series->y[i])));
    TRY(chart_escape(html, series->name));
    TRY(text_format(html, ": %.6g at %.6g</title></circle>", series->y[i], series->x[i]));
  }
  return STATUS_OK;
}

static enum status write_labels(struct text *html, const struct chart *chart) {
  TRY(text_format(html, "<text class='label' x='%d' y='%d' text-anchor='middle'>",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8));
  TRY(chart_escape(html, chart->x_label));
  TRY(text_format(html,
                  "</text><text class='label' transform='translate(14 %d) rotate(-90)' "
                  "text-anchor='middle'>",
                  (TOP + HEIGHT - BOTTOM) / 2));
  TRY(chart_escape(html, chart->y_label));
  return text_add(html, "</text></svg>");
}

static enum status write_legend(struct text *html, const struct chart *chart) {
  TRY(text_add(html, "<div class='legend'>"));
  for (size_t s = 0; s < chart->series_count; s++) {
    if (chart->series[s].count == 0) continue;
    TRY(text_format(html, "<span><i class='c%zu%s'></i>", s % COLOURS,
                    chart->series[s].dashed ? " dashed" : ""));
    TRY(chart_escape(html, chart->series[s].name));
    TRY(text_add(html, "</span>"));
  }
  return text_add(html, "</div></figure>\n");
}

enum status chart_write(struct text *html, const struct chart *chart) {
  struct axis x, y;
  TRY(text_add(html, "<figure><figcaption>"));
  TRY(chart_escape(html, chart->title));
  TRY(text_add(html, "</figcaption>"));
  if (!fit(chart, &x, &y)) return text_add(html, "<p>no data</p></figure>\n");
  TRY(text_format(html, "<svg viewBox='0 0 %d %d' role='img'>", WIDTH, HEIGHT));
  TRY(write_ticks(html, &x, false));
  TRY(write_ticks(html, &y, true));
  for (size_t s = 0; s < chart->series_count; s++) TRY(write_line(html, chart, s, &x, &y));
  TRY(write_labels(html, chart));
  return write_legend(html, chart);
}

static const char *entity(char c) {
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return NULL;
  }
}

enum status chart_escape(struct text *html, const char *string) {
  size_t left = strlen(string);
  while (left) {
    const size_t valid = text_valid_utf8(string, left);
    for (size_t i = 0; i < valid; i++) {
      const char *replacement = entity(string[i]);
      TRY(replacement ? text_add(html, replacement) : text_add_bytes(html, string + i, 1));
    }
    string += valid;
    left -= valid;
    if (left == 0) break;
    TRY(text_add(html, "\xef\xbf\xbd"));
    string++;
    left--;
  }
  return STATUS_OK;
}
