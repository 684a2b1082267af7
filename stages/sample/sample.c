/* The stage `sample`: texts from a generator, one set for each number of network calls.
 *
 * A set is cut into units of `batch` texts; a unit is one shard of a store, so a stopped stage
 * takes up where it was. Text i is a function of (seed, i, options) alone (R-EVA-2, R-DLM-3): units
 * are dealt over ranks, and no number of ranks changes a byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/log.h"
#include "monitoring/progress.h"
#include "monitoring/timer.h"
#include "pipeline/artefact/manifest.h"
#include "sharding/comm.h"
#include "sharding/store_writer.h"
#include "stages/flow/model.h"
#include "stages/sample/sample.h"
#include "stages/tokenize/tokenizer.h"

enum { RECORD_BYTES = 64 << 20, TAG_DIGITS = 12, NAME_BYTES = 32 };

struct sampler {
  struct stage *stage;
  struct comm alone; /* this rank by itself: the group of its vocabulary tables */
  struct model model;
  struct tokenizer *tokenizer;
  struct arena records, arena;
  int32_t *tokens;          /* [batch, positions] */
  char tag[TAG_DIGITS + 1]; /* of the weights */
  struct text text;
};

/* One set of samples. */
struct set {
  int64_t nfe;
  char name[NAME_BYTES];
  int64_t units, drawn;
  double seconds; /* spent drawing on this rank */
};

static int64_t batch_of(const struct sampler *sampler) {
  const struct options *options = sampler->stage->options;
  return options->batch < options->samples ? options->batch : options->samples;
}

static enum status draw(struct sampler *sampler, const struct kernels *kernels, struct arena *arena,
                        const struct set *set, int64_t first, int64_t count) {
  struct tape tape;
  const size_t mark = arena_mark(arena), records = arena_mark(&sampler->records);
  tape_init(&tape, kernels, arena, &sampler->records);
  tape.recording = tape.training = false;
  const struct flow_request request = {.count = count,
                                       .positions = sampler->model.flow.positions,
                                       .first = first,
                                       .seed = (uint64_t)sampler->stage->options->seed,
                                       .nfe = set->nfe,
                                       .options = sampler->stage->options};
  struct flow *flow = &sampler->model.flow;
  const enum status status = flow->kind->sample(flow, &tape, &request, sampler->tokens);
  arena_reset(arena, mark);
  arena_reset(&sampler->records, records);
  return status;
}

/* The memory that drawing one unit takes: found by a tape that only measures. */
static enum status measure(struct sampler *sampler, const struct set *set) {
  struct arena measuring;
  struct kernels nothing;
  arena_measure(&measuring, "sample");
  TRY(kernels_open(&nothing, "measure", sampler->model.kernels.element));
  TRY(draw(sampler, &nothing, &measuring, set, 0, batch_of(sampler)));
  return arena_init(&sampler->arena, "sample", measuring.peak);
}

static enum status write_unit(struct sampler *sampler, const struct store_writer_options *options,
                              int64_t count) {
  struct store_writer writer;
  const int64_t positions = sampler->model.flow.positions;
  TRY(store_writer_open(&writer, options));
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < count; i++) {
    const int32_t *row = sampler->tokens + i * positions;
    text_clear(&sampler->text);
    TRY_OR(status, done, store_writer_add(&writer, 0, row, positions));
    TRY_OR(status, done,
           tokenizer_decode(sampler->tokenizer, &sampler->text, row, (size_t)positions));
    TRY_OR(status, done,
           store_writer_add(&writer, 1, sampler->text.bytes, (int64_t)sampler->text.length));
  }
  TRY_OR(status, done, store_writer_close(&writer));
done:
  store_writer_abandon(&writer);
  return status;
}

static enum status draw_unit(struct sampler *sampler, struct set *set, int64_t unit) {
  const int64_t batch = batch_of(sampler), first = unit * batch;
  const int64_t left = sampler->stage->options->samples - first;
  const int64_t count = left < batch ? left : batch;
  const struct store_writer_column columns[] = {
      {.name = "tokens",
       .dtype = DTYPE_I32,
       .dimensions = 1,
       .shape = {sampler->model.flow.positions}},
      {.name = "text", .dtype = DTYPE_U8, .dimensions = 1, .ragged = true}};
  const struct safetensors_pair pairs[] = {
      {"tokenizer", (char *)(uintptr_t)model_tokenizer_hash(&sampler->model)},
      {"weights", (char *)(uintptr_t)model_weights_hash(&sampler->model)}};
  const struct store_writer_options options = {.folder = sampler->stage->folder,
                                               .name = set->name,
                                               .tag = sampler->tag,
                                               .index = unit,
                                               .columns = columns,
                                               .column_count = 2,
                                               .pairs = pairs,
                                               .pair_count = 2};
  if (store_writer_is_done(&options)) return STATUS_OK;
  const double start = timer_now();
  TRY(draw(sampler, &sampler->model.kernels, &sampler->arena, set, first, count));
  set->seconds += timer_now() - start;
  set->drawn += count;
  return write_unit(sampler, &options, count);
}

/* One round: a unit for every rank that has one left. All ranks leave together. */
static enum status draw_round(struct sampler *sampler, struct set *set, int64_t round) {
  struct comm *comm = sampler->stage->comm;
  const int64_t unit = round * comm->size + comm->rank;
  enum status status = STATUS_OK;
  if (unit < set->units) status = draw_unit(sampler, set, unit);
  if (status == STATUS_OK && stage_stop_requested())
    status = error_raise(STATUS_STOPPED, __FILE__, __LINE__, __func__,
                         "stopped on request after unit %lld of %s", (long long)unit, set->name);
  return comm_agree(comm, status);
}

/* Tokens per second over all ranks, for the report. */
static enum status note_speed(struct sampler *sampler, const struct set *set) {
  struct comm *comm = sampler->stage->comm;
  double sums[2] = {(double)(set->drawn * sampler->model.flow.positions), set->seconds};
  char key[NAME_BYTES + 32];
  TRY(comm_allreduce(comm, &sums[0], 1, DTYPE_F64, COMM_SUM));
  TRY(comm_allreduce(comm, &sums[1], 1, DTYPE_F64, COMM_MAX));
  if (comm->rank != 0 || sums[0] <= 0 || sums[1] <= 0) return STATUS_OK;
  snprintf(key, sizeof key, "tokens_per_second.%s", set->name);
  log_line(sampler->stage->log, "%s: %.0f tokens/s", set->name, sums[0] / sums[1]);
  return scalars_set_real(&sampler->stage->manifest->timings, key, sums[0] / sums[1]);
}

static enum status draw_set(struct sampler *sampler, int64_t nfe) {
  const struct stage *stage = sampler->stage;
  const int64_t batch = batch_of(sampler);
  struct set set = {.nfe = nfe, .units = (stage->options->samples + batch - 1) / batch};
  struct progress progress;
  char left[PROGRESS_TIME_BYTES];
  const int64_t rounds = (set.units + stage->comm->size - 1) / stage->comm->size;
  if (sampler->model.flow.kind->has_nfe)
    snprintf(set.name, sizeof set.name, "nfe%lld", (long long)nfe);
  else
    snprintf(set.name, sizeof set.name, "samples");
  TRY(comm_agree(stage->comm, measure(sampler, &set)));
  progress_start(&progress, 0, rounds);
  enum status status = STATUS_OK;
  for (int64_t round = 0; round < rounds && status == STATUS_OK; round++) {
    status = draw_round(sampler, &set, round);
    log_progress(stage->log, "%s: round %lld of %lld, %s left", set.name, (long long)round + 1,
                 (long long)rounds, progress_time(left, progress_left(&progress, round + 1)));
  }
  arena_free(&sampler->arena);
  TRY(status);
  return note_speed(sampler, &set);
}

static enum status draw_sets(struct sampler *sampler) {
  const struct option_integers *nfe = &sampler->stage->options->nfe;
  if (!sampler->model.flow.kind->has_nfe) return draw_set(sampler, 1);
  for (size_t i = 0; i < nfe->count; i++) TRY(draw_set(sampler, nfe->values[i]));
  return STATUS_OK;
}

static enum status open_model(struct sampler *sampler) {
  struct stage *stage = sampler->stage;
  char folder[STAGE_PATH_BYTES];
  const struct recipe_node *node;
  TRY(stage_input(folder, &node, stage, IN_PRETRAIN | IN_DISTILL));
  TRY(model_open(&sampler->model, &(struct model_request){.recipe = stage->recipe,
                                                          .node = node,
                                                          .folder = folder,
                                                          .group = &sampler->alone,
                                                          .kernels = stage->options->kernels,
                                                          .precision = stage->options->precision}));
  CHECK(sampler->model.flow.kind->sample, STATUS_MISMATCH,
        "node '%s': the formulation '%s' of node '%s' draws no text", stage->node->name,
        sampler->model.flow.kind->name, node->name);
  snprintf(sampler->tag, sizeof sampler->tag, "%.*s", TAG_DIGITS,
           model_weights_hash(&sampler->model));
  return STATUS_OK;
}

static enum status open_tokenizer(struct sampler *sampler) {
  char folder[STAGE_PATH_BYTES], hash[HASH_HEX_BYTES];
  TRY(stage_input(folder, NULL, sampler->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&sampler->tokenizer, folder));
  hash_to_hex(hash, tokenizer_facts_of(sampler->tokenizer)->hash);
  CHECK(strcmp(hash, model_tokenizer_hash(&sampler->model)) == 0, STATUS_MISMATCH,
        "'%s' holds tokenizer %s, the model was trained with %s; train it again", folder, hash,
        model_tokenizer_hash(&sampler->model));
  return STATUS_OK;
}

static enum status open_all(struct sampler *sampler) {
  const int64_t batch = batch_of(sampler);
  TRY(arena_init(&sampler->records, "records", RECORD_BYTES));
  TRY(open_model(sampler));
  TRY(open_tokenizer(sampler));
  const size_t count = (size_t)(batch * sampler->model.flow.positions);
  sampler->tokens = calloc(count, sizeof *sampler->tokens);
  CHECK(sampler->tokens, STATUS_ENVIRONMENT, "out of memory: %zu sampled tokens", count);
  return text_add(&sampler->text, "");
}

static void close_all(struct sampler *sampler) {
  text_free(&sampler->text);
  free(sampler->tokens);
  tokenizer_close(sampler->tokenizer);
  model_close(&sampler->model);
  arena_free(&sampler->records);
  comm_free(&sampler->alone);
}

enum status sample_stage(struct stage *stage) {
  struct sampler sampler = {.stage = stage};
  TRY(comm_split(&sampler.alone, stage->comm, stage->comm->rank));
  enum status status = comm_agree(stage->comm, open_all(&sampler));
  if (status == STATUS_OK) status = draw_sets(&sampler);
  close_all(&sampler);
  TRY(status);
  if (stage->comm->rank == 0) status = manifest_collect(stage->manifest, stage->folder);
  return comm_agree(stage->comm, status);
}
