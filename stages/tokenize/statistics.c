#include "stages/tokenize/statistics.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/unigram_loss.h"

struct work {
  const struct shards *shards;
  struct shards_maker *maker;
  struct comm *comm;
};

/* Sides are dealt as one row of shards, so that ranks that got one less before are first. */
static bool is_mine(const struct work *work, enum corpus_side which, int64_t shard) {
  const int64_t before = which == CORPUS_TRAIN ? 0 : work->shards->sides[CORPUS_TRAIN].shards;
  return (before + shard) % work->comm->size == work->comm->rank;
}

/* This rank's shards of a side; entropies[i] = sum over the rows of shard i. */
static enum status make_side(struct statistics_side *side, double *entropies,
                             const struct work *work, enum corpus_side which) {
  for (int64_t i = 0; i < work->shards->sides[which].shards; i++) {
    struct shards_counts counts = {.histogram = side->histogram};
    if (!is_mine(work, which, i)) continue;
    TRY(shards_make(work->maker, which, i, &counts));
    side->tokens += counts.tokens;
    side->rows += counts.rows;
    side->measured += counts.measured;
    entropies[i] = counts.entropy;
  }
  return STATUS_OK;
}

/* The mean is summed in the order of shards, so that ranks cannot show in it. */
static double mean_entropy(const double *entropies, int64_t shards, int64_t rows) {
  double sum = 0;
  for (int64_t i = 0; i < shards; i++) sum += entropies[i];
  return rows ? sum / (double)rows : 0;
}

static enum status reduce_side(struct statistics_side *side, double *entropies, int64_t shards,
                               int64_t vocabulary, struct comm *comm) {
  TRY(comm_allreduce(comm, side->histogram, vocabulary, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, &side->tokens, 1, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, &side->rows, 1, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, &side->measured, 1, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, entropies, shards, DTYPE_F64, COMM_SUM)); /* one is not zero: exact */
  side->row_entropy = mean_entropy(entropies, shards, side->measured);
  return STATUS_OK;
}

static enum status make_one_side(struct statistics_side *side, const struct work *work,
                                 enum corpus_side which) {
  const int64_t count = work->shards->sides[which].shards;
  const int64_t vocabulary = work->shards->facts->vocabulary_size;
  double *entropies = calloc((size_t)count + 1, sizeof *entropies);
  side->histogram = calloc((size_t)vocabulary, sizeof *side->histogram);
  enum status status = STATUS_OK;
  if (!entropies || !side->histogram)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: a histogram of %lld tokens", (long long)vocabulary);
  if (status == STATUS_OK) status = make_side(side, entropies, work, which);
  status = comm_agree(work->comm, status);
  if (status == STATUS_OK) status = reduce_side(side, entropies, count, vocabulary, work->comm);
  free(entropies);
  return status;
}

static enum status make_sides(struct statistics *statistics, const struct work *work) {
  for (int side = 0; side < CORPUS_SIDES; side++)
    TRY(make_one_side(&statistics->sides[side], work, (enum corpus_side)side));
  return STATUS_OK;
}

enum status statistics_make(struct statistics *statistics, const struct shards *shards,
                            struct comm *comm) {
  struct work work = {.shards = shards, .comm = comm};
  *statistics = (struct statistics){0};
  TRY(comm_agree(comm, shards_maker_open(&work.maker, shards)));
  const enum status status = make_sides(statistics, &work);
  shards_maker_close(work.maker);
  TRY(status);
  statistics->unigram_loss =
      unigram_loss(statistics->sides[CORPUS_HELD_OUT].histogram,
                   statistics->sides[CORPUS_TRAIN].histogram, shards->facts->vocabulary_size);
  return STATUS_OK;
}

void statistics_free(struct statistics *statistics) {
  for (int side = 0; side < CORPUS_SIDES; side++) free(statistics->sides[side].histogram);
  *statistics = (struct statistics){0};
}

static json_t *describe_input(const struct corpus *corpus) {
  json_t *input = json_object();
  const struct tally *tally = &corpus->tally;
#define TALLY(name) json_object_set_new(input, #name, json_integer(tally->name));
#include "stages/tokenize/tally.def"
#undef TALLY
  json_object_set_new(input, "duplicates", json_integer(corpus->duplicates));
  json_object_set_new(input, "near_duplicates", json_integer(corpus->near_duplicates));
  return input;
}

static json_t *describe_side(const struct statistics_side *side, const struct shards *shards,
                             enum corpus_side which) {
  const struct corpus_counts *counts = &shards->corpus->counts[which];
  const struct shards_side *layout = &shards->sides[which];
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "documents",
                   counts->documents, "bytes", counts->bytes, "document_tokens", counts->tokens,
                   "rows", side->rows, "row_tokens", side->tokens, "dropped_tokens",
                   layout->dropped, "cut_pairs", layout->cut_pairs, "left_out_pairs",
                   layout->left_out_pairs, "shards", layout->shards, "row_entropy_nats",
                   side->row_entropy);
}

static json_t *describe(const struct statistics *statistics, const struct shards *shards) {
  const struct options *options = shards->options;
  const struct tokenizer_facts *facts = shards->facts;
  return json_pack("{s:{s:s, s:s, s:s, s:i, s:b}, s:s, s:I, s:o, s:o, s:o, s:f}", "tokenizer",
                   "kind", facts->kind, "hash", shards->tokenizer, "reference", facts->reference,
                   "vocabulary_size", facts->vocabulary_size, "lossless", facts->lossless,
                   "packing", options_choice(options, OPTION_packing), "sequence_length",
                   (json_int_t)options->sequence_length, "input", describe_input(shards->corpus),
                   "train", describe_side(&statistics->sides[CORPUS_TRAIN], shards, CORPUS_TRAIN),
                   "held_out",
                   describe_side(&statistics->sides[CORPUS_HELD_OUT], shards, CORPUS_HELD_OUT),
                   "unigram_loss_nats", statistics->unigram_loss);
}

enum status statistics_write(const struct statistics *statistics, const struct shards *shards) {
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/" STATISTICS_NAME, shards->folder) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", shards->folder);
  json_t *json = describe(statistics, shards);
  char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(json);
  CHECK(text, STATUS_ENVIRONMENT, "out of memory: " STATISTICS_NAME);
  const enum status status = file_write(path, text, strlen(text));
  free(text);
  TRY(status);
  return STATUS_OK;
}
