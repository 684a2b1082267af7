#include "stages/tokenize/vocabulary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/corpus.h"
#include "stages/tokenize/line_sample.h"

struct sampler {
  struct line_sample *sample;
  double held_out;
};

static enum status sample_document(void *state, const char *bytes, size_t count) {
  const struct sampler *sampler = state;
  if (corpus_side_of(hash_bytes128(bytes, count), sampler->held_out) == CORPUS_HELD_OUT)
    return STATUS_OK;
  return line_sample_offer_text(sampler->sample, bytes, count);
}

static enum status sample_pair(void *state, const struct document_pair *pair) {
  const struct sampler *sampler = state;
  if (corpus_side_of(document_pair_hash(pair), sampler->held_out) == CORPUS_HELD_OUT)
    return STATUS_OK;
  TRY(line_sample_offer_text(sampler->sample, pair->source, pair->source_count));
  return line_sample_offer_text(sampler->sample, pair->target, pair->target_count);
}

/* What is damaged is listed when it is encoded. */
static enum status skip_damaged(void *state, const struct refusal *refusal) {
  (void)state, (void)refusal;
  return STATUS_OK;
}

/* Offers the lines of this rank's units. */
static enum status sample_units(struct line_sample *sample, const struct vocabulary *vocabulary,
                                const struct comm *comm) {
  struct sampler sampler = {sample, vocabulary->options->held_out};
  const bool pairs = vocabulary->options->packing == PACKING_PAIRS;
  const bool tolerant = vocabulary->inputs->keeps_damaged;
  const struct document_sink sink = {.add = sample_document,
                                     .state = &sampler,
                                     .add_pair = pairs ? sample_pair : NULL,
                                     .refuse = tolerant ? skip_damaged : NULL};
  struct splitter splitter = splitter_for(vocabulary->options, sink);
  const struct inputs *inputs = vocabulary->inputs;
  enum status status = STATUS_OK;
  for (size_t i = (size_t)comm->rank; status == STATUS_OK && i < inputs->unit_count;
       i += (size_t)comm->size)
    status = inputs_read(inputs, &inputs->units[i], &splitter);
  splitter_free(&splitter);
  TRY(status);
  return STATUS_OK;
}

/* Rank 0 receives the lines of all others, one rank after another; it goes on receiving after a
 * failure of its own, so that no sender waits for ever. */
static enum status exchange(struct line_sample *sample, const struct text *mine,
                            const int64_t *lengths, char *room, struct comm *comm) {
  enum status status = STATUS_OK;
  if (comm->rank) return comm_send(comm, mine->bytes, lengths[comm->rank], 0);
  for (int rank = 1; rank < comm->size; rank++) {
    TRY(comm_receive(comm, room, lengths[rank], rank));
    if (status == STATUS_OK) status = line_sample_offer_text(sample, room, (size_t)lengths[rank]);
  }
  return status;
}

static int64_t largest(const int64_t *lengths, int count) {
  int64_t most = 1;
  for (int i = 0; i < count; i++) most = lengths[i] > most ? lengths[i] : most;
  return most;
}

static enum status gather_lines(struct line_sample *sample, struct text *mine, int64_t *lengths,
                                struct comm *comm) {
  const enum status wrote = comm->rank ? line_sample_write(mine, sample) : STATUS_OK;
  TRY(comm_agree(comm, wrote));
  const int64_t length = (int64_t)mine->length;
  TRY(comm_allgather(comm, lengths, &length, sizeof length));
  char *room = malloc((size_t)largest(lengths, comm->size));
  enum status status = STATUS_OK;
  if (!room)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: a sample of lines");
  status = comm_agree(comm, status);
  if (status == STATUS_OK) status = comm_agree(comm, exchange(sample, mine, lengths, room, comm));
  free(room);
  return status;
}

/* Merges the samples of all ranks on rank 0. */
static enum status merge(struct line_sample *sample, struct comm *comm) {
  if (comm->size == 1) return STATUS_OK;
  TRY(comm_allreduce(comm, &sample->bar, 1, DTYPE_I64, COMM_MIN));
  line_sample_lower(sample, sample->bar);
  struct text mine = {0};
  int64_t *lengths = calloc((size_t)comm->size, sizeof *lengths);
  enum status status = STATUS_OK;
  if (!lengths)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: %d lengths", comm->size);
  status = comm_agree(comm, status);
  if (status == STATUS_OK) status = gather_lines(sample, &mine, lengths, comm);
  free(lengths);
  text_free(&mine);
  return status;
}

static enum status train(struct line_sample *sample, const char *path,
                         const struct options *options) {
  struct text model = {0};
  CHECK(sample->count, STATUS_MISMATCH, "the input '%s'%s holds no documents (boundary: %s)",
        options->input.values[0], options->input.count > 1 ? " and the others" : "",
        options_choice(options, OPTION_boundary));
  line_sample_sort(sample);
  struct line_sample_reader reader = {.sample = sample};
  enum status status = sentencepiece_train(&model, line_sample_sentences(&reader),
                                           (int32_t)options->vocabulary_size);
  if (status == STATUS_OK) status = file_write(path, model.bytes, model.length);
  text_free(&model);
  TRY(status);
  return STATUS_OK;
}

static enum status train_together(const struct vocabulary *vocabulary, const char *path,
                                  struct comm *comm) {
  struct line_sample sample = line_sample_begin(VOCABULARY_SAMPLE_BYTES);
  enum status status = comm_agree(comm, sample_units(&sample, vocabulary, comm));
  if (status == STATUS_OK) status = merge(&sample, comm);
  if (status == STATUS_OK && comm->rank == 0) status = train(&sample, path, vocabulary->options);
  line_sample_free(&sample);
  return comm_agree(comm, status);
}

/* The specification of the tokenizer that the options name; `trained` is the model of train. A
 * SentencePiece model goes our own way where it can. */
static enum status specify(char spec[PATH_MAX], const struct options *options,
                           const char *trained) {
  const bool trains = options->tokenizer == TOKENIZER_TRAIN;
  const bool unigram = trains || options->tokenizer == TOKENIZER_SENTENCEPIECE;
  const char *kind = unigram ? "unigram" : options_choice(options, OPTION_tokenizer);
  const char *path = trains ? trained : options->tokenizer_model;
  const bool plain = options->tokenizer == TOKENIZER_BYTE || options->tokenizer == TOKENIZER_TEXT8;
  const int length = snprintf(spec, PATH_MAX, "%s%s%s", kind, plain ? "" : ":", plain ? "" : path);
  CHECK(length < PATH_MAX, STATUS_MISMATCH, "path too long: '%s'", path);
  return STATUS_OK;
}

/* Opens what the options name and keeps a copy: on rank 0. */
static enum status make_copy(struct tokenizer **tokenizer, const struct vocabulary *vocabulary,
                             const char *trained) {
  char spec[PATH_MAX];
  if (!vocabulary->same) TRY(specify(spec, vocabulary->options, trained));
  TRY(tokenizer_open(tokenizer, vocabulary->same ? vocabulary->same : spec));
  return tokenizer_save(*tokenizer, vocabulary->folder);
}

static enum status make(struct tokenizer **tokenizer, const struct vocabulary *vocabulary,
                        struct comm *comm) {
  char trained[PATH_MAX];
  const int length = snprintf(trained, sizeof trained, "%s/tokenizer.model", vocabulary->folder);
  CHECK(length < PATH_MAX, STATUS_MISMATCH, "path too long: '%s'", vocabulary->folder);
  if (vocabulary->options->tokenizer == TOKENIZER_TRAIN)
    TRY(train_together(vocabulary, trained, comm));
  return comm_agree(comm, comm->rank ? STATUS_OK : make_copy(tokenizer, vocabulary, trained));
}

/* Rank 0 looks, so that all ranks see the same. */
static enum status is_made(uint8_t *made, const struct vocabulary *vocabulary, struct comm *comm) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/tokenizer.json", vocabulary->folder);
  *made = comm->rank == 0 && file_exists(path);
  return comm_broadcast(comm, made, sizeof *made, 0);
}

/* Ranks that have not made it read the copy. */
static enum status open_copy(struct tokenizer **tokenizer, const char *folder) {
  return *tokenizer ? STATUS_OK : tokenizer_open(tokenizer, folder);
}

static enum status open_or_make(struct tokenizer **tokenizer, const struct vocabulary *vocabulary,
                                struct comm *comm) {
  uint8_t made;
  TRY(is_made(&made, vocabulary, comm));
  if (!made) TRY(make(tokenizer, vocabulary, comm));
  return comm_agree(comm, open_copy(tokenizer, vocabulary->folder));
}

enum status vocabulary_open(struct tokenizer **tokenizer, const struct vocabulary *vocabulary,
                            struct comm *comm) {
  *tokenizer = NULL;
  const enum status status = open_or_make(tokenizer, vocabulary, comm);
  if (status == STATUS_OK) return STATUS_OK;
  tokenizer_close(*tokenizer);
  *tokenizer = NULL;
  TRY(status);
  return STATUS_OK;
}
