/* The report for a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/report.h"

enum { CELL_BYTES = 32, TEXT_WIDTH = 96, TEXT_LINES = 4 };

static const double COLLAPSED = 0.7; /* share of held-out text's entropy */

static const char *number(char out[CELL_BYTES], const char *format, double value) {
  if (!isfinite(value) || value < 0) return "-";
  snprintf(out, CELL_BYTES, format, value);
  return out;
}

static const char *calls(char out[CELL_BYTES], const struct evaluation_system *system) {
  if (!*system->method) return "-";
  if (system->nfe == 0) return "1/token";
  snprintf(out, CELL_BYTES, "%lld", (long long)system->nfe);
  return out;
}

static enum status write_row(struct text *out, const struct evaluation *evaluation,
                             const struct evaluation_system *system) {
  char nfe[CELL_BYTES], perplexity[CELL_BYTES], speed[CELL_BYTES],
      name[2 * EVALUATION_NAME_BYTES + 8];
  const double share = report_entropy_share(evaluation, system);
  snprintf(name, sizeof name, "%s%s%s%s", system->name, *system->note ? " (" : "", system->note,
           *system->note ? ")" : "");
  TRY(text_format(out, "%-30s %8s %12s %9.3f %6.0f%% %9.3f %9.3f %11s%s\n", name,
                  calls(nfe, system), number(perplexity, "%.2f", system->judge_perplexity),
                  system->token_entropy, 100 * share, system->distinct_1, system->distinct_2,
                  system->tokens_per_second > 0 ? number(speed, "%.0f", system->tokens_per_second)
                                                : "-",
                  share < COLLAPSED ? "  collapsed" : ""));
  return STATUS_OK;
}

static enum status write_table(struct text *out, const struct evaluation *evaluation) {
  TRY(text_format(out, "%-30s %8s %12s %9s %7s %9s %9s %11s\n", "system", "NFE", "perplexity",
                  "entropy", "of text", "distinct1", "distinct2", "tokens/s"));
  for (size_t i = 0; i < evaluation->system_count; i++)
    TRY(write_row(out, evaluation, &evaluation->systems[i]));
  return text_format(out,
                     "perplexity: under the judge '%s'; entropy: nats of a text's own tokens; NFE: "
                     "network calls a text of %lld tokens\n",
                     evaluation->judge, (long long)evaluation->positions);
}

static enum status write_models(struct text *out, const struct evaluation *evaluation) {
  for (size_t i = 0; i < evaluation->model_count; i++) {
    const struct evaluation_model *model = &evaluation->models[i];
    TRY(text_format(out, "%s: %s %.4f on held-out rows\n", model->name, model->part, model->value));
  }
  return text_format(out, "unigram model: %.4f nats a token of held-out text\n",
                     evaluation->unigram_loss);
}

static enum status write_bounds(struct text *out, const struct evaluation *evaluation) {
  if (evaluation->bound_count == 0) return STATUS_OK;
  TRY(text_format(out, "\n%-30s %-10s %6s %14s %9s %14s\n", "likelihood bound", "form", "steps",
                  "bits a token", "+-", "bits a byte"));
  for (size_t i = 0; i < evaluation->bound_count; i++) {
    const struct evaluation_bound *bound = &evaluation->bounds[i];
    char bits[CELL_BYTES], error[CELL_BYTES], bytes[CELL_BYTES];
    TRY(text_format(out, "%-30s %-10s %6lld %14s %9s %14s\n", bound->name, bound->form,
                    (long long)bound->steps, number(bits, "%.4f", report_bits(bound->nats)),
                    number(error, "%.4f", report_bits(bound->error)),
                    number(bytes, "%.4f", report_bits(bound->nats) * bound->tokens_per_byte)));
  }
  return STATUS_OK;
}

static enum status write_scores(struct text *out, const struct evaluation *evaluation) {
  if (evaluation->score_count == 0) return STATUS_OK;
  TRY(text_format(out, "%-30s %6s %6s %7s %15s %15s %15s\n", "targets", "NFE", "texts", "BLEU",
                  "ROUGE-1", "ROUGE-2", "ROUGE-L"));
  for (size_t i = 0; i < evaluation->score_count; i++) {
    const struct evaluation_score *score = &evaluation->scores[i];
    TRY(text_format(out, "%-30s %6lld %6lld %7.2f", score->name, (long long)score->nfe,
                    (long long)score->texts, score->bleu));
    for (int kind = 0; kind < 3; kind++)
      TRY(text_format(out, " %7.2f +- %4.2f", score->rouge[kind], score->rouge_error[kind]));
    TRY(text_add(out, "\n"));
  }
  return text_add(out, "BLEU " EVALUATION_BLEU_SIGNATURE "\nROUGE " EVALUATION_ROUGE_SIGNATURE
                       ", +- standard error over texts\n");
}

/* The text on few lines of bounded width; control characters become spaces. */
static enum status write_wrapped(struct text *out, const char *sample) {
  size_t left = strlen(sample);
  for (int line = 0; line < TEXT_LINES && left; line++) {
    size_t take = left < TEXT_WIDTH ? left : TEXT_WIDTH;
    while (take < left && take > TEXT_WIDTH / 2 && sample[take] != ' ') take--;
    TRY(text_add(out, "    "));
    for (size_t i = 0; i < take; i++)
      TRY(text_add_bytes(out, (unsigned char)sample[i] < ' ' ? " " : &sample[i], 1));
    sample += take;
    left -= take;
    TRY(text_add(out, left && line + 1 == TEXT_LINES ? " ...\n" : "\n"));
  }
  return STATUS_OK;
}

static enum status write_evaluation(struct text *out, const struct report *report, int texts) {
  const struct evaluation *evaluation = &report->evaluation;
  TRY(write_scores(out, evaluation));
  if (evaluation->system_count == 0 && evaluation->score_count > 0) return STATUS_OK;
  if (evaluation->system_count == 0 && report->sweeps_plain.bytes) return STATUS_OK;
  if (evaluation->system_count == 0)
    return text_add(out, "nothing was evaluated: the report shows training curves only\n");
  TRY(write_table(out, evaluation));
  TRY(write_models(out, evaluation));
  TRY(write_bounds(out, evaluation));
  for (size_t i = 0; i < evaluation->system_count; i++) {
    const struct evaluation_system *system = &evaluation->systems[i];
    char nfe[CELL_BYTES];
    for (int t = 0; t < texts && t < EVALUATION_TEXTS && system->samples[t]; t++) {
      TRY(text_format(out, "\n%s, NFE %s\n", system->name, calls(nfe, system)));
      TRY(write_wrapped(out, system->samples[t]));
    }
  }
  return STATUS_OK;
}

enum status report_write_text(struct text *out, const struct report *report, int texts) {
  TRY(write_evaluation(out, report, texts));
  return text_add(out, report->sweeps_plain.bytes ? report->sweeps_plain.bytes : "");
}
