/* Revisions in ELF's sampler of pairs: tokens that the decoding was least sure of become noise, the
 * others the latents that the encoder has for them, and the decode branch names the former again.
 * It was trained on that: its positions are corrupted each by itself (arXiv 2605.10938). Which are
 * named again, and how many of them, is mask-predict's rule (arXiv 1904.09324).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/flow/elf_walk.h"

/* Of the positions, in the limit of many revisions: the first ones keep half of what the flow has
 * decided. With 1 they begin anew, which makes worse texts (decision 0022). */
#define FIRST_SHARE 0.5

/* One position that may be named again. */
struct doubt {
  double confidence;
  int64_t position;
};

static int by_confidence(const void *a, const void *b) {
  const struct doubt *x = a, *y = b;
  if (x->confidence != y->confidence) return x->confidence < y->confidence ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

/* Where the text ends: its first end token behind the source, T without one. */
static int64_t end_of(const struct elf_walk *walk, int64_t text) {
  const int64_t T = walk->request->positions;
  int64_t i = walk->request->given->before[text];
  while (i < T && walk->tokens[text * T + i] != walk->flow->eos) i++;
  return i;
}

/* Behind the first end token there are only such. Returns how many tokens the text has, with one.
 */
static int32_t fill_ends(struct elf_walk *walk, int64_t text) {
  const int64_t T = walk->request->positions, end = end_of(walk, text);
  for (int64_t i = end; i < T; i++) walk->tokens[text * T + i] = walk->flow->eos;
  return (int32_t)(end < T ? end + 1 : T);
}

/* What is behind the end is the rule's, not the model's. */
static void close_text(struct elf_walk *walk, int64_t text) {
  const int64_t T = walk->request->positions;
  for (int64_t i = fill_ends(walk, text); i < T; i++) walk->confidence[text * T + i] = 1;
}

/* The text's latents into its slot, noise where it is to be named again: those of its positions up
 * to one behind the end that are least sure. again[T] tells which. */
static void hide_doubts(struct elf_walk *walk, int64_t text, double share, int64_t revision,
                        bool *again) {
  const struct flow_given *given = walk->request->given;
  const int64_t T = walk->request->positions, E = walk->width, first = given->before[text];
  const int64_t behind = end_of(walk, text) + 2, last = behind < T ? behind : T;
  const int64_t most = (int64_t)ceil(share * (double)(last - first));
  struct doubt *doubts = arena_take(walk->tape->records, (size_t)T * sizeof *doubts);
  float *seen = walk->seen + text * walk->size;
  for (int64_t i = first; i < last; i++)
    doubts[i - first] = (struct doubt){walk->confidence[text * T + i], i};
  qsort(doubts, (size_t)(last - first), sizeof *doubts, by_confidence);
  memset(again, 0, (size_t)T * sizeof *again);
  memcpy(seen, given->latents + text * walk->size, (size_t)walk->size * sizeof *seen);
  random_fill_normal(walk->noise, walk->size,
                     elf_walk_stream(walk, text, "elf.sample.revision", revision), 0);
  for (int64_t j = 0; j < most; j++) {
    const int64_t i = doubts[j].position;
    again[i] = true;
    for (int64_t c = i * E; c < (i + 1) * E; c++)
      seen[c] = (float)(walk->flow->options->elf_corruption_scale * (double)walk->noise[c]);
  }
}

static void take(struct elf_walk *walk, const struct elf_named *named, const bool *again) {
  const int64_t n = walk->request->count * walk->request->positions;
  for (int64_t i = 0; i < n; i++) {
    if (!again[i]) continue;
    walk->tokens[i] = named->tokens[i];
    walk->confidence[i] = (float)exp(-named->nll[i]);
  }
}

/* The revision-th of `count`: fewer positions each time. */
static enum status revise(struct elf_walk *walk, int64_t revision, int64_t count) {
  const int64_t texts = walk->request->count, T = walk->request->positions;
  const struct flow_given *given = walk->request->given;
  const double share = FIRST_SHARE * (double)(count - revision) / (double)(count + 1);
  struct arena *records = walk->tape->records;
  int32_t *lengths = arena_take(records, (size_t)texts * sizeof *lengths);
  bool *again = arena_take(records, (size_t)(texts * T) * sizeof *again);
  if (walk->z) {
    for (int64_t i = 0; i < texts; i++) lengths[i] = fill_ends(walk, i);
    TRY(given->embed(given->embedder, walk->tokens, lengths));
    for (int64_t i = 0; i < texts; i++) hide_doubts(walk, i, share, revision, again + i * T);
    memset(walk->draft, 0, (size_t)(texts * walk->size) * sizeof *walk->draft);
  }
  const struct elf_named named = elf_name_tokens(walk);
  if (walk->z) take(walk, &named, again);
  return STATUS_OK;
}

enum status elf_revise(struct elf_walk *walk) {
  const int64_t count = walk->request->options->elf_revisions;
  struct tape *tape = walk->tape;
  if (count == 0) return STATUS_OK;
  walk->active = walk->request->count;
  for (int64_t i = 0; i < walk->active; i++) walk->text[i] = i;
  for (int64_t r = 0; r < count; r++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    const enum status status = revise(walk, r, count);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
    TRY(status);
  }
  for (int64_t i = 0; walk->z && i < walk->active; i++) close_text(walk, i);
  for (int64_t i = 0; walk->request->calls && i < walk->active; i++)
    walk->request->calls[i] += (int32_t)count;
  return STATUS_OK;
}
