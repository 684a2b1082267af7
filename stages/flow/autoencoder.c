/* The text autoencoder of AURORA-LM (arXiv 2608.02602): tokens to latents and back in
 * one parallel pass, by cross-entropy. While it trains, whole token embeddings and single
 * coordinates of latents are set to zero at random, without making up for it.
 */
#include "pipeline/base/random.h"
#include "stages/flow/flow.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/dropout.h"
#include "stages/model/layers/head.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/vocab_embedding.h"
#include "stages/model/networks/aurora_autoencoder.h"

/* The accuracy is a report: no gradient comes from it. */
enum { PART_CE, PART_ACCURACY };

static const char *const parts[] = {"ce", "accuracy", NULL};

static enum status init(struct flow *flow, struct arena *arena) {
  const struct options *options = flow->options;
  struct aurora_autoencoder *net = arena_take_zeroed(arena, sizeof *net);
  flow->state = net;
  aurora_autoencoder_declare(net, flow->params,
                             &(struct aurora_config){.depth = options->depth,
                                                     .width = options->width,
                                                     .heads = options->heads,
                                                     .feedforward = options->feedforward,
                                                     .vocabulary = flow->vocab->size,
                                                     .recompute = options->recompute});
  param_slice(net->table, flow->vocab->rows.begin, split_count(flow->vocab->rows));
  return STATUS_OK;
}

static void weights(const struct flow *flow, const struct flow_batch *batch, double *weight) {
  (void)flow;
  weight[PART_CE] = 0;
  for (int64_t row = 0; row < batch->count; row++) weight[PART_CE] += (double)batch->lengths[row];
  weight[PART_ACCURACY] = weight[PART_CE];
}

/* y = x with the rows that are drawn set to zero. */
static struct value *drop_tokens(const struct flow *flow, struct tape *tape,
                                 const struct flow_batch *batch, struct value *x) {
  const double p = flow->options->ae_token_dropout;
  if (p <= 0 || batch->validation) return x;
  float *kept = tape_save(tape, (size_t)(x->rows * x->cols) * sizeof *kept);
  for (int64_t i = 0; kept && i < x->rows; i++) {
    const int64_t row = i / batch->positions;
    const struct random_stream stream =
        random_open(flow->seed, "autoencoder.tokens", (uint64_t)batch->samples[row], batch->step);
    const bool drop = random_uniform(stream, (uint64_t)(i % batch->positions)) < p;
    for (int64_t c = 0; c < x->cols; c++) kept[i * x->cols + c] = drop ? -1 : 0;
  }
  struct value *scale = tape_input(tape, kept, x->rows, x->cols);
  struct value *shift = tape_constant(tape, x->rows, x->cols);
  tape->kernels->fill_zero(shift->data, x->rows * x->cols);
  return modulate_forward(tape, x, shift, scale, 1);
}

/* The layer keeps the mean by scaling up; here the published form scales back. */
static struct value *drop_latents(const struct flow *flow, struct tape *tape,
                                  const struct flow_batch *batch, struct value *z, int64_t count) {
  const double p = flow->options->ae_latent_dropout;
  if (p <= 0 || batch->validation) return z;
  struct random_stream *streams = arena_take(tape->records, (size_t)batch->count * sizeof *streams);
  for (int64_t b = 0; b < batch->count; b++)
    streams[b] =
        random_open(flow->seed, "autoencoder.latents", (uint64_t)batch->samples[b], batch->step);
  return combine_scale(tape, dropout_forward(tape, z, p, streams, count), 1 - p);
}

static struct value *run_network(const struct flow *flow, struct tape *tape,
                                 const struct flow_batch *batch) {
  const struct aurora_autoencoder *net = flow->state;
  const int64_t count = aurora_autoencoder_latents(1, batch->positions);
  struct value *tokens = vocab_embedding_forward(tape, flow->vocab, batch->tokens,
                                                 batch->count * batch->positions, net->table);
  tokens = drop_tokens(flow, tape, batch, tokens);
  struct value *latents =
      aurora_autoencoder_encode(tape, net, tokens, batch->count, batch->positions, count);
  latents = drop_latents(flow, tape, batch, latents, count);
  return aurora_autoencoder_decode(tape, net, latents, batch->count, count, batch->positions);
}

static enum status loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const double *total, struct flow_losses *losses) {
  const struct aurora_autoencoder *net = flow->state;
  const int64_t n = batch->count * batch->positions;
  float *weight = arena_take_zeroed(tape->records, (size_t)n * sizeof *weight);
  struct head_result result = {
      .loss = arena_take_zeroed(tape->records, (size_t)n * sizeof *result.loss),
      .argmax = arena_take_zeroed(tape->records, (size_t)n * sizeof *result.argmax)};
  *losses = (struct flow_losses){0};
  for (int64_t i = 0; i < n; i++)
    if (i % batch->positions < batch->lengths[i / batch->positions])
      weight[i] = (float)(1 / total[PART_CE]);
  head_forward(
      tape, &result, run_network(flow, tape, batch),
      &(struct head){
          .vocab = flow->vocab, .w = net->table, .targets = batch->tokens, .weight = weight});
  for (int64_t i = 0; i < n; i++) {
    if (weight[i] <= 0) continue;
    losses->sum[PART_CE] += result.loss[i];
    losses->sum[PART_ACCURACY] += result.argmax[i] == batch->tokens[i] ? 1 : 0;
    losses->weight[PART_CE] += 1;
    losses->weight[PART_ACCURACY] += 1;
  }
  return tape->status;
}

/* Accuracy is only reported. */
static double objective(const double *sum, const double *total) {
  return total[PART_CE] > 0 ? sum[PART_CE] / total[PART_CE] : 0;
}

const struct flow_kind flow_autoencoder = {.name = "autoencoder",
                                           .parts = parts,
                                           .init = init,
                                           .weights = weights,
                                           .loss = loss,
                                           .objective = objective};
