/* An encoder for ELF, trained from scratch: a T5 that writes the spans which are missing in a text
 * (Raffel et al. 2020; the ablation of arXiv 2605.10938). What is drawn of a row is a function of
 * (seed, sample, step).
 */
#include "stages/flow/t5.h"

#include "stages/flow/flow.h"
#include "stages/flow/penalties.h"
#include "stages/flow/t5_spans.h"
#include "stages/model/layers/head.h"
#include "stages/model/networks/swiglu.h"
#include "stages/model/networks/t5_decoder.h"
#include "stages/model/networks/t5_encoder.h"
#include "stages/model/networks/weights_file.h"

enum { PART_CE, PART_PENALTIES };

static const char *const parts[] = {"ce", PENALTIES_NAMES, NULL};

struct t5 {
  struct t5_encoder encoder;
  struct t5_decoder decoder;
  struct t5_rule rule;
  struct t5_lengths room; /* of full rows */
};

struct t5_config t5_config_of(const struct options *options, int64_t vocabulary) {
  const int64_t width = options->width, inner = options->feedforward;
  return (struct t5_config){.vocabulary = vocabulary,
                            .width = width,
                            .heads = options->heads,
                            .head_dim = width / options->heads,
                            .feedforward = inner ? inner : swiglu_hidden(width),
                            .depth = options->depth,
                            .decoder_depth = options->t5_decoder_depth,
                            .buckets = 32,
                            .max_distance = 128,
                            .epsilon = 1e-6,
                            .gated = true,
                            .shared_head = options->t5_shared_head,
                            .recompute = options->recompute};
}

static enum status check(const struct flow *flow, const struct t5_lengths *room) {
  CHECK(flow->eos >= 0, STATUS_MISMATCH,
        "method t5 ends texts with the end token, and the tokenizer has none");
  CHECK(room->spans <= T5_ADDED_SENTINELS, STATUS_MISMATCH,
        "rows of %lld tokens lose %lld spans, but there are %d sentinels; shorten sequence_length, "
        "or set t5_noise or t5_span",
        (long long)flow->positions, (long long)room->spans, T5_ADDED_SENTINELS);
  return STATUS_OK;
}

static void cut(const struct flow *flow, struct param *param) {
  param_slice(param, flow->vocab->rows.begin, split_count(flow->vocab->rows));
}

static enum status init(struct flow *flow, struct arena *arena) {
  const struct options *options = flow->options;
  struct t5 *t5 = arena_take_zeroed(arena, sizeof *t5);
  flow->state = t5;
  t5->rule = (struct t5_rule){.share = options->t5_noise,
                              .span = options->t5_span,
                              .sentinel = (int32_t)flow->vocab->size - 1,
                              .end = flow->eos};
  t5->room = t5_lengths_of(&t5->rule, flow->positions);
  TRY(check(flow, &t5->room));
  const struct t5_config config = t5_config_of(options, flow->vocab->size);
  t5_encoder_declare(&t5->encoder, flow->params, &config, false);
  t5_decoder_declare(&t5->decoder, flow->params, &config, t5->encoder.table);
  cut(flow, t5->encoder.table);
  if (!config.shared_head) cut(flow, t5->decoder.head);
  return STATUS_OK;
}

static enum status read_file(struct flow *flow, const char *path) {
  return weights_file_read(flow->params, flow->kernels->element, path);
}

static enum status write_file(const struct flow *flow, const char *path) {
  return weights_file_write(flow->params, flow->kernels->element, path);
}

static int32_t pad_of(const struct flow *flow) {
  return flow->pad >= 0 ? flow->pad : 0;
}

static enum status write_config(const struct flow *flow, const char *path) {
  const struct t5 *t5 = flow->state;
  return t5_config_write(&t5->encoder.config,
                         &(struct t5_ids){.pad = pad_of(flow), .eos = flow->eos}, path);
}

static void weights(const struct flow *flow, const struct flow_batch *batch, double *weight) {
  const struct t5 *t5 = flow->state;
  weight[PART_CE] = 0;
  for (int64_t row = 0; row < batch->count; row++)
    weight[PART_CE] += (double)t5_lengths_of(&t5->rule, batch->lengths[row]).targets;
  penalties_weights(flow, batch, weight[PART_CE], weight + PART_PENALTIES);
}

static double head_share(const struct flow *flow) {
  const struct t5 *t5 = flow->state;
  return (double)t5->room.targets / (double)flow->positions;
}

/* The rows of a batch, corrupted. Each has the room of a full row. */
struct corrupted {
  int32_t *inputs, *lengths; /* [count, room.inputs], [count] */
  int32_t *before, *targets; /* [count, room.targets]: what each target follows; -1: no target */
  float *weight;             /* [count, room.targets] */
};

static int32_t *fill(struct tape *tape, int64_t count, int32_t id) {
  int32_t *ids = arena_take(tape->records, (size_t)count * sizeof *ids);
  for (int64_t i = 0; i < count; i++) ids[i] = id;
  return ids;
}

static void corrupt_row(const struct flow *flow, const struct flow_batch *batch, int64_t row,
                        int64_t *room, const struct corrupted *rows, float weight) {
  const struct t5 *t5 = flow->state;
  const int64_t T = t5->room.targets, length = batch->lengths[row];
  const struct t5_lengths lengths = t5_lengths_of(&t5->rule, length);
  int32_t *targets = rows->targets + row * T, *before = rows->before + row * T;
  t5_corrupt(&t5->rule, batch->tokens + row * batch->positions, length,
             random_open(flow->seed, batch->validation ? "t5.validation.spans" : "t5.spans",
                         (uint64_t)batch->samples[row], batch->step),
             room, rows->inputs + row * t5->room.inputs, targets);
  rows->lengths[row] = (int32_t)lengths.inputs;
  for (int64_t i = 1; i < lengths.targets; i++) before[i] = targets[i - 1];
  for (int64_t i = 0; i < lengths.targets; i++) rows->weight[row * T + i] = weight;
}

static struct corrupted corrupt(const struct flow *flow, struct tape *tape,
                                const struct flow_batch *batch, float weight) {
  const struct t5 *t5 = flow->state;
  const int64_t n = batch->count * t5->room.targets;
  int64_t *room = arena_take(tape->records, (size_t)(2 * t5->room.spans + 1) * sizeof *room);
  const struct corrupted rows = {.inputs = fill(tape, batch->count * t5->room.inputs, pad_of(flow)),
                                 .lengths = fill(tape, batch->count, 0),
                                 .before = fill(tape, n, pad_of(flow)),
                                 .targets = fill(tape, n, -1),
                                 .weight =
                                     arena_take_zeroed(tape->records, (size_t)n * sizeof(float))};
  for (int64_t row = 0; row < batch->count; row++)
    corrupt_row(flow, batch, row, room, &rows, weight);
  return rows;
}

/* What the head multiplies, [count * room.targets, width]. */
static struct value *states(const struct flow *flow, struct tape *tape,
                            const struct flow_batch *batch, const struct corrupted *rows) {
  const struct t5 *t5 = flow->state;
  struct t5_dropout *dropout = arena_take(tape->records, sizeof *dropout);
  *dropout = (struct t5_dropout){.share = batch->validation ? 0 : flow->options->t5_dropout,
                                 .seed = flow->seed,
                                 .samples = batch->samples,
                                 .step = batch->step};
  struct value *memory = t5_encoder_forward(tape, &t5->encoder,
                                            &(struct t5_input){.batch = batch->count,
                                                               .positions = t5->room.inputs,
                                                               .tokens = rows->inputs,
                                                               .lengths = rows->lengths,
                                                               .vocab = flow->vocab,
                                                               .dropout = dropout});
  return t5_decoder_forward(tape, &t5->decoder,
                            &(struct t5_decoder_input){.batch = batch->count,
                                                       .positions = t5->room.targets,
                                                       .tokens = rows->before,
                                                       .memory = memory,
                                                       .memory_positions = t5->room.inputs,
                                                       .memory_lengths = rows->lengths,
                                                       .vocab = flow->vocab,
                                                       .dropout = dropout});
}

static enum status loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const double *total, struct flow_losses *losses) {
  const struct t5 *t5 = flow->state;
  const float weight = total[PART_CE] > 0 ? (float)(1 / total[PART_CE]) : 0;
  const struct corrupted rows = corrupt(flow, tape, batch, weight);
  const int64_t n = batch->count * t5->room.targets;
  struct head head = {
      .vocab = flow->vocab, .w = t5->decoder.head, .targets = rows.targets, .weight = rows.weight};
  struct head_result result = {.loss =
                                   arena_take_zeroed(tape->records, (size_t)n * sizeof(double))};
  *losses = (struct flow_losses){0};
  penalties_open(flow, batch, tape, n, &head, &result);
  head_forward(tape, &result, states(flow, tape, batch, &rows), &head);
  for (int64_t i = 0; i < n; i++) {
    if (rows.targets[i] < 0) continue;
    losses->sum[PART_CE] += result.loss[i];
    losses->weight[PART_CE] += 1;
    penalties_add(&head, &result, i, losses, PART_PENALTIES);
  }
  return tape->status;
}

const struct flow_kind flow_t5 = {.name = "t5",
                                  .parts = parts,
                                  .adds_sentinels = true,
                                  .init = init,
                                  .read_file = read_file,
                                  .write_file = write_file,
                                  .write_config = write_config,
                                  .weights = weights,
                                  .head_share = head_share,
                                  .loss = loss};
