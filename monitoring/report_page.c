/* The report as one HTML page: inline styles and SVG, no scripts, nothing fetched. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/chart.h"
#include "monitoring/report.h"

static const char *const HEAD =
    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
    "<meta name='viewport' content='width=device-width'>"
    "<link rel='icon' href='data:,'><title>Millrace report</title>\n<style>\n"
    ":root{color-scheme:light dark;--text:#1b1f24;--soft:#5a6570;--line:#d8dee4;--page:#fff;"
    "--panel:#f6f8fa;--bad:#b3261e;--c0:#0b63c5;--c1:#c2410c;--c2:#15803d;--c3:#9333ea;"
    "--c4:#b45309;--c5:#0e7490;--c6:#be185d;--c7:#4d5562}\n"
    "@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9aa7b4;--line:#343b43;"
    "--page:#0f1419;--panel:#171d24;--bad:#ff8a80;--c0:#6cb2ff;--c1:#ff9f6b;--c2:#6ad48b;"
    "--c3:#c99bff;--c4:#f0b454;--c5:#5fd0e4;--c6:#ff8fc1;--c7:#aab4bf}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page);"
    "max-width:1360px;margin:2rem auto;padding:0 1.25rem}\n"
    "h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
    ".soft{color:var(--soft)}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:.4rem .7rem;text-align:right;border-bottom:1px solid var(--line)}"
    "th{color:var(--soft);font-weight:600}th:first-child,td:first-child{text-align:left}"
    "tr.held td{color:var(--soft)}.bad{color:var(--bad)}\n"
    ".grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:1.2rem}\n"
    "figure{margin:0;padding:.8rem;background:var(--panel);border-radius:8px}"
    "figcaption{font-weight:600;margin-bottom:.3rem}svg{width:100%;height:auto;display:block}\n"
    ".grid{stroke:var(--line)}.tick,.label{fill:var(--soft);font-size:12px}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.line.dashed{stroke-dasharray:6 4}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:13px}"
    ".legend i{display:inline-block;width:1.4em;border-top:3px solid;margin-right:.4em;"
    "vertical-align:middle}.legend i.dashed{border-top-style:dashed}\n"
    "blockquote{margin:.4rem 0;padding:.6rem .9rem;background:var(--panel);border-radius:8px;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n";

static enum status write_head(struct text *html) {
  TRY(text_add(html, HEAD));
  for (int c = 0; c < 8; c++)
    TRY(text_format(html,
                    ".line.c%d{stroke:var(--c%d)}.dot.c%d{fill:var(--c%d)}"
                    "i.c%d{border-color:var(--c%d)}\n",
                    c, c, c, c, c, c));
  return text_add(html, "</style></head><body>\n");
}

static enum status write_cell(struct text *html, const char *format, double value) {
  if (!isfinite(value) || value <= 0) return text_add(html, "<td>–</td>");
  TRY(text_add(html, "<td>"));
  char cell[48];
  snprintf(cell, sizeof cell, format, value);
  TRY(text_add(html, cell));
  return text_add(html, "</td>");
}

static enum status write_name(struct text *html, const struct evaluation_system *system) {
  TRY(text_format(html, "<tr%s><td>", *system->method ? "" : " class='held'"));
  TRY(chart_escape(html, system->name));
  if (*system->note) {
    TRY(text_add(html, " <span class='soft'>("));
    TRY(chart_escape(html, system->note));
    TRY(text_add(html, ")</span>"));
  }
  return text_add(html, "</td>");
}

static enum status write_row(struct text *html, const struct evaluation *evaluation,
                             const struct evaluation_system *system) {
  const double share = report_entropy_share(evaluation, system);
  TRY(write_name(html, system));
  if (!*system->method)
    TRY(text_add(html, "<td>–</td>"));
  else if (system->nfe == 0)
    TRY(text_add(html, "<td>1 a token</td>"));
  else
    TRY(text_format(html, "<td>%lld</td>", (long long)system->nfe));
  TRY(write_cell(html, "%.2f", system->judge_perplexity));
  TRY(write_cell(html, "%.3f", system->token_entropy));
  TRY(text_format(html, "<td%s>%.0f %%</td>", share < 0.7 ? " class='bad'" : "", 100 * share));
  TRY(write_cell(html, "%.3f", system->distinct_1));
  TRY(write_cell(html, "%.3f", system->distinct_2));
  TRY(write_cell(html, "%.0f", system->tokens_per_second));
  return text_add(html, "</tr>\n");
}

static enum status write_table(struct text *html, const struct evaluation *evaluation) {
  TRY(text_add(html, "<h2>Systems</h2>\n<table><tr><th>system</th><th>NFE</th>"
                     "<th>judge perplexity</th><th>token entropy</th><th>of held-out text</th>"
                     "<th>distinct-1</th><th>distinct-2</th><th>tokens/s</th></tr>\n"));
  for (size_t i = 0; i < evaluation->system_count; i++)
    TRY(write_row(html, evaluation, &evaluation->systems[i]));
  TRY(text_add(html, "</table>\n<p class='soft'>Judge: "));
  TRY(chart_escape(html, evaluation->judge));
  TRY(text_format(
      html,
      " (weights %.12s), tokenizer %.12s, protocol " EVALUATION_PROTOCOL
      ", texts of %lld tokens. Entropy in nats, mean over texts of the entropy of a "
      "text's own tokens; perplexity has to be read beside it: a generator that repeats "
      "itself has a low one. A unigram model needs %.3f nats a token of held-out text."
      "</p>\n",
      evaluation->judge_hash, evaluation->tokenizer_hash, (long long)evaluation->positions,
      evaluation->unigram_loss));
  for (size_t i = 0; i < evaluation->model_count; i++) {
    TRY(text_add(html, "<p>"));
    TRY(chart_escape(html, evaluation->models[i].name));
    TRY(text_add(html, ": "));
    TRY(chart_escape(html, evaluation->models[i].part));
    TRY(text_format(html, " %.4f on held-out rows</p>\n", evaluation->models[i].value));
  }
  return STATUS_OK;
}

static enum status write_bounds(struct text *html, const struct evaluation *evaluation) {
  if (evaluation->bound_count == 0) return STATUS_OK;
  TRY(text_add(html, "<h2>Likelihood</h2>\n<table><tr><th>model</th><th>form</th><th>steps</th>"
                     "<th>bits a token, at most</th><th>&plusmn;</th><th>bits a byte</th></tr>\n"));
  for (size_t i = 0; i < evaluation->bound_count; i++) {
    const struct evaluation_bound *bound = &evaluation->bounds[i];
    TRY(text_add(html, "<tr><td>"));
    TRY(chart_escape(html, bound->name));
    TRY(text_add(html, "</td><td>"));
    TRY(chart_escape(html, bound->form));
    TRY(text_format(html, "</td><td>%lld</td><td>%.4f</td><td>%.4f</td><td>%.4f</td></tr>\n",
                    (long long)bound->steps, report_bits(bound->nats), report_bits(bound->error),
                    report_bits(bound->nats) * bound->tokens_per_byte));
  }
  return text_format(html,
                     "</table>\n<p class='soft'>Upper bounds on the negative log-likelihood of "
                     "held-out text, with standard errors over %lld rows.</p>\n",
                     (long long)evaluation->bounds[0].rows);
}

static enum status write_scores(struct text *html, const struct evaluation *evaluation) {
  if (evaluation->score_count == 0) return STATUS_OK;
  TRY(text_add(html, "<h2>Targets</h2>\n<table><tr><th>system</th><th>network calls</th>"
                     "<th>texts</th><th>BLEU</th><th>ROUGE-1</th><th>ROUGE-2</th>"
                     "<th>ROUGE-L</th></tr>\n"));
  for (size_t i = 0; i < evaluation->score_count; i++) {
    const struct evaluation_score *score = &evaluation->scores[i];
    TRY(text_add(html, "<tr><td>"));
    TRY(chart_escape(html, score->name));
    TRY(text_format(html, "</td><td>%lld</td><td>%lld</td><td>%.2f</td>", (long long)score->nfe,
                    (long long)score->texts, score->bleu));
    for (int kind = 0; kind < 3; kind++)
      TRY(text_format(html, "<td>%.2f &plusmn; %.2f</td>", score->rouge[kind],
                      score->rouge_error[kind]));
    TRY(text_add(html, "</tr>\n"));
  }
  return text_add(html, "</table>\n<p class='soft'>BLEU " EVALUATION_BLEU_SIGNATURE
                        "<br>ROUGE " EVALUATION_ROUGE_SIGNATURE
                        ", with standard errors over texts</p>\n");
}

/* One measure against the number of network calls, a line for each system that has several. */
static enum status write_calls_chart(struct text *html, const struct evaluation *evaluation,
                                     bool entropy) {
  double x[CHART_SERIES][16], y[CHART_SERIES][16];
  struct chart_series series[CHART_SERIES];
  size_t count = 0;
  for (size_t i = 0; i < evaluation->system_count; i++) {
    const struct evaluation_system *system = &evaluation->systems[i];
    size_t s = 0;
    if (system->nfe == 0) continue;
    while (s < count && strcmp(series[s].name, system->name) != 0) s++;
    if (s == CHART_SERIES) continue;
    if (s == count) series[count++] = (struct chart_series){system->name, 0, x[s], y[s], false};
    if (series[s].count == 16) continue;
    x[s][series[s].count] = (double)system->nfe;
    y[s][series[s].count++] = entropy ? system->token_entropy : system->judge_perplexity;
  }
  const struct chart chart = {.title = entropy ? "Token entropy" : "Judge perplexity",
                              .x_label = "network calls",
                              .y_label = entropy ? "nats" : "perplexity",
                              .log_x = true,
                              .log_y = !entropy,
                              .series = series,
                              .series_count = count};
  return count ? chart_write(html, &chart) : STATUS_OK;
}

static bool is_shown(const struct curve *curve, const char *node, const char *prefix) {
  return strcmp(curve->node, node) == 0 && strncmp(curve->key, prefix, strlen(prefix)) == 0;
}

/* What one chart of a node shows: curves whose key begins with `prefix`, which is left out of the
 * legend; training solid, validation dashed. */
struct node_chart {
  const char *prefix, *label;
  bool unigram; /* with the loss of a unigram model as a line to get below */
};

static struct chart_series node_series(const struct curve *curve, size_t skip, char name[96]) {
  const bool validation = strcmp(curve->event, "validation") == 0;
  snprintf(name, 96, "%.60s%s", *(curve->key + skip) ? curve->key + skip : curve->key,
           validation ? " (held-out)" : "");
  return (struct chart_series){.name = name,
                               .count = curve_count(curve),
                               .x = (const double *)(const void *)curve->x.bytes,
                               .y = (const double *)(const void *)curve->y.bytes,
                               .dashed = validation};
}

static enum status write_node_chart(struct text *html, const struct report *report,
                                    const char *node, const struct node_chart *shown) {
  struct chart_series series[CHART_SERIES];
  char names[CHART_SERIES][96], title[160];
  size_t count = 0;
  double last = 1;
  for (size_t i = 0; i < report->curves.count && count < CHART_SERIES - 1; i++) {
    const struct curve *curve = &report->curves.items[i];
    if (!is_shown(curve, node, shown->prefix)) continue;
    series[count] = node_series(curve, strlen(shown->prefix), names[count]);
    if (series[count].count) last = fmax(last, series[count].x[series[count].count - 1]);
    count++;
  }
  if (count == 0) return STATUS_OK;
  const double loss = report->evaluation.unigram_loss;
  const double line_x[2] = {1, last}, line_y[2] = {loss, loss};
  if (shown->unigram && report->evaluation.system_count)
    series[count++] = (struct chart_series){"unigram model", 2, line_x, line_y, true};
  snprintf(title, sizeof title, "%s: %s", node, shown->label);
  return chart_write(html, &(struct chart){.title = title,
                                           .x_label = "step",
                                           .y_label = shown->label,
                                           .series = series,
                                           .series_count = count});
}

static enum status write_training(struct text *html, const struct report *report) {
  static const struct node_chart shown[] = {{"parts.", "loss by part", true},
                                            {"gradient_norm", "gradient norm", false},
                                            {"tokens_per_second", "tokens per second", false},
                                            {"seconds.", "seconds of a step by phase", false}};
  TRY(text_add(html, "<h2>Training</h2>\n<div class='grid2'>\n"));
  for (size_t i = 0; i < report->recipe->node_count; i++) {
    const char *node = report->recipe->nodes[i].name;
    for (size_t c = 0; c < sizeof shown / sizeof *shown; c++)
      TRY(write_node_chart(html, report, node, &shown[c]));
  }
  return text_add(html, "</div>\n");
}

static enum status write_samples(struct text *html, const struct evaluation *evaluation) {
  TRY(text_add(html, "<h2>Sample texts</h2>\n"));
  for (size_t i = 0; i < evaluation->system_count; i++) {
    const struct evaluation_system *system = &evaluation->systems[i];
    TRY(text_add(html, "<details><summary>"));
    TRY(chart_escape(html, system->name));
    if (system->nfe) TRY(text_format(html, ", %lld calls", (long long)system->nfe));
    TRY(text_add(html, "</summary>\n"));
    for (int t = 0; t < EVALUATION_TEXTS && system->samples[t]; t++) {
      TRY(text_add(html, "<blockquote>"));
      TRY(chart_escape(html, system->samples[t]));
      TRY(text_add(html, "</blockquote>\n"));
    }
    TRY(text_add(html, "</details>\n"));
  }
  return STATUS_OK;
}

static enum status write_evaluation(struct text *html, const struct evaluation *evaluation) {
  TRY(write_scores(html, evaluation));
  if (evaluation->system_count == 0) return STATUS_OK;
  TRY(write_table(html, evaluation));
  TRY(write_bounds(html, evaluation));
  TRY(text_add(html, "<h2>Quality against network calls</h2>\n<div class='grid2'>\n"));
  TRY(write_calls_chart(html, evaluation, false));
  TRY(write_calls_chart(html, evaluation, true));
  return text_add(html, "</div>\n");
}

enum status report_write_page(struct text *html, const struct report *report) {
  TRY(write_head(html));
  TRY(text_add(html, "<h1>"));
  TRY(chart_escape(html, report->recipe->name));
  TRY(text_format(html, "</h1>\n<p class='soft'>seed %lld, %zu nodes</p>\n",
                  (long long)report->recipe->seed, report->recipe->node_count));
  TRY(write_evaluation(html, &report->evaluation));
  if (report->sweeps.bytes) TRY(text_add(html, report->sweeps.bytes));
  TRY(write_training(html, report));
  if (report->evaluation.system_count) TRY(write_samples(html, &report->evaluation));
  return text_add(html, "</body></html>\n");
}
