#include "stages/tokenize/bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- pairs ------------------------------------------------------------------------------------ */

static uint32_t pair_slot(const struct bpe *bpe, int32_t left, int32_t right) {
  const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & bpe->pair_mask;
}

/* The token that two tokens are merged into, or INT32_MAX. */
static int32_t find_pair(const struct bpe *bpe, int32_t left, int32_t right) {
  for (uint32_t at = pair_slot(bpe, left, right);; at = (at + 1) & bpe->pair_mask) {
    const struct bpe_pair *pair = &bpe->pairs[at];
    if (pair->left < 0) return INT32_MAX;
    if (pair->left == left && pair->right == right) return pair->joined;
  }
}

static void add_pair(struct bpe *bpe, struct bpe_pair pair) {
  uint32_t at = pair_slot(bpe, pair.left, pair.right);
  while (bpe->pairs[at].left >= 0) at = (at + 1) & bpe->pair_mask;
  bpe->pairs[at] = pair;
}

/* Whether merging the bytes of both gives these two tokens. Undoes merges on both sides of the
 * border, the later one first: at no time may a merge across the border have come before the one
 * that was undone. */
static bool are_compatible(const struct bpe *bpe, int32_t left, int32_t right) {
  int32_t limit = INT32_MAX; /* merges of a lower rank came before what is still undone */
  while (find_pair(bpe, left, right) >= limit) {
    const int32_t inner_left = bpe->splits[left].right, inner_right = bpe->splits[right].left;
    const bool left_first = inner_left != left && (left > right || inner_right == right);
    if (inner_left == left && inner_right == right) return true;
    limit = left_first ? left : right + 1; /* of equal ranks the left one comes first */
    if (left_first)
      left = inner_left;
    else
      right = inner_right;
  }
  return false;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* The token that is exactly these bytes, or -1. */
static int32_t find_token(const struct bpe *bpe, const char *bytes, size_t count) {
  int32_t node = PIECE_TRIE_ROOT;
  for (size_t i = 0; i < count && node >= 0; i++)
    node = piece_trie_step(&bpe->trie, node, (unsigned char)bytes[i]);
  return node >= 0 ? piece_trie_id(&bpe->trie, node) : -1;
}

/* The longest token that `bytes` begins with, of at most `count` bytes; -1: none. */
static int32_t longest_token(const struct bpe *bpe, const unsigned char *bytes, size_t count) {
  int32_t node = PIECE_TRIE_ROOT, longest = -1;
  for (size_t i = 0; i < count; i++) {
    node = piece_trie_step(&bpe->trie, node, bytes[i]);
    if (node < 0) break;
    if (piece_trie_ends(&bpe->trie, node)) longest = node;
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
    add_pair(bpe, (struct bpe_pair){left, right, id});
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
  while (slots < 2 * (uint32_t)bpe->count) slots *= 2;
  bpe->pair_mask = slots - 1;
  bpe->pairs = malloc(slots * sizeof *bpe->pairs);
  bpe->shorter = malloc((size_t)bpe->count * sizeof *bpe->shorter);
  bpe->splits = malloc((size_t)bpe->count * sizeof *bpe->splits);
  CHECK(bpe->pairs && bpe->shorter && bpe->splits, STATUS_ENVIRONMENT,
        "out of memory: merges of %d tokens", bpe->count);
  for (uint32_t i = 0; i < slots; i++) bpe->pairs[i].left = -1;
  return STATUS_OK;
}

static enum status build(struct bpe *bpe) {
  TRY(build_trie(bpe));
  TRY(check_bytes(bpe));
  TRY(allocate(bpe));
  for (int32_t id = 0; id < bpe->count; id++) {
    const struct bpe_token *token = &bpe->tokens[id];
    bpe->shorter[id] = token->bytes ? longest_token(bpe, token->bytes, token->count - 1) : -1;
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
  free(bpe->shorter);
  free(bpe->splits);
  free(bpe->pairs);
  free(bpe->dead);
  *bpe = (struct bpe){0};
}

/* --- encoding --------------------------------------------------------------------------------- */

static enum status clear_dead(struct bpe *bpe, size_t bytes) {
  if (bytes > bpe->dead_bytes) {
    unsigned char *dead = realloc(bpe->dead, 2 * bytes);
    CHECK(dead, STATUS_ENVIRONMENT, "out of memory: a word of %zu bytes", bytes);
    bpe->dead = dead;
    bpe->dead_bytes = 2 * bytes;
  }
  memset(bpe->dead, 0, bytes);
  return STATUS_OK;
}

/* The longest token from `token` down that ends where something fits and suits its predecessor. */
static int32_t fitting(const struct bpe *bpe, int32_t last, int32_t token, size_t at) {
  for (; token >= 0; token = bpe->shorter[token])
    if (!bpe->dead[at + bpe->tokens[token].count] && (last < 0 || are_compatible(bpe, last, token)))
      return token;
  return -1;
}

enum status bpe_encode(struct bpe *bpe, struct tokens *ids, const char *bytes, size_t count) {
  const unsigned char *text = (const unsigned char *)bytes;
  const size_t first = ids->count;
  TRY(tokens_reserve(ids, count));
  TRY(clear_dead(bpe, count + 1));
  size_t at = 0;
  int32_t next = longest_token(bpe, text, count);
  if (next >= 0 && bpe->tokens[next].count == count) return tokens_add(ids, &next, 1);
  while (at < count) {
    const int32_t last = ids->count > first ? ids->ids[ids->count - 1] : -1;
    const int32_t token = fitting(bpe, last, next, at);
    if (token >= 0) {
      ids->ids[ids->count++] = token;
      at += bpe->tokens[token].count;
      next = longest_token(bpe, text + at, count - at);
    } else {
      CHECK(last >= 0, STATUS_INTERNAL, "a text of %zu bytes has no tokens", count);
      bpe->dead[at] = 1;
      ids->count--;
      at -= bpe->tokens[last].count;
      next = last;
    }
  }
  return STATUS_OK;
}
