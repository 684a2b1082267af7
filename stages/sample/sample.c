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
#include "sharding/store_writer.h"
#include "stages/flow/solo.h"
#include "stages/sample/sample.h"
#include "stages/tokenize/tokenizer.h"

enum { TAG_DIGITS = 12, NAME_BYTES = 32 };

struct sampler {
  struct stage *stage;
  struct solo solo;
  struct tokenizer *tokenizer;
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

/* The texts of one unit. */
struct unit {
  struct sampler *sampler;
  int64_t nfe, first, count;
};

static enum status draw(void *context, struct tape *tape) {
  const struct unit *unit = context;
  const struct options *options = unit->sampler->stage->options;
  struct flow *flow = &unit->sampler->solo.model.flow;
  tape->recording = tape->training = false;
  return flow->kind->sample(flow, tape,
                            &(struct flow_request){.count = unit->count,
                                                   .positions = flow->positions,
                                                   .first = unit->first,
                                                   .seed = (uint64_t)options->seed,
                                                   .nfe = unit->nfe,
                                                   .options = options},
                            unit->sampler->tokens);
}

static enum status write_unit(struct sampler *sampler, const struct store_writer_options *options,
                              int64_t count) {
  struct store_writer writer;
  const int64_t positions = sampler->solo.model.flow.positions;
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
       .shape = {sampler->solo.model.flow.positions}},
      {.name = "text", .dtype = DTYPE_U8, .dimensions = 1, .ragged = true}};
  const struct safetensors_pair pairs[] = {
      {"tokenizer", (char *)(uintptr_t)model_tokenizer_hash(&sampler->solo.model)},
      {"weights", (char *)(uintptr_t)model_weights_hash(&sampler->solo.model)}};
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
  struct unit drawn = {sampler, set->nfe, first, count};
  TRY(workspace_run(&sampler->solo.workspace, draw, &drawn));
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
  double sums[2] = {(double)(set->drawn * sampler->solo.model.flow.positions), set->seconds};
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
  if (sampler->solo.model.flow.kind->has_nfe)
    snprintf(set.name, sizeof set.name, "nfe%lld", (long long)nfe);
  else
    snprintf(set.name, sizeof set.name, "samples");
  progress_start(&progress, 0, rounds);
  enum status status = STATUS_OK;
  for (int64_t round = 0; round < rounds && status == STATUS_OK; round++) {
    status = draw_round(sampler, &set, round);
    log_line(stage->log, "%s: round %lld of %lld, %s left", set.name, (long long)round + 1,
             (long long)rounds, progress_time(left, progress_left(&progress, round + 1)));
  }
  TRY(status);
  return note_speed(sampler, &set);
}

static enum status draw_sets(struct sampler *sampler) {
  const struct option_integers *nfe = &sampler->stage->options->nfe;
  if (!sampler->solo.model.flow.kind->has_nfe) return draw_set(sampler, 1);
  for (size_t i = 0; i < nfe->count; i++) TRY(draw_set(sampler, nfe->values[i]));
  return STATUS_OK;
}

static enum status open_model(struct sampler *sampler) {
  struct stage *stage = sampler->stage;
  const struct recipe_node *node;
  TRY(recipe_upstream(&node, stage->recipe, stage->node, IN_PRETRAIN | IN_DISTILL));
  TRY(solo_open(&sampler->solo, stage, node, stage->options->precision, "sample"));
  snprintf(sampler->tag, sizeof sampler->tag, "%.*s", TAG_DIGITS,
           model_weights_hash(&sampler->solo.model));
  return STATUS_OK;
}

static enum status open_tokenizer(struct sampler *sampler) {
  char folder[STAGE_PATH_BYTES], hash[HASH_HEX_BYTES];
  TRY(stage_input(folder, NULL, sampler->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&sampler->tokenizer, folder));
  hash_to_hex(hash, tokenizer_facts_of(sampler->tokenizer)->hash);
  CHECK(strcmp(hash, model_tokenizer_hash(&sampler->solo.model)) == 0, STATUS_MISMATCH,
        "'%s' holds tokenizer %s, the model was trained with %s; train it again", folder, hash,
        model_tokenizer_hash(&sampler->solo.model));
  return STATUS_OK;
}

static enum status open_texts(struct sampler *sampler) {
  const int64_t batch = batch_of(sampler);
  TRY(open_tokenizer(sampler));
  const size_t count = (size_t)(batch * sampler->solo.model.flow.positions);
  sampler->tokens = calloc(count, sizeof *sampler->tokens);
  CHECK(sampler->tokens, STATUS_ENVIRONMENT, "out of memory: %zu sampled tokens", count);
  return text_add(&sampler->text, "");
}

static void close_all(struct sampler *sampler) {
  text_free(&sampler->text);
  free(sampler->tokens);
  tokenizer_close(sampler->tokenizer);
  solo_close(&sampler->solo);
}

enum status sample_stage(struct stage *stage) {
  struct sampler sampler = {.stage = stage};
  TRY(open_model(&sampler));
  enum status status = comm_agree(stage->comm, open_texts(&sampler));
  if (status == STATUS_OK) status = draw_sets(&sampler);
  close_all(&sampler);
  TRY(status);
  if (stage->comm->rank == 0) status = manifest_collect(stage->manifest, stage->folder);
  return comm_agree(stage->comm, status);
}
