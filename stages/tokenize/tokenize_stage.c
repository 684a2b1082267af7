#include "stages/tokenize/tokenize_stage.h"

#include <limits.h>
#include <stdio.h>

#include "monitoring/log.h"
#include "monitoring/progress.h"
#include "monitoring/timer.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "sharding/comm.h"
#include "stages/tokenize/corpus.h"
#include "stages/tokenize/encode_unit.h"
#include "stages/tokenize/quarantine.h"
#include "stages/tokenize/shards.h"
#include "stages/tokenize/shuffle.h"
#include "stages/tokenize/statistics.h"
#include "stages/tokenize/vocabulary.h"

/* Rank 0 lists the files first, so that an error is said once. */
static enum status list_inputs(struct inputs *inputs, const struct stage *stage) {
  const struct inputs_request request = inputs_request_of(stage->options);
  return comm_agree(stage->comm, inputs_list(inputs, &request));
}

static enum status parts_folder(char path[PATH_MAX], const struct stage *stage) {
  CHECK(snprintf(path, PATH_MAX, "%s/parts", stage->folder) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", stage->folder);
  return STATUS_OK;
}

static enum status make_parts_folder(const struct stage *stage) {
  char path[PATH_MAX];
  if (stage->comm->rank) return STATUS_OK;
  TRY(parts_folder(path, stage));
  return file_make_folder(path);
}

static void show_progress(struct log *log, const struct encode_unit *work, int64_t unit,
                          double begun) {
  const int64_t units = (int64_t)work->inputs->unit_count;
  log_line(log, "encoded %lld of %lld units of input, %.1f s", (long long)unit + 1,
           (long long)units, timer_now() - begun);
}

/* Encodes this rank's units that are not done; ends early when a stop is requested. */
static enum status encode_units(const struct encode_unit *work, const struct stage *stage,
                                struct encode_unit_room *room) {
  const int64_t units = (int64_t)work->inputs->unit_count;
  const double begun = timer_now();
  for (int64_t unit = stage->comm->rank; unit < units; unit += stage->comm->size) {
    CHECK(!stage_stop_requested(), STATUS_STOPPED, "stopped on request at unit %lld of %lld",
          (long long)unit, (long long)units);
    if (!encode_unit_parts(work, unit, true)) TRY(encode_unit_run(work, unit, room));
    show_progress(stage->log, work, unit, begun);
  }
  return STATUS_OK;
}

static enum status check_documents(const struct corpus *corpus, const struct stage *stage) {
  CHECK(corpus->tally.documents, STATUS_MISMATCH,
        "the input '%s'%s holds no documents (boundary: %s)", stage->options->input.values[0],
        stage->options->input.count > 1 ? " and the others" : "",
        options_choice(stage->options, OPTION_boundary));
  return STATUS_OK;
}

static void report_near(struct log *log, const struct corpus *corpus) {
  if (!corpus->bands.bands) return;
  log_line(log, "%lld near-duplicates left out (MinHash, %lld bands of %lld)",
           (long long)corpus->near_duplicates, (long long)corpus->bands.bands,
           (long long)corpus->bands.rows);
}

static void report_pairs(struct log *log, const struct shards *shards) {
  const struct shards_side *train = &shards->sides[CORPUS_TRAIN];
  const struct shards_side *held_out = &shards->sides[CORPUS_HELD_OUT];
  if (shards->options->packing != PACKING_PAIRS) return;
  log_line(log, "pairs: %lld to train on and %lld held out were cut, %lld and %lld left out",
           (long long)train->cut_pairs, (long long)held_out->cut_pairs,
           (long long)train->left_out_pairs, (long long)held_out->left_out_pairs);
}

static void report(struct log *log, const struct statistics *statistics,
                   const struct shards *shards) {
  const struct corpus *corpus = shards->corpus;
  const struct tally *tally = &corpus->tally;
  log_line(log, "%lld documents, %lld duplicates left out, %lld held out; %lld bytes, %lld tokens",
           (long long)tally->documents, (long long)corpus->duplicates,
           (long long)corpus->counts[CORPUS_HELD_OUT].documents, (long long)tally->bytes,
           (long long)tally->tokens);
  log_line(log, "rows of %s: %lld to train on, %lld held out; tokenizer %s, %d ids, %.12s",
           shards->length, (long long)statistics->sides[CORPUS_TRAIN].rows,
           (long long)statistics->sides[CORPUS_HELD_OUT].rows, shards->facts->kind,
           shards->facts->vocabulary_size, shards->tokenizer);
  report_near(log, corpus);
  report_pairs(log, shards);
  log_line(log, "held-out text: unigram loss %.4f nats, entropy of a row %.4f nats",
           statistics->unigram_loss, statistics->sides[CORPUS_HELD_OUT].row_entropy);
  if (shards->facts->fallback)
    log_warn(log, "libsentencepiece encodes, which is slower: the model is not covered, %s",
             shards->facts->fallback);
  if (tally->invalid_bytes)
    log_warn(log, "%lld documents hold %lld bytes that are not UTF-8; each is read as U+FFFD%s",
             (long long)tally->invalid_documents, (long long)tally->invalid_bytes,
             shards->facts->lossless ? " when shown, and kept as it is in the tokens" : "");
  if (tally->refused_documents || tally->refused_entries)
    log_warn(log,
             "%lld documents and %lld entries or files are damaged and left out: " QUARANTINE_NAME,
             (long long)tally->refused_documents, (long long)tally->refused_entries);
  if (tally->archive_warnings)
    log_warn(log, "%lld oddities in archives (see statistics.json)",
             (long long)tally->archive_warnings);
}

/* Training can mix the entries of `input` by weight. */
static enum status add_rows_of_inputs(struct scalars *facts, const struct shards *shards) {
  struct text rows = {0};
  enum status status = shards_rows_of_inputs(shards, CORPUS_TRAIN, &rows);
  if (status == STATUS_OK) status = scalars_set_text(facts, "train_rows_of_inputs", rows.bytes);
  text_free(&rows);
  return status;
}

/* What readers of the finished folder want to know at once. */
static enum status add_facts(struct scalars *facts, const struct statistics *statistics,
                             const struct shards *shards) {
  const struct statistics_side *train = &statistics->sides[CORPUS_TRAIN];
  const struct statistics_side *held_out = &statistics->sides[CORPUS_HELD_OUT];
  TRY(scalars_set_text(facts, "tokenizer", shards->tokenizer));
  TRY(scalars_set_integer(facts, "vocabulary_size", shards->facts->vocabulary_size));
  TRY(scalars_set_integer(facts, "sequence_length", shards->options->sequence_length));
  TRY(scalars_set_integer(facts, "train_rows", train->rows));
  TRY(scalars_set_integer(facts, "train_tokens", train->tokens));
  TRY(scalars_set_integer(facts, "held_out_rows", held_out->rows));
  TRY(scalars_set_integer(facts, "held_out_tokens", held_out->tokens));
  TRY(add_rows_of_inputs(facts, shards));
  TRY(scalars_set_integer(facts, "duplicates", shards->corpus->duplicates));
  TRY(scalars_set_integer(facts, "near_duplicates", shards->corpus->near_duplicates));
  TRY(scalars_set_real(facts, "unigram_loss_nats", statistics->unigram_loss));
  return scalars_set_real(facts, "held_out_row_entropy_nats", held_out->row_entropy);
}

/* The list of what was left out, if anything was, and its counts. */
static enum status add_quarantine(struct manifest *manifest, const struct corpus *corpus,
                                  const char *folder) {
  bool any;
  TRY(quarantine_collect(folder, corpus->units, &any));
  if (!any) return STATUS_OK;
  const struct tally *tally = &corpus->tally;
  TRY(scalars_set_integer(&manifest->facts, "refused_documents", tally->refused_documents));
  TRY(scalars_set_integer(&manifest->facts, "refused_entries", tally->refused_entries));
  return manifest_add_file(manifest, folder, QUARANTINE_NAME);
}

/* Collects the outputs, and drops the journal: on rank 0. */
static enum status finish(const struct statistics *statistics, const struct shards *shards,
                          const struct stage *stage) {
  static const char *const files[] = {STATISTICS_NAME, "tokenizer.json", "tokenizer.model"};
  char path[PATH_MAX];
  if (stage->comm->rank) return STATUS_OK;
  TRY(statistics_write(statistics, shards));
  TRY(manifest_collect(stage->manifest, stage->folder));
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    TRY(manifest_add_file(stage->manifest, stage->folder, files[i]));
  TRY(add_facts(&stage->manifest->facts, statistics, shards));
  TRY(add_quarantine(stage->manifest, shards->corpus, stage->folder));
  TRY(parts_folder(path, stage));
  return file_remove(path);
}

static enum status pack(const struct corpus *corpus, const struct tokenizer *tokenizer,
                        struct stage *stage) {
  struct shards shards = {0};
  struct statistics statistics = {0};
  enum status status;
  TRY_OR(status, done, shards_plan(&shards, corpus, tokenizer, stage->options, stage->comm));
  TRY_OR(status, done, statistics_make(&statistics, &shards, stage->comm));
  report(stage->log, &statistics, &shards);
  TRY_OR(status, done, comm_agree(stage->comm, finish(&statistics, &shards, stage)));
done:
  statistics_free(&statistics);
  shards_free(&shards);
  return status;
}

/* Packs documents in the order that is asked for. */
static enum status order_and_pack(const struct corpus *corpus, const struct tokenizer *tokenizer,
                                  struct stage *stage) {
  struct corpus shuffled;
  if (stage->options->shuffle == SHUFFLE_NONE) return pack(corpus, tokenizer, stage);
  TRY(shuffle_corpus(&shuffled, corpus, stage->options, stage->comm));
  const enum status status = pack(&shuffled, tokenizer, stage);
  corpus_free(&shuffled);
  return status;
}

static enum status encode_all(const struct encode_unit *work, const struct stage *stage) {
  struct encode_unit_room room = {0};
  const enum status status = encode_units(work, stage, &room);
  encode_unit_room_free(&room);
  return comm_agree(stage->comm, status);
}

static enum status encode_and_pack(const struct encode_unit *work, struct stage *stage) {
  struct corpus corpus = {0};
  enum status status;
  TRY(comm_agree(stage->comm, make_parts_folder(stage)));
  TRY(encode_all(work, stage));
  TRY_OR(status, done, corpus_open(&corpus, work, stage->options->held_out, stage->comm));
  TRY_OR(status, done, check_documents(&corpus, stage));
  TRY_OR(status, done, order_and_pack(&corpus, work->tokenizer, stage));
done:
  corpus_free(&corpus);
  return status;
}

static enum status run(const struct inputs *inputs, struct stage *stage) {
  struct tokenizer *tokenizer;
  char same[STAGE_PATH_BYTES];
  const bool is_same = stage->options->tokenizer == TOKENIZER_SAME;
  if (is_same) TRY(stage_input(same, NULL, stage, IN_TOKENIZE));
  const struct vocabulary vocabulary = {.inputs = inputs,
                                        .options = stage->options,
                                        .folder = stage->folder,
                                        .same = is_same ? same : NULL};
  TRY(vocabulary_open(&tokenizer, &vocabulary, stage->comm));
  const struct encode_unit work = {.inputs = inputs,
                                   .options = stage->options,
                                   .tokenizer = tokenizer,
                                   .folder = stage->folder,
                                   .key = encode_unit_key(inputs, stage->options, tokenizer),
                                   .bands = near_bands_for(stage->options->near_duplicates)};
  const enum status status = encode_and_pack(&work, stage);
  tokenizer_close(tokenizer);
  TRY(status);
  return STATUS_OK;
}

enum status tokenize_stage(struct stage *stage) {
  struct inputs inputs = {0};
  enum status status = list_inputs(&inputs, stage);
  if (status == STATUS_OK) status = run(&inputs, stage);
  inputs_free(&inputs);
  TRY(status);
  return STATUS_OK;
}
