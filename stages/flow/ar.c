/* The autoregressive baseline: next-token cross-entropy, ancestral sampling. */
#include "stages/flow/ar.h"

#include <string.h>

#include "stages/flow/penalties.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/head.h"
#include "stages/model/layers/head_sample.h"
#include "stages/model/networks/gpt.h"

enum { PART_CE, PART_PENALTIES };

/* Prefixes are computed at multiples of this length, so that few shapes of products occur. */
enum { SAMPLE_STRIDE = 16 };

static const char *const parts[] = {"ce", PENALTIES_NAMES, NULL};

static enum status init(struct flow *flow, struct arena *arena) {
  const struct options *options = flow->options;
  struct gpt *net = arena_take_zeroed(arena, sizeof *net);
  flow->state = net;
  gpt_declare(net, flow->params,
              &(struct gpt_config){.depth = options->depth,
                                   .width = options->width,
                                   .heads = options->heads,
                                   .feedforward = options->feedforward,
                                   .vocabulary = flow->vocab->size,
                                   .recompute = options->recompute});
  param_slice(net->table, flow->vocab->rows.begin, split_count(flow->vocab->rows));
  return STATUS_OK;
}

static int64_t predicted(const struct flow_batch *batch, int64_t row) {
  return batch->lengths[row] > 1 ? batch->lengths[row] - 1 : 0;
}

static void weights(const struct flow *flow, const struct flow_batch *batch, double *weight) {
  weight[PART_CE] = 0;
  for (int64_t row = 0; row < batch->count; row++) weight[PART_CE] += (double)predicted(batch, row);
  penalties_weights(flow, batch, weight[PART_CE], weight + PART_PENALTIES);
}

/* What each position predicts, and the weight of its loss. */
struct next_tokens {
  int32_t *targets; /* [n]; -1: nothing */
  float *weight;    /* [n] */
  double *loss;     /* [n] */
};

static struct next_tokens next_tokens(struct tape *tape, const struct flow_batch *batch,
                                      float weight) {
  const int64_t T = batch->positions;
  const size_t n = (size_t)(batch->count * T);
  struct next_tokens next = {.targets = arena_take(tape->records, n * sizeof(int32_t)),
                             .weight = arena_take_zeroed(tape->records, n * sizeof(float)),
                             .loss = arena_take_zeroed(tape->records, n * sizeof(double))};
  memset(next.targets, -1, n * sizeof(int32_t));
  for (int64_t row = 0; row < batch->count; row++)
    for (int64_t i = 0; i < predicted(batch, row); i++) {
      next.targets[row * T + i] = batch->tokens[row * T + i + 1];
      next.weight[row * T + i] = weight;
    }
  return next;
}

static struct value *hidden_states(const struct flow *flow, struct tape *tape,
                                   const struct flow_batch *batch) {
  return gpt_forward(tape, flow->state, flow->vocab, batch->tokens, batch->count, batch->positions);
}

static struct head head_of(const struct flow *flow, const struct next_tokens *next) {
  const struct gpt *net = flow->state;
  return (struct head){
      .vocab = flow->vocab, .w = net->table, .targets = next->targets, .weight = next->weight};
}

static enum status loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const double *total, struct flow_losses *losses) {
  const float weight = total[PART_CE] > 0 ? (float)(1 / total[PART_CE]) : 0;
  const struct next_tokens next = next_tokens(tape, batch, weight);
  const int64_t n = batch->count * batch->positions;
  struct head head = head_of(flow, &next);
  struct head_result result = {.loss = next.loss};
  *losses = (struct flow_losses){0};
  penalties_open(flow, batch, tape, n, &head, &result);
  head_forward(tape, &result, hidden_states(flow, tape, batch), &head);
  for (int64_t i = 0; i < n; i++) {
    if (next.targets[i] < 0) continue;
    losses->sum[PART_CE] += next.loss[i];
    losses->weight[PART_CE] += 1;
    penalties_add(&head, &result, i, losses, PART_PENALTIES);
  }
  return tape->status;
}

enum status ar_score(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                     double *nll) {
  const bool was_recording = tape_pause(tape);
  const struct next_tokens next = next_tokens(tape, batch, 1);
  const struct head head = head_of(flow, &next);
  head_forward(tape, &(struct head_result){.loss = next.loss}, hidden_states(flow, tape, batch),
               &head);
  tape_resume(tape, was_recording);
  const int64_t T = batch->positions;
  memset(nll, 0, (size_t)(batch->count * T) * sizeof *nll);
  for (int64_t row = 0; row < batch->count; row++)
    for (int64_t i = 0; i < predicted(batch, row); i++)
      nll[row * T + i + 1] = next.loss[row * T + i];
  return tape->status;
}

/* Draws token `t` of every row from the prefix before it. */
static void draw_next(struct flow *flow, struct tape *tape, const struct flow_request *request,
                      int64_t t, int32_t *tokens) {
  const struct gpt *net = flow->state;
  const int64_t T = request->positions, count = request->count;
  const int64_t rounded = (t + SAMPLE_STRIDE - 1) / SAMPLE_STRIDE * SAMPLE_STRIDE;
  const int64_t length = rounded < T ? rounded : T;
  int32_t *prefix = arena_take_zeroed(tape->records, (size_t)(count * length) * sizeof *prefix);
  int64_t *last = arena_take(tape->records, (size_t)count * sizeof *last);
  int32_t *drawn = arena_take(tape->records, (size_t)count * sizeof *drawn);
  struct random_stream *streams = arena_take(tape->records, (size_t)count * sizeof *streams);
  for (int64_t i = 0; i < count; i++) {
    memcpy(prefix + i * length, tokens + i * T, (size_t)t * sizeof *prefix);
    last[i] = i * length + t - 1;
    streams[i] =
        random_open(request->seed, "ar.sample", (uint64_t)(request->first + i), (uint32_t)t);
  }
  struct value *hidden = gpt_forward(tape, net, flow->vocab, prefix, count, length);
  head_sample(tape, drawn, combine_pick_rows(tape, hidden, last, count),
              &(struct head){.vocab = flow->vocab, .w = net->table},
              (struct head_law){request->options->temperature, request->options->top_p}, streams,
              1);
  for (int64_t i = 0; i < count; i++) tokens[i * T + t] = drawn[i];
}

/* The given tokens, or one that begins a row. */
static int64_t start_rows(const struct flow *flow, const struct flow_request *request,
                          int32_t *tokens) {
  const int64_t given = request->prefix_length, T = request->positions;
  for (int64_t i = 0; i < request->count; i++) {
    if (given)
      memcpy(tokens + i * T, request->prefix + i * given, (size_t)given * sizeof *tokens);
    else
      tokens[i * T] = flow->bos >= 0 ? flow->bos : flow->eos >= 0 ? flow->eos : 0;
  }
  return given ? given : 1;
}

static enum status sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                          int32_t *tokens) {
  const bool was_recording = tape_pause(tape);
  const size_t row = (size_t)request->positions;
  memset(tokens, 0, (size_t)request->count * row * sizeof *tokens);
  for (int64_t t = start_rows(flow, request, tokens); t < request->positions; t++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    draw_next(flow, tape, request, t, tokens);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
  tape_resume(tape, was_recording);
  return tape->status;
}

const struct flow_kind flow_ar = {
    .name = "ar", .parts = parts, .init = init, .weights = weights, .loss = loss, .sample = sample};
