#include "stages/sample/consensus.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"

/* The tokens of one target. */
struct target {
  const int32_t *tokens;
  int64_t count;
};

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

static struct target target_of(const struct consensus *consensus, int64_t row, int64_t source,
                               int32_t end) {
  struct target target = {.tokens = consensus->drawn.tokens + row * consensus->positions + source};
  while (target.count < consensus->positions - source && target.tokens[target.count] != end)
    target.count++;
  return target;
}

/* Row by row of the usual table, of which one row, table[positions + 1], is kept. */
static int64_t longest_common(int64_t *table, const struct target *a, const struct target *b) {
  memset(table, 0, (size_t)(b->count + 1) * sizeof *table);
  for (int64_t i = 0; i < a->count; i++) {
    int64_t diagonal = 0;
    for (int64_t j = 0; j < b->count; j++) {
      const int64_t above = table[j + 1], best = table[j] > above ? table[j] : above;
      table[j + 1] = a->tokens[i] == b->tokens[j] ? diagonal + 1 : best;
      diagonal = above;
    }
  }
  return table[b->count];
}

/* Two empty targets agree. */
static double agreement(int64_t *table, const struct target *a, const struct target *b) {
  const int64_t both = a->count + b->count;
  return both > 0 ? 2 * (double)longest_common(table, a, b) / (double)both : 1;
}

/* The candidate of a text with the largest sum of agreements with the others. */
static int64_t choose(const struct consensus *consensus, int64_t *table, int64_t text,
                      int64_t source, int32_t end) {
  int64_t chosen = 0;
  double most = -1;
  for (int64_t c = 0; c < consensus->candidates; c++) {
    const struct target one = target_of(consensus, row_of(consensus, c, text), source, end);
    double sum = 0;
    for (int64_t d = 0; d < consensus->candidates; d++) {
      const struct target other = target_of(consensus, row_of(consensus, d, text), source, end);
      if (d != c) sum += agreement(table, &one, &other);
    }
    if (sum > most) chosen = c;
    if (sum > most) most = sum;
  }
  return chosen;
}

static int32_t all_calls(const struct consensus *consensus, int64_t text) {
  int32_t calls = 0;
  for (int64_t c = 0; c < consensus->candidates; c++)
    calls += consensus->drawn.calls[row_of(consensus, c, text)];
  return calls;
}

enum status consensus_choose(const struct consensus *consensus, const int32_t *sources, int32_t end,
                             const struct consensus_texts *texts, int64_t count) {
  const struct consensus_texts *drawn = &consensus->drawn;
  const int64_t T = consensus->positions;
  int64_t *table = calloc((size_t)T + 1, sizeof *table);
  CHECK(table, STATUS_ENVIRONMENT, "out of memory: texts of %lld tokens", (long long)T);
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = row_of(consensus, choose(consensus, table, i, sources[i], end), i);
    memcpy(texts->tokens + i * T, drawn->tokens + row * T, (size_t)T * sizeof *texts->tokens);
    if (texts->confidence)
      memcpy(texts->confidence + i * T, drawn->confidence + row * T,
             (size_t)T * sizeof *texts->confidence);
    if (texts->calls) texts->calls[i] = all_calls(consensus, i);
  }
  free(table);
  return STATUS_OK;
}
