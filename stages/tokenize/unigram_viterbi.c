#include "stages/tokenize/unigram_viterbi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Length of a UTF-8 sequence by its first byte. */
static inline size_t character_length(unsigned char lead) {
  return (size_t) "\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[lead >> 4];
}

static enum status reserve(struct viterbi *viterbi, size_t steps) {
  if (steps <= viterbi->capacity) return STATUS_OK;
  const size_t capacity = steps > 2 * viterbi->capacity ? steps : 2 * viterbi->capacity;
  struct viterbi_step *grown = realloc(viterbi->steps, capacity * sizeof *grown);
  CHECK(grown, STATUS_ENVIRONMENT, "out of memory: a word of %zu bytes", capacity);
  viterbi->steps = grown;
  viterbi->capacity = capacity;
  return STATUS_OK;
}

struct candidate {
  size_t from, to;
  int32_t id;
  double sum;   /* with what comes before, as the library compares it */
  double score; /* of the piece */
};

static inline void judge(struct viterbi *viterbi, const struct candidate *candidate) {
  const double exact = viterbi->best[candidate->from] + candidate->score;
  double *best = &viterbi->best[candidate->to], *second = &viterbi->second[candidate->to];
  if (exact > *best) {
    *second = *best;
    *best = exact;
  } else if (exact > *second) {
    *second = exact;
  }
}

/* The library's rule: the first candidate, and then any that is strictly better. */
static inline void offer(struct viterbi *viterbi, const struct candidate *candidate) {
  struct viterbi_step *step = &viterbi->steps[candidate->to];
  if (viterbi->judges) judge(viterbi, candidate);
  if (step->length && candidate->sum <= step->score) return;
  step->score = (float)candidate->sum;
  step->id = candidate->id;
  step->length = (int32_t)(candidate->to - candidate->from);
}

/* Offers every piece that begins at `at`; whether one of them is the single character. */
static bool offer_pieces(struct viterbi *viterbi, const char *bytes, size_t at, size_t count,
                         size_t character) {
  const double before = viterbi->steps[at].score;
  bool single = false;
  int32_t node = PIECE_TRIE_ROOT;
  for (size_t end = at; end < count;) {
    node = piece_trie_step(viterbi->trie, node, (unsigned char)bytes[end++]);
    if (node < 0) break;
    if (!piece_trie_ends(viterbi->trie, node)) continue;
    const struct piece_trie_value *found = &viterbi->trie->values[node];
    single |= end - at == character;
    offer(viterbi,
          &(struct candidate){at, end, found->id, (double)found->score + before, found->score});
  }
  return single;
}

static void offer_unknown(struct viterbi *viterbi, size_t at, size_t character) {
  const float sum = viterbi->unknown_score + viterbi->steps[at].score;
  offer(viterbi,
        &(struct candidate){at, at + character, viterbi->unknown, sum, viterbi->unknown_score});
}

static void begin(struct viterbi *viterbi, size_t count, float before) {
  memset(viterbi->steps, 0, (count + 1) * sizeof *viterbi->steps);
  viterbi->steps[0].score = before;
  viterbi->judges = count <= VITERBI_JUDGED_BYTES;
  for (size_t i = 0; viterbi->judges && i <= count; i++)
    viterbi->best[i] = viterbi->second[i] = -INFINITY;
  viterbi->best[0] = 0;
}

/* A path's sum is off by half a unit in the last place for each piece; two paths are safely apart
 * when their exact distance is more than all of it together. */
static void conclude(const struct viterbi *viterbi, size_t count, struct viterbi_result *result) {
  double margin = viterbi->judges ? INFINITY : -1;
  result->count = 0;
  for (size_t end = count; end > 0; end -= (size_t)viterbi->steps[end].length) {
    const double gap = viterbi->judges ? viterbi->best[end] - viterbi->second[end] : -1;
    margin = gap < margin ? gap : margin;
    result->count++;
  }
  result->limit = margin / ((double)(count + 4) * 0x1p-23);
  if (viterbi->judges) result->limit += viterbi->best[count];
}

enum status viterbi_run(struct viterbi *viterbi, const char *bytes, size_t count, float before,
                        struct viterbi_result *result) {
  TRY(reserve(viterbi, count + 1));
  begin(viterbi, count, before);
  for (size_t at = 0; at < count;) {
    size_t character = character_length((unsigned char)bytes[at]);
    if (character > count - at) character = count - at;
    if (!offer_pieces(viterbi, bytes, at, count, character)) offer_unknown(viterbi, at, character);
    at += character;
  }
  conclude(viterbi, count, result);
  return STATUS_OK;
}

void viterbi_free(struct viterbi *viterbi) {
  free(viterbi->steps);
  viterbi->steps = NULL;
  viterbi->capacity = 0;
}
