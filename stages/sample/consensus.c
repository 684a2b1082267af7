#include "stages/sample/consensus.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "pipeline/base/subsequence.h"

uint64_t consensus_seed(uint64_t seed, int64_t candidate) {
  const struct random_stream stream = random_open(seed, "sample.candidate", (uint64_t)candidate, 0);
  if (candidate == 0) return seed;
  return (uint64_t)random_bits(stream, 0) << 32 | random_bits(stream, 1);
}

enum status consensus_open(struct consensus *consensus, int64_t candidates, int64_t batch,
                           int64_t positions, const struct consensus_texts *texts) {
  const size_t rows = (size_t)(candidates * batch), all = rows * (size_t)positions;
  struct consensus_texts *drawn = &consensus->drawn;
  *consensus = (struct consensus){.candidates = candidates, .batch = batch, .positions = positions};
  drawn->tokens = calloc(all, sizeof *drawn->tokens);
  if (texts->confidence) drawn->confidence = calloc(all, sizeof *drawn->confidence);
  if (texts->calls) drawn->calls = calloc(rows, sizeof *drawn->calls);
  CHECK(drawn->tokens && !texts->confidence == !drawn->confidence && !texts->calls == !drawn->calls,
        STATUS_ENVIRONMENT, "out of memory: %lld candidates of %lld texts", (long long)candidates,
        (long long)batch);
  return STATUS_OK;
}

void consensus_close(struct consensus *consensus) {
  free(consensus->drawn.tokens);
  free(consensus->drawn.confidence);
  free(consensus->drawn.calls);
  *consensus = (struct consensus){0};
}

void consensus_keep(struct consensus *consensus, int64_t candidate,
                    const struct consensus_texts *texts, int64_t count) {
  const struct consensus_texts *drawn = &consensus->drawn;
  const int64_t row = candidate * consensus->batch, at = row * consensus->positions;
  const size_t all = (size_t)(count * consensus->positions);
  memcpy(drawn->tokens + at, texts->tokens, all * sizeof *drawn->tokens);
  if (drawn->confidence)
    memcpy(drawn->confidence + at, texts->confidence, all * sizeof *drawn->confidence);
  if (drawn->calls) memcpy(drawn->calls + row, texts->calls, (size_t)count * sizeof *drawn->calls);
}

/* The row of a text among all that were drawn. */
static int64_t row_of(const struct consensus *consensus, int64_t candidate, int64_t text) {
  return candidate * consensus->batch + text;
}

/* The targets of one text, and what comparing them takes. */
struct targets {
  uint64_t *ids;  /* [candidates, positions] their tokens */
  size_t *counts; /* [candidates] how many those are */
  int64_t *row;   /* [positions + 1] scratch */
  double *sums;   /* [candidates] of agreements with the others */
};

static enum status targets_open(struct targets *targets, const struct consensus *consensus) {
  const size_t candidates = (size_t)consensus->candidates, T = (size_t)consensus->positions;
  *targets = (struct targets){.ids = calloc(candidates * T, sizeof *targets->ids),
                              .counts = calloc(candidates, sizeof *targets->counts),
                              .row = calloc(T + 1, sizeof *targets->row),
                              .sums = calloc(candidates, sizeof *targets->sums)};
  CHECK(targets->ids && targets->counts && targets->row && targets->sums, STATUS_ENVIRONMENT,
        "out of memory: %zu candidates of %zu tokens", candidates, T);
  return STATUS_OK;
}

static void targets_close(struct targets *targets) {
  free(targets->ids);
  free(targets->counts);
  free(targets->row);
  free(targets->sums);
}

static void read_targets(struct targets *targets, const struct consensus *consensus, int64_t text,
                         int64_t source, int32_t end) {
  const int64_t T = consensus->positions;
  for (int64_t c = 0; c < consensus->candidates; c++) {
    const int32_t *tokens = consensus->drawn.tokens + row_of(consensus, c, text) * T;
    uint64_t *ids = targets->ids + c * T;
    size_t count = 0;
    for (int64_t t = source; t < T && tokens[t] != end; t++) ids[count++] = (uint64_t)tokens[t];
    targets->counts[c] = count;
    targets->sums[c] = 0;
  }
}

/* Two empty targets agree. */
static double agreement(const struct targets *targets, int64_t positions, int64_t one,
                        int64_t other) {
  const size_t n = targets->counts[one], m = targets->counts[other];
  const int64_t common = subsequence_longest(targets->row, targets->ids + one * positions, n,
                                             targets->ids + other * positions, m);
  return n + m > 0 ? 2 * (double)common / (double)(n + m) : 1;
}

/* The candidate with the largest sum of agreements with the others. */
static int64_t choose(struct targets *targets, const struct consensus *consensus) {
  int64_t chosen = 0;
  for (int64_t c = 0; c < consensus->candidates; c++)
    for (int64_t d = c + 1; d < consensus->candidates; d++) {
      const double both = agreement(targets, consensus->positions, c, d);
      targets->sums[c] += both;
      targets->sums[d] += both;
    }
  for (int64_t c = 1; c < consensus->candidates; c++)
    if (targets->sums[c] > targets->sums[chosen]) chosen = c;
  return chosen;
}

static int32_t all_calls(const struct consensus *consensus, int64_t text) {
  int32_t calls = 0;
  for (int64_t c = 0; c < consensus->candidates; c++)
    calls += consensus->drawn.calls[row_of(consensus, c, text)];
  return calls;
}

/* Text i is candidate `chosen` from here on. */
static void take(const struct consensus *consensus, int64_t chosen,
                 const struct consensus_texts *texts, int64_t i) {
  const struct consensus_texts *drawn = &consensus->drawn;
  const int64_t T = consensus->positions, from = row_of(consensus, chosen, i) * T;
  memcpy(texts->tokens + i * T, drawn->tokens + from, (size_t)T * sizeof *texts->tokens);
  if (texts->confidence)
    memcpy(texts->confidence + i * T, drawn->confidence + from,
           (size_t)T * sizeof *texts->confidence);
  if (texts->calls) texts->calls[i] = all_calls(consensus, i);
}

enum status consensus_choose(const struct consensus *consensus, const int32_t *sources, int32_t end,
                             const struct consensus_texts *texts, int64_t count) {
  struct targets targets;
  const enum status status = targets_open(&targets, consensus);
  for (int64_t i = 0; status == STATUS_OK && i < count; i++) {
    read_targets(&targets, consensus, i, sources[i], end);
    take(consensus, choose(&targets, consensus), texts, i);
  }
  targets_close(&targets);
  return status;
}
