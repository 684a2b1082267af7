#include "stages/tokenize/unigram_viterbi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Places of a word: 0 is before its space, 1 + i before its byte i. Steps are kept for this many
 * places at first, and for those behind them only as long as paths that are alive differ there. */
enum { WINDOW = 1024 };

/* A word that is being segmented. */
struct run {
  struct viterbi *viterbi;
  const unsigned char *bytes;
  size_t count;
  struct tokens *ids;
  struct viterbi_result *result;
};

/* How sums are kept: as they are; or in single precision, and for short words judged besides. It is
 * constant where functions are called that depend on it. */
enum sums { EXACT, ROUNDED, JUDGED };

/* Length of a UTF-8 sequence by its first byte. */
static inline size_t character_length(unsigned char lead) {
  return (size_t) "\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[lead >> 4];
}

static enum status reserve(struct viterbi *viterbi, size_t steps) {
  if (steps <= viterbi->capacity) return STATUS_OK;
  struct viterbi_step *grown = realloc(viterbi->steps, steps * sizeof *grown);
  CHECK(grown, STATUS_ENVIRONMENT, "out of memory: a word of %zu bytes", steps);
  memset(grown + viterbi->capacity, 0, (steps - viterbi->capacity) * sizeof *grown);
  viterbi->steps = grown;
  viterbi->capacity = steps;
  return STATUS_OK;
}

/* --- forward ---------------------------------------------------------------------------------- */

static inline void judge(struct viterbi_judgement *judged, size_t from, size_t to, double score) {
  const double exact = judged[from].best + score, best = judged[to].best;
  const double lower = exact < best ? exact : best;
  judged[to].best = exact < best ? best : exact;
  judged[to].second = judged[to].second < lower ? lower : judged[to].second;
}

/* Offers a piece from one place to another. The library's rule: the first candidate, and then any
 * that is strictly better. `sum`: with what comes before, as the library compares it. */
static inline void offer(struct viterbi_step *step, size_t length, int32_t id, double sum,
                         enum sums sums) {
  if (step->length && sum <= step->score) return;
  *step = (struct viterbi_step){sums == EXACT ? sum : (double)(float)sum, id, (int32_t)length};
}

/* Offers every piece that begins at the place `at`, which `node` was reached behind; whether one of
 * them is the single character. */
static inline bool offer_pieces(const struct run *run, size_t at, int32_t node, size_t character,
                                enum sums sums) {
  struct viterbi *viterbi = run->viterbi;
  struct viterbi_step *const step = &viterbi->steps[at - viterbi->base];
  const double before = step->score;
  bool single = false;
  for (size_t end = at; end <= run->count;) {
    if (end) node = piece_trie_step(viterbi->trie, node, run->bytes[end - 1]);
    end++;
    if (node < 0) break;
    if (!piece_trie_ends(viterbi->trie, node)) continue;
    const struct piece_trie_value *found = &viterbi->trie->values[node];
    single |= end - at == character;
    const double score = sums == EXACT ? viterbi->exact[found->id] : (double)found->score;
    if (sums == JUDGED) judge(viterbi->judged, at, end, score);
    offer(step + (end - at), end - at, found->id, score + before, sums);
  }
  return single;
}

static inline void offer_unknown(const struct run *run, size_t at, size_t character,
                                 enum sums sums) {
  struct viterbi *viterbi = run->viterbi;
  struct viterbi_step *const step = &viterbi->steps[at - viterbi->base];
  if (sums == JUDGED) judge(viterbi->judged, at, at + character, viterbi->unknown_score);
  const double sum = viterbi->unknown_score + step->score;
  offer(step + character, character, viterbi->unknown, sums == EXACT ? sum : (float)sum, sums);
}

/* Goes on from the place `at` to the first one from `end` on; returns it. */
static inline size_t go_forward(const struct run *run, size_t at, size_t end, enum sums sums) {
  if (at == 0) {
    offer_pieces(run, 0, run->viterbi->space, 1, sums);
    at = 1;
  }
  while (at < end) {
    size_t character = character_length(run->bytes[at - 1]);
    if (character > run->count + 1 - at) character = run->count + 1 - at;
    if (!offer_pieces(run, at, PIECE_TRIE_ROOT, character, sums))
      offer_unknown(run, at, character, sums);
    at += character;
  }
  return at;
}

/* --- back ------------------------------------------------------------------------------------- */

static void turn_around(int32_t *ids, size_t count) {
  for (size_t i = 0, j = count; i + 1 < j; i++) {
    const int32_t held = ids[--j];
    ids[j] = ids[i];
    ids[i] = held;
  }
}

/* Appends the pieces of the best path from the first step to the place `end`. */
static enum status append_path(const struct run *run, size_t end) {
  const struct viterbi *viterbi = run->viterbi;
  const size_t last = end - viterbi->base;
  TRY(tokens_reserve(run->ids, last));
  int32_t *const first = run->ids->ids + run->ids->count;
  size_t count = 0;
  for (size_t at = last; at > 0; at -= (size_t)viterbi->steps[at].length) {
    run->result->unknown |= viterbi->steps[at].id == viterbi->unknown;
    first[count++] = viterbi->steps[at].id;
  }
  turn_around(first, count);
  run->ids->count += count;
  run->result->count += count;
  run->result->sum = (float)viterbi->steps[last].score;
  return STATUS_OK;
}

/* A path's sum is off by half a unit in the last place for each piece; two paths are safely apart
 * when their exact distance is more than all of it together. */
static double safe_limit(const struct viterbi *viterbi, size_t count) {
  double margin = INFINITY;
  for (size_t end = count + 1; end > 0; end -= (size_t)viterbi->steps[end].length)
    margin = fmin(margin, viterbi->judged[end].best - viterbi->judged[end].second);
  return margin / ((double)(count + 8) * 0x1p-23) + viterbi->judged[count + 1].best;
}

static enum status segment_judged(const struct run *run) {
  struct viterbi *viterbi = run->viterbi;
  for (size_t i = 0; i < run->count + 2; i++)
    viterbi->judged[i] = (struct viterbi_judgement){-INFINITY, -INFINITY};
  viterbi->judged[0].best = 0;
  go_forward(run, 0, run->count + 1, JUDGED);
  run->result->limit = safe_limit(viterbi, run->count);
  return append_path(run, run->count + 1);
}

/* --- long words ------------------------------------------------------------------------------- */

/* The last place that the best paths to all places of [first, last] have in common. */
static size_t common_place(const struct viterbi *viterbi, size_t first, size_t last) {
  size_t common = SIZE_MAX;
  for (size_t place = first - viterbi->base; place <= last - viterbi->base; place++) {
    size_t other = place;
    if (!viterbi->steps[place].length) continue;
    if (common == SIZE_MAX) common = place;
    while (common != other) {
      size_t *later = common > other ? &common : &other;
      *later -= (size_t)viterbi->steps[*later].length;
    }
  }
  return viterbi->base + common;
}

/* Lets the steps begin at the place `base`; those behind `last` are not in use. */
static void move_base(struct viterbi *viterbi, size_t base, size_t last) {
  const size_t shift = base - viterbi->base, kept = last + 1 - base;
  memmove(viterbi->steps, viterbi->steps + shift, kept * sizeof *viterbi->steps);
  memset(viterbi->steps + kept, 0, shift * sizeof *viterbi->steps);
  viterbi->base = base;
}

/* Appends pieces as soon as no other path is left, so that steps stay few. */
static enum status segment_long(const struct run *run) {
  struct viterbi *viterbi = run->viterbi;
  const size_t end = run->count + 1;
  for (size_t at = 0; at < end;) {
    const size_t room = viterbi->base + viterbi->capacity - viterbi->longest - 8;
    const size_t stop = room < end ? room : end;
    at = viterbi->exact ? go_forward(run, at, stop, EXACT) : go_forward(run, at, stop, ROUNDED);
    if (at >= end) break;
    const size_t last = at + viterbi->longest < end ? at + viterbi->longest : end;
    const size_t common = common_place(viterbi, at, last);
    if (common - viterbi->base < viterbi->capacity / 2)
      TRY(reserve(viterbi, 2 * viterbi->capacity));
    TRY(append_path(run, common));
    move_base(viterbi, common, last);
  }
  return append_path(run, end);
}

enum status viterbi_run(struct viterbi *viterbi, const char *bytes, size_t count, float before,
                        struct tokens *ids, struct viterbi_result *result) {
  const struct run run = {viterbi, (const unsigned char *)bytes, count, ids, result};
  *result = (struct viterbi_result){.limit = viterbi->exact ? INFINITY : -1};
  TRY(reserve(viterbi, WINDOW + 4 * viterbi->longest));
  const size_t used = count + 2 < viterbi->capacity ? count + 2 : viterbi->capacity;
  memset(viterbi->steps, 0, used * sizeof *viterbi->steps);
  viterbi->base = 0;
  viterbi->steps[0].score = before;
  const bool judged = !viterbi->exact && count <= VITERBI_JUDGED_BYTES;
  return judged ? segment_judged(&run) : segment_long(&run);
}

void viterbi_free(struct viterbi *viterbi) {
  free(viterbi->steps);
  viterbi->steps = NULL;
  viterbi->capacity = 0;
}
