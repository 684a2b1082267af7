/* The report of a run: one table that compares the systems, sample texts, and a page with curves.
 */
#ifndef MONITORING_REPORT_H
#define MONITORING_REPORT_H

#include "monitoring/curves.h"
#include "monitoring/evaluation.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"

struct report {
  const struct recipe *recipe;  /* borrowed */
  struct evaluation evaluation; /* empty when the node is from no evaluation */
  struct curves curves;         /* of every training node of the run */
  struct text sweeps;           /* owned; the tables of the sweeps it is from, as HTML */
  struct text sweeps_plain;     /* owned; and as they are for people */
};

/* Gathers what a report node shows: the evaluation it is from (directly or through others), and the
 * metrics of the run's training nodes. Local. MISMATCH, DAMAGED name the file. */
enum status report_gather(struct report *report, const struct recipe *recipe,
                          const struct recipe_node *node, const char *run_folder);
void report_free(struct report *report);

/* Appends the table and `texts` sample texts of each system, for a terminal (report_text.c). Local.
 */
enum status report_write_text(struct text *out, const struct report *report, int texts);

/* Appends the page: one HTML file that needs nothing else (report_page.c). Local. */
enum status report_write_page(struct text *html, const struct report *report);

/* How the share of held-out text's token entropy is judged: below 0.7 a generator has collapsed. */
double report_entropy_share(const struct evaluation *evaluation,
                            const struct evaluation_system *system);

/* Nats in bits. */
double report_bits(double nats);

#endif
