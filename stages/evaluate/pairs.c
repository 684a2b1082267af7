#include "stages/evaluate/pairs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/evaluation.h"
#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "sharding/comm.h"
#include "sharding/store.h"
#include "stages/evaluate/bleu.h"
#include "stages/evaluate/rouge.h"
#include "stages/flow/model.h"

enum { NAME_BYTES = 32, LEAD_WORDS_MAX = 1 << 20 };

/* The texts of a set. */
struct set {
  struct store store;
  struct store_column text, source, reference;
  struct source_cache cache;
};

/* What is scored: a set's own texts, or the first `lead` words of their sources. */
struct scoring {
  struct set *set;
  int64_t lead; /* 0: the texts */
  struct text text, reference;
  struct bleu bleu;
  struct rouge rouge;
  double means[ROUGE_KINDS], squares[ROUGE_KINDS]; /* of deviations: as Welford (1962) sums */
};

static const struct recipe_node *input_at(const struct stage *stage, size_t i) {
  return &stage->recipe->nodes[stage->node->inputs[i]];
}

bool pairs_apply(const struct stage *stage) {
  for (size_t i = 0; i < stage->node->input_count; i++)
    if (recipe_draws_targets(stage->recipe, input_at(stage, i))) return true;
  return false;
}

static enum status open_set(struct set *set, const char *folder, const char *name) {
  *set = (struct set){0};
  TRY(store_open(&set->store, folder, name));
  TRY(store_find(&set->store, &set->text, "text"));
  TRY(store_find(&set->store, &set->source, "source"));
  return store_find(&set->store, &set->reference, "reference");
}

static void close_set(struct set *set) {
  source_cache_free(&set->cache);
  store_close(&set->store);
}

static enum status read_text(struct text *text, struct set *set, const struct store_column *column,
                             int64_t row) {
  int64_t length = 0;
  char *bytes = malloc((size_t)column->width + 1);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: a text of %lld bytes", (long long)column->width);
  text_clear(text);
  enum status status = store_read(column, &set->cache, row, bytes, &length);
  if (status == STATUS_OK) status = text_add_bytes(text, bytes, (size_t)length);
  free(bytes);
  return status;
}

/* Bytes of the first `count` words; *found how many there are. */
static size_t first_words(const struct text *text, int64_t count, int64_t *found) {
  size_t at = 0, end = 0;
  for (*found = 0; *found < count; (*found)++) {
    while (at < text->length && (unsigned char)text->bytes[at] <= ' ') at++;
    if (at == text->length) break;
    while (at < text->length && (unsigned char)text->bytes[at] > ' ') at++;
    end = at;
  }
  return end;
}

static enum status count_words(int64_t *mean, struct set *set) {
  struct text text = {0};
  int64_t words = 0, found;
  enum status status = STATUS_OK;
  for (int64_t row = 0; row < set->store.rows && status == STATUS_OK; row++) {
    status = read_text(&text, set, &set->reference, row);
    if (status == STATUS_OK) first_words(&text, LEAD_WORDS_MAX, &found);
    if (status == STATUS_OK) words += found;
  }
  text_free(&text);
  *mean = set->store.rows > 0 ? (words + set->store.rows / 2) / set->store.rows : 0;
  return status;
}

static enum status score_row(struct scoring *scoring, int64_t row) {
  struct set *set = scoring->set;
  double scores[ROUGE_KINDS];
  int64_t found;
  TRY(read_text(&scoring->text, set, scoring->lead ? &set->source : &set->text, row));
  TRY(read_text(&scoring->reference, set, &set->reference, row));
  if (scoring->lead) scoring->text.length = first_words(&scoring->text, scoring->lead, &found);
  TRY(bleu_add(&scoring->bleu, &scoring->text, &scoring->reference));
  TRY(rouge_score(scores, &scoring->rouge, &scoring->text, &scoring->reference));
  for (int kind = 0; kind < ROUGE_KINDS; kind++) {
    const double away = 100 * scores[kind] - scoring->means[kind];
    scoring->means[kind] += away / (double)(row + 1);
    scoring->squares[kind] += away * (100 * scores[kind] - scoring->means[kind]);
  }
  return STATUS_OK;
}

/* Means, and their standard errors over texts. */
static void finish(struct evaluation_score *score, const struct scoring *scoring) {
  const double count = (double)scoring->set->store.rows;
  score->texts = scoring->set->store.rows;
  score->bleu = bleu_score(&scoring->bleu);
  for (int kind = 0; kind < ROUGE_KINDS; kind++) {
    score->rouge[kind] = scoring->means[kind];
    score->rouge_error[kind] = sqrt(scoring->squares[kind]) / count;
  }
}

static enum status score_set(struct evaluation_score *score, struct set *set, int64_t lead) {
  struct scoring scoring = {.set = set, .lead = lead};
  enum status status = STATUS_OK;
  for (int64_t row = 0; row < set->store.rows && status == STATUS_OK; row++)
    status = score_row(&scoring, row);
  if (status == STATUS_OK) finish(score, &scoring);
  bleu_free(&scoring.bleu);
  rouge_free(&scoring.rouge);
  text_free(&scoring.text);
  text_free(&scoring.reference);
  return status;
}

static enum status add_score(struct evaluation *evaluation, struct evaluation_score **score,
                             const char *name) {
  *score = evaluation_add_score(evaluation);
  CHECK(*score, STATUS_ENVIRONMENT, "out of memory: the scores of '%s'", name);
  snprintf((*score)->name, sizeof(*score)->name, "%s", name);
  return STATUS_OK;
}

/* All sets are of one tokenizer (R-TOK-5). */
static enum status note_tokenizer(struct evaluation *evaluation, const struct set *set) {
  const char *hash = store_value(&set->store, "tokenizer");
  CHECK(hash, STATUS_DAMAGED, "'%s' does not say of which tokenizer it is; sample it again",
        set->store.folder);
  if (!*evaluation->tokenizer_hash)
    snprintf(evaluation->tokenizer_hash, sizeof evaluation->tokenizer_hash, "%s", hash);
  CHECK(strcmp(evaluation->tokenizer_hash, hash) == 0, STATUS_MISMATCH,
        "'%s' is of tokenizer %s, the samples before it of %s; evaluate them apart",
        set->store.folder, hash, evaluation->tokenizer_hash);
  return STATUS_OK;
}

/* The lead words are scored once, for the first set. */
static enum status add_lead(struct evaluation *evaluation, struct set *set) {
  struct evaluation_score *score;
  char name[EVALUATION_NAME_BYTES];
  int64_t words;
  if (evaluation->score_count > 0) return STATUS_OK;
  TRY(count_words(&words, set));
  snprintf(name, sizeof name, "first %lld words of the source", (long long)words);
  TRY(add_score(evaluation, &score, name));
  return score_set(score, set, words);
}

static enum status score_samples(struct evaluation *evaluation, const struct stage *stage,
                                 const struct recipe_node *node, int64_t nfe) {
  struct evaluation_score *score;
  struct set set;
  char folder[STAGE_PATH_BYTES], name[NAME_BYTES];
  snprintf(name, sizeof name, "nfe%lld", (long long)nfe);
  TRY(stage_folder(folder, stage, node));
  enum status status = open_set(&set, folder, name);
  if (status == STATUS_OK) status = note_tokenizer(evaluation, &set);
  if (status == STATUS_OK) status = add_lead(evaluation, &set);
  if (status == STATUS_OK) status = add_score(evaluation, &score, node->name);
  if (status == STATUS_OK) status = score_set(score, &set, 0);
  close_set(&set);
  TRY(status);
  score->nfe = nfe * node->options.candidates;
  log_line(stage->log, "%s, %lld calls: BLEU %.2f, ROUGE %.2f %.2f %.2f", node->name,
           (long long)score->nfe, score->bleu, score->rouge[ROUGE_1], score->rouge[ROUGE_2],
           score->rouge[ROUGE_L]);
  return STATUS_OK;
}

static enum status score_all(struct evaluation *evaluation, const struct stage *stage) {
  for (size_t i = 0; i < stage->node->input_count; i++) {
    const struct recipe_node *node = input_at(stage, i);
    if (node->kind != KIND_SAMPLE) continue;
    for (size_t k = 0; k < node->options.nfe.count; k++)
      TRY(score_samples(evaluation, stage, node, node->options.nfe.values[k]));
  }
  return STATUS_OK;
}

static enum status write_scores(const struct evaluation *evaluation, const struct stage *stage) {
  char path[STAGE_PATH_BYTES];
  CHECK(snprintf(path, sizeof path, "%s/" EVALUATION_FILE_NAME, stage->folder) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", stage->folder);
  TRY(evaluation_write(evaluation, path));
  return manifest_add_file(stage->manifest, stage->folder, EVALUATION_FILE_NAME);
}

/* A thousand short texts take a second: one rank does it. */
enum status pairs_evaluate(struct stage *stage) {
  struct evaluation evaluation = {.score_count = 0};
  enum status status = STATUS_OK;
  if (stage->comm->rank == 0) status = score_all(&evaluation, stage);
  if (stage->comm->rank == 0 && status == STATUS_OK) status = write_scores(&evaluation, stage);
  evaluation_free(&evaluation);
  return comm_agree(stage->comm, status);
}
