#include "stages/flow/t5_spans.h"

#include <math.h>
#include <string.h>

static int64_t within(double value, int64_t least, int64_t most) {
  const int64_t rounded = (int64_t)rint(value);
  return rounded < least ? least : rounded > most ? most : rounded;
}

struct t5_lengths t5_lengths_of(const struct t5_rule *rule, int64_t tokens) {
  struct t5_lengths lengths = {.inputs = tokens + 1};
  if (tokens < 2) return lengths;
  lengths.noise = within((double)tokens * rule->share, 1, tokens - 1);
  const int64_t kept = tokens - lengths.noise;
  lengths.spans =
      within((double)lengths.noise / rule->span, 1, kept < lengths.noise ? kept : lengths.noise);
  lengths.inputs = kept + lengths.spans + 1;
  lengths.targets = lengths.noise + lengths.spans + 1;
  return lengths;
}

/* pieces[parts] of at least 1 that add up to `count`, every way as likely: which of the places
 * between items are borders (Knuth, algorithm 3.4.2 S). Draws begin at position `at`. */
static void divide(int64_t *pieces, int64_t count, int64_t parts, struct random_stream stream,
                   uint64_t at) {
  int64_t part = 0, length = 1;
  for (int64_t place = 0; place < count - 1; place++, length++) {
    const double left = (double)(count - 1 - place), wanted = (double)(parts - 1 - part);
    if (random_uniform(stream, at + (uint64_t)place) * left >= wanted) continue;
    pieces[part++] = length;
    length = 0;
  }
  pieces[part] = length;
}

static int32_t *put(int32_t *to, const int32_t *from, int64_t count) {
  memcpy(to, from, (size_t)count * sizeof *to);
  return to + count;
}

void t5_corrupt(const struct t5_rule *rule, const int32_t *tokens, int64_t count,
                struct random_stream stream, int64_t *room, int32_t *inputs, int32_t *targets) {
  const struct t5_lengths lengths = t5_lengths_of(rule, count);
  int64_t *kept = room, *noise = room + lengths.spans;
  if (lengths.spans > 0) {
    divide(kept, count - lengths.noise, lengths.spans, stream, 0);
    divide(noise, lengths.noise, lengths.spans, stream, (uint64_t)(count - lengths.noise));
  }
  const int64_t all = lengths.spans > 0 ? 0 : count;
  inputs = put(inputs, tokens, all);
  for (int32_t i = 0; i < lengths.spans; i++) {
    const int32_t sentinel = rule->sentinel - i;
    inputs = put(put(inputs, tokens, kept[i]), &sentinel, 1);
    targets = put(put(targets, &sentinel, 1), tokens + kept[i], noise[i]);
    tokens += kept[i] + noise[i];
  }
  *inputs = rule->end;
  if (lengths.targets > 0) *targets = rule->end;
}
