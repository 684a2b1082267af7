#include "stages/tokenize/bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_PAIR UINT64_MAX

/* --- pairs ------------------------------------------------------------------------------------ */

static inline uint64_t pair_key(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << BPE_ID_BITS | (uint32_t)right;
}

static inline uint64_t pair_hash(int32_t left, int32_t right) {
  return (uint64_t)left * 0x9e3779b97f4a7c15u ^ (uint64_t)right * 0xd6e8feb86659fd93u;
}

static inline uint32_t pair_slot(const struct bpe *bpe, int32_t left, int32_t right) {
  return (uint32_t)(pair_hash(left, right) >> bpe->pair_shift);
}

/* The token that two tokens are merged into, or INT32_MAX. */
static inline int32_t find_pair(const struct bpe *bpe, int32_t left, int32_t right) {
  const uint64_t key = pair_key(left, right);
  for (uint32_t at = pair_slot(bpe, left, right);; at = (at + 1) & bpe->pair_mask) {
    const uint64_t pair = bpe->pairs[at];
    if (pair >> BPE_ID_BITS == key) return (int32_t)(pair & BPE_MAX_TOKENS);
    if (pair == NO_PAIR) return INT32_MAX;
  }
}

static void add_pair(struct bpe *bpe, struct bpe_split split, int32_t joined) {
  const uint64_t key = pair_key(split.left, split.right);
  uint32_t at = pair_slot(bpe, split.left, split.right);
  while (bpe->pairs[at] != NO_PAIR) at = (at + 1) & bpe->pair_mask;
  bpe->pairs[at] = key << BPE_ID_BITS | (uint32_t)joined;
}

/* Whether merging the bytes of both gives these two tokens. Undoes merges on both sides of the
 * border, the later one first: at no time may a merge across the border have come before the one
 * that was undone. */
static bool undo(const struct bpe *bpe, int32_t left, int32_t right) {
  int32_t limit = INT32_MAX; /* merges of a lower rank came before what is still undone */
  do {
    const int32_t inner_left = bpe->splits[left].right, inner_right = bpe->splits[right].left;
    const bool left_first = inner_left != left && (left > right || inner_right == right);
    if (inner_left == left && inner_right == right) return true;
    limit = left_first ? left : right + 1; /* of equal ranks the left one comes first */
    if (left_first)
      left = inner_left;
    else
      right = inner_right;
  } while (find_pair(bpe, left, right) >= limit);
  return false;
}

static inline bool are_compatible(const struct bpe *bpe, int32_t left, int32_t right) {
  return find_pair(bpe, left, right) == INT32_MAX && undo(bpe, left, right);
}

/* As are_compatible, of which the latest answers are remembered. */
static inline bool recall_compatible(struct bpe *bpe, int32_t left, int32_t right) {
  const uint64_t key = pair_key(left, right) << 1;
  uint64_t *answer = &bpe->answers[pair_hash(left, right) >> (64 - BPE_ANSWER_BITS)];
  if ((*answer | 1) != (key | 1)) *answer = key | are_compatible(bpe, left, right);
  return *answer & 1;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* The token that is exactly these bytes, or -1. */
static int32_t find_token(const struct bpe *bpe, const char *bytes, size_t count) {
  int32_t node = PIECE_TRIE_ROOT;
  for (size_t i = 0; i < count && node >= 0; i++)
    node = piece_trie_step(&bpe->trie, node, (unsigned char)bytes[i]);
  return node >= 0 ? piece_trie_id(&bpe->trie, node) : -1;
}

/* The longest token that `bytes` begins with, of at most `count` bytes, and its length; -1: none.
 */
static inline int32_t longest_token(const struct bpe *bpe, const unsigned char *bytes, size_t count,
                                    size_t *length) {
  int32_t node = PIECE_TRIE_ROOT, longest = -1;
  for (size_t i = 0; i < count; i++) {
    node = piece_trie_step(&bpe->trie, node, bytes[i]);
    if (node < 0) break;
    if (!piece_trie_ends(&bpe->trie, node)) continue;
    longest = node;
    *length = i + 1;
  }
  return longest < 0 ? -1 : bpe->trie.values[longest].id;
}

/* Finds the merge that makes a token: of all ways to cut it into two tokens of lower rank, the one
 * that may stand side by side. */
static void find_split(struct bpe *bpe, int32_t id) {
  const struct bpe_token *token = &bpe->tokens[id];
  bpe->splits[id] = (struct bpe_split){id, id};
  for (int32_t left = bpe->shorter[id]; left >= 0; left = bpe->shorter[left]) {
    const uint32_t cut = bpe->tokens[left].count;
    const int32_t right = find_token(bpe, (const char *)token->bytes + cut, token->count - cut);
    if (left > id || right < 0 || right > id || !are_compatible(bpe, left, right)) continue;
    bpe->splits[id] = (struct bpe_split){left, right};
    add_pair(bpe, bpe->splits[id], id);
    return;
  }
}

static enum status build_trie(struct bpe *bpe) {
  struct piece_trie_key *keys = calloc((size_t)bpe->count, sizeof *keys);
  CHECK(keys, STATUS_ENVIRONMENT, "out of memory: %d tokens", bpe->count);
  size_t count = 0;
  for (int32_t id = 0; id < bpe->count; id++)
    if (bpe->tokens[id].bytes)
      keys[count++] = (struct piece_trie_key){bpe->tokens[id].bytes, bpe->tokens[id].count, id, 0};
  const enum status status = piece_trie_build(&bpe->trie, keys, count);
  free(keys);
  TRY(status);
  return STATUS_OK;
}

static enum status check_bytes(const struct bpe *bpe) {
  for (int byte = 0; byte < 256; byte++) {
    const char one = (char)byte;
    CHECK(find_token(bpe, &one, 1) >= 0, STATUS_DAMAGED,
          "the vocabulary has no token for the byte %d; every single byte needs one", byte);
  }
  return STATUS_OK;
}

static enum status allocate(struct bpe *bpe) {
  uint32_t slots = 64;
  for (bpe->pair_shift = 58; slots < 2 * (uint32_t)bpe->count; slots *= 2) bpe->pair_shift--;
  bpe->pair_mask = slots - 1;
  bpe->pairs = malloc(slots * sizeof *bpe->pairs);
  bpe->lengths = malloc((size_t)bpe->count * sizeof *bpe->lengths);
  bpe->shorter = malloc((size_t)bpe->count * sizeof *bpe->shorter);
  bpe->splits = malloc((size_t)bpe->count * sizeof *bpe->splits);
  CHECK(bpe->pairs && bpe->lengths && bpe->shorter && bpe->splits, STATUS_ENVIRONMENT,
        "out of memory: merges of %d tokens", bpe->count);
  for (uint32_t i = 0; i < slots; i++) bpe->pairs[i] = NO_PAIR;
  for (int i = 0; i < 1 << BPE_ANSWER_BITS; i++) bpe->answers[i] = NO_PAIR;
  return STATUS_OK;
}

static enum status build(struct bpe *bpe) {
  TRY(build_trie(bpe));
  TRY(check_bytes(bpe));
  TRY(allocate(bpe));
  size_t length;
  for (int32_t id = 0; id < bpe->count; id++) {
    const struct bpe_token *token = &bpe->tokens[id];
    bpe->lengths[id] = token->count;
    bpe->shorter[id] =
        token->bytes ? longest_token(bpe, token->bytes, token->count - 1, &length) : -1;
  }
  for (int32_t id = 0; id < bpe->count; id++)
    if (bpe->tokens[id].bytes) find_split(bpe, id);
  return STATUS_OK;
}

enum status bpe_open(struct bpe *bpe, const struct bpe_token *tokens, int32_t count) {
  *bpe = (struct bpe){.tokens = tokens, .count = count};
  const enum status status = build(bpe);
  if (status != STATUS_OK) bpe_close(bpe);
  TRY(status);
  return STATUS_OK;
}

void bpe_close(struct bpe *bpe) {
  piece_trie_free(&bpe->trie);
  free(bpe->lengths);
  free(bpe->shorter);
  free(bpe->splits);
  free(bpe->pairs);
  free(bpe->dead);
  *bpe = (struct bpe){0};
}

/* --- encoding --------------------------------------------------------------------------------- */

static enum status clear_dead(struct bpe *bpe, size_t places) {
  const size_t words = places / 64 + 1;
  if (words > bpe->dead_words) {
    uint64_t *dead = realloc(bpe->dead, 2 * words * sizeof *dead);
    CHECK(dead, STATUS_ENVIRONMENT, "out of memory: a word of %zu bytes", places);
    bpe->dead = dead;
    bpe->dead_words = 2 * words;
  }
  memset(bpe->dead, 0, words * sizeof *bpe->dead);
  return STATUS_OK;
}

static inline bool is_dead(const struct bpe *bpe, size_t at) {
  return bpe->dead[at / 64] >> (at % 64) & 1;
}

static inline bool fits(struct bpe *bpe, int32_t last, int32_t token, size_t end) {
  return !is_dead(bpe, end) && (last < 0 || recall_compatible(bpe, last, token));
}

/* The longest token shorter than `token` that ends where something fits and suits its predecessor.
 */
static int32_t shorter_fitting(struct bpe *bpe, int32_t last, int32_t token, size_t at) {
  while ((token = bpe->shorter[token]) >= 0)
    if (fits(bpe, last, token, at + bpe->lengths[token])) return token;
  return -1;
}

/* Takes the last token back: `at` becomes its place. Returns it. */
static int32_t take_back(struct bpe *bpe, int32_t **end, size_t *at) {
  bpe->dead[*at / 64] |= (uint64_t)1 << (*at % 64);
  const int32_t token = *--*end;
  *at -= bpe->lengths[token];
  return token;
}

/* A word that is no token as a whole. A token that was taken back is followed by the next shorter
 * one. */
static enum status encode_parts(struct bpe *bpe, struct tokens *ids, const unsigned char *text,
                                size_t count) {
  int32_t *const first = ids->ids + ids->count, *end = first, last = -1;
  for (size_t at = 0; at < count;) {
    size_t length = 0;
    int32_t token = longest_token(bpe, text + at, count - at, &length);
    if (!fits(bpe, last, token, at + length)) {
      while ((token = shorter_fitting(bpe, last, token, at)) < 0) {
        CHECK(end > first, STATUS_INTERNAL, "a text of %zu bytes has no tokens", count);
        token = take_back(bpe, &end, &at);
        last = end > first ? end[-1] : -1;
      }
      length = bpe->lengths[token];
    }
    *end++ = last = token;
    at += length;
  }
  ids->count += (size_t)(end - first);
  return STATUS_OK;
}

enum status bpe_encode(struct bpe *bpe, struct tokens *ids, const char *bytes, size_t count) {
  const unsigned char *text = (const unsigned char *)bytes;
  size_t length = 0;
  const int32_t whole = longest_token(bpe, text, count, &length);
  if (length == count) return tokens_add(ids, &whole, 1);
  TRY(tokens_reserve(ids, count));
  TRY(clear_dead(bpe, count + 1));
  return encode_parts(bpe, ids, text, count);
}
