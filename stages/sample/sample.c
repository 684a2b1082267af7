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
#include "stages/flow/solo.h"
#include "stages/sample/consensus.h"
#include "stages/sample/given.h"
#include "stages/sample/sample.h"
#include "stages/sample/trajectory.h"
#include "stages/sample/unit_writer.h"

enum { TAG_DIGITS = 12, NAME_BYTES = 32 };

struct sampler {
  struct stage *stage;
  struct solo solo;
  struct tokenizer *tokenizer;
  struct given given;
  int64_t texts;                /* of a set */
  struct consensus_texts drawn; /* owned; confidence and calls where they are wanted */
  struct consensus consensus;   /* where there are several candidates */
  char tag[TAG_DIGITS + 1];     /* of the weights */
  struct text text;
};

/* One set of samples. */
struct set {
  int64_t nfe;
  char name[NAME_BYTES];
  int64_t units, drawn, calls;
  double seconds; /* spent drawing on this rank */
};

static int64_t batch_of(const struct sampler *sampler) {
  const struct options *options = sampler->stage->options;
  return options->batch < sampler->texts ? options->batch : sampler->texts;
}

/* The texts of one unit. */
struct unit {
  struct sampler *sampler;
  int64_t nfe, first, count, candidate;
  struct trajectory trajectory;
};

static enum status draw(void *context, struct tape *tape) {
  struct unit *unit = context;
  const struct options *options = unit->sampler->stage->options;
  struct flow *flow = &unit->sampler->solo.model.flow;
  struct flow_request request = {.count = unit->count,
                                 .positions = flow->positions,
                                 .first = unit->first,
                                 .seed = consensus_seed((uint64_t)options->seed, unit->candidate),
                                 .nfe = unit->nfe,
                                 .options = options,
                                 .confidence = unit->sampler->drawn.confidence,
                                 .calls = unit->sampler->drawn.calls};
  given_show(&unit->sampler->given, &request);
  trajectory_watch(&unit->trajectory, &request);
  tape->recording = tape->training = false;
  return flow->kind->sample(flow, tape, &request, unit->sampler->drawn.tokens);
}

static enum status write_unit(struct sampler *sampler, const struct store_writer_options *options,
                              int64_t count) {
  const struct flow *flow = &sampler->solo.model.flow;
  return unit_write(
      &(struct unit_texts){.count = count,
                           .positions = flow->positions,
                           .tokens = sampler->drawn.tokens,
                           .confidence = sampler->drawn.confidence,
                           .calls = sampler->drawn.calls,
                           .pairs = sampler->given.rows.pairs ? &sampler->given.rows : NULL,
                           .end = flow->eos,
                           .tokenizer = sampler->tokenizer},
      options, &sampler->text);
}

/* Draws a unit's texts once, or several times, of which the chosen ones stay. */
static enum status draw_candidates(struct sampler *sampler, struct unit *unit) {
  const int64_t candidates = sampler->stage->options->candidates;
  for (unit->candidate = 0; unit->candidate < candidates; unit->candidate++) {
    CHECK(unit->candidate == 0 || !stage_stop_requested(), STATUS_STOPPED,
          "stopped on request after %lld of %lld candidates", (long long)unit->candidate,
          (long long)candidates);
    TRY(workspace_run(&sampler->solo.workspace, draw, unit));
    if (candidates > 1)
      consensus_keep(&sampler->consensus, unit->candidate, &sampler->drawn, unit->count);
  }
  if (candidates == 1) return STATUS_OK;
  return consensus_choose(&sampler->consensus, sampler->given.before, sampler->solo.model.flow.eos,
                          &sampler->drawn, unit->count);
}

/* Draws the texts of a unit. */
static enum status draw_texts(struct sampler *sampler, struct set *set, int64_t first,
                              int64_t count) {
  const double start = timer_now();
  struct unit drawn = {sampler, set->nfe, first, count, 0, {.tokenizer = sampler->tokenizer}};
  TRY(given_read(&sampler->given, first, count));
  enum status status = draw_candidates(sampler, &drawn);
  if (status == STATUS_OK)
    status = trajectory_write(&drawn.trajectory, sampler->stage->folder, set->name, first);
  trajectory_free(&drawn.trajectory);
  TRY(status);
  set->seconds += timer_now() - start;
  set->drawn += count;
  for (int64_t i = 0; sampler->drawn.calls && i < count; i++) set->calls += sampler->drawn.calls[i];
  return STATUS_OK;
}

static enum status draw_unit(struct sampler *sampler, struct set *set, int64_t unit) {
  const int64_t batch = batch_of(sampler), first = unit * batch;
  const int64_t left = sampler->texts - first, count = left < batch ? left : batch;
  const struct safetensors_pair pairs[] = {
      {"tokenizer", (char *)(uintptr_t)model_tokenizer_hash(&sampler->solo.model)},
      {"weights", (char *)(uintptr_t)model_weights_hash(&sampler->solo.model)}};
  const struct store_writer_options options = {.folder = sampler->stage->folder,
                                               .name = set->name,
                                               .tag = sampler->tag,
                                               .index = unit,
                                               .pairs = pairs,
                                               .pair_count = 2};
  if (store_writer_is_done(&options)) return STATUS_OK;
  TRY(draw_texts(sampler, set, first, count));
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

/* Mean network calls of a text, where texts may stop early. */
static enum status note_calls(struct sampler *sampler, const struct set *set) {
  struct comm *comm = sampler->stage->comm;
  double sums[2] = {(double)set->calls, (double)set->drawn};
  char key[NAME_BYTES + 32];
  if (!sampler->drawn.calls) return STATUS_OK;
  TRY(comm_allreduce(comm, sums, 2, DTYPE_F64, COMM_SUM));
  if (comm->rank != 0 || sums[1] <= 0) return STATUS_OK;
  snprintf(key, sizeof key, "calls.%s", set->name);
  log_line(sampler->stage->log, "%s: %.1f calls a text", set->name, sums[0] / sums[1]);
  return scalars_set_real(&sampler->stage->manifest->timings, key, sums[0] / sums[1]);
}

/* Tokens per second over all ranks, for the report. */
static enum status note_speed(struct sampler *sampler, const struct set *set) {
  struct comm *comm = sampler->stage->comm;
  double sums[2] = {(double)(set->drawn * sampler->solo.model.flow.positions), set->seconds};
  char key[NAME_BYTES + 32];
  TRY(note_calls(sampler, set));
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
  struct set set = {.nfe = nfe, .units = (sampler->texts + batch - 1) / batch};
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
  TRY(solo_open(&sampler->solo, stage, node, stage->options->weights_step,
                stage->options->precision, "sample"));
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

/* Where something is given, there are no more texts than rows. */
static enum status open_given(struct sampler *sampler) {
  const struct stage *stage = sampler->stage;
  sampler->texts = stage->options->samples;
  TRY(given_open(&sampler->given, stage, &sampler->solo.model, batch_of(sampler)));
  const int64_t rows = sampler->given.rows.store.rows;
  if (!sampler->given.any || rows >= sampler->texts) return STATUS_OK;
  log_line(stage->log, "%lld texts, one for each row of side %s", (long long)rows,
           sampler->given.rows.side);
  CHECK(rows > 0, STATUS_MISMATCH, "node '%s': side %s has no rows", stage->node->name,
        sampler->given.rows.side);
  sampler->texts = rows;
  return STATUS_OK;
}

static enum status open_consensus(struct sampler *sampler) {
  const struct stage *stage = sampler->stage;
  const int64_t candidates = stage->options->candidates;
  if (candidates == 1) return STATUS_OK;
  CHECK(sampler->given.rows.pairs, STATUS_MISMATCH,
        "node '%s': candidates agree on targets of pairs, and the rows are whole texts; leave out "
        "candidates",
        stage->node->name);
  return consensus_open(&sampler->consensus, candidates, batch_of(sampler),
                        sampler->solo.model.flow.positions, &sampler->drawn);
}

static enum status open_texts(struct sampler *sampler) {
  const struct options *options = sampler->stage->options;
  struct consensus_texts *drawn = &sampler->drawn;
  TRY(open_tokenizer(sampler));
  TRY(open_given(sampler));
  const size_t batch = (size_t)batch_of(sampler);
  const size_t count = batch * (size_t)sampler->solo.model.flow.positions;
  drawn->tokens = calloc(count, sizeof *drawn->tokens);
  if (options->confidence) drawn->confidence = calloc(count, sizeof *drawn->confidence);
  if (options->elf_patience > 0) drawn->calls = calloc(batch, sizeof *drawn->calls);
  CHECK(drawn->tokens && !options->confidence == !drawn->confidence &&
            (options->elf_patience > 0) == !!drawn->calls,
        STATUS_ENVIRONMENT, "out of memory: %zu sampled tokens", count);
  TRY(open_consensus(sampler));
  return text_add(&sampler->text, "");
}

static void close_all(struct sampler *sampler) {
  given_close(&sampler->given);
  text_free(&sampler->text);
  consensus_close(&sampler->consensus);
  free(sampler->drawn.tokens);
  free(sampler->drawn.confidence);
  free(sampler->drawn.calls);
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
