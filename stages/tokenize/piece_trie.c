#include "stages/tokenize/piece_trie.h"

#include <stdlib.h>
#include <string.h>

enum { UNUSED = -1, LABELS = 256, SLACK = 2 * LABELS };

struct builder {
  struct piece_trie *trie;
  const struct piece_trie_key *keys;
  size_t capacity;
  size_t search_from; /* nodes before it are nearly all taken */
};

/* The keys [begin, end) share their first `depth` bytes, which lead to `node`. */
struct range {
  size_t begin, end, depth;
  int32_t node;
};

static int compare(const void *a, const void *b) {
  const struct piece_trie_key *x = a, *y = b;
  const size_t shared = x->count < y->count ? x->count : y->count;
  const int order = memcmp(x->bytes, y->bytes, shared);
  return order ? order : (x->count > y->count) - (x->count < y->count);
}

static enum status reserve(struct builder *builder, size_t needed) {
  if (needed <= builder->capacity) return STATUS_OK;
  size_t capacity = builder->capacity ? builder->capacity : 4096;
  while (capacity < needed) capacity *= 2;
  struct piece_trie *trie = builder->trie;
  struct piece_trie_node *nodes = realloc(trie->nodes, capacity * sizeof *nodes);
  if (nodes) trie->nodes = nodes;
  struct piece_trie_value *values = realloc(trie->values, capacity * sizeof *values);
  if (values) trie->values = values;
  CHECK(nodes && values, STATUS_ENVIRONMENT, "out of memory: a trie of %zu nodes", capacity);
  for (size_t i = builder->capacity; i < capacity; i++) {
    nodes[i] = (struct piece_trie_node){.base = 0, .parent = UNUSED};
    values[i] = (struct piece_trie_value){.id = -1};
  }
  builder->capacity = capacity;
  return STATUS_OK;
}

/* The different bytes at `depth` of a range of keys; returns how many. */
static size_t collect(const struct builder *builder, struct range range,
                      unsigned char labels[LABELS]) {
  size_t count = 0;
  for (size_t i = range.begin; i < range.end; i++) {
    const unsigned char label = builder->keys[i].bytes[range.depth];
    if (!count || labels[count - 1] != label) labels[count++] = label;
  }
  return count;
}

static bool fits(const struct builder *builder, size_t base, const unsigned char *labels,
                 size_t count) {
  for (size_t i = 0; i < count; i++)
    if (base + labels[i] == PIECE_TRIE_ROOT ||
        builder->trie->nodes[base + labels[i]].parent != UNUSED)
      return false;
  return true;
}

/* Finds the first base from `search_from` on under which all labels fall on free nodes. Where
 * nearly everything was taken, later searches need not look again. */
static enum status find_base(struct builder *builder, const unsigned char *labels, size_t count,
                             size_t *base) {
  size_t at = builder->search_from > labels[0] ? builder->search_from : (size_t)labels[0] + 1;
  const size_t begin = at;
  size_t taken = 0;
  for (;; at++) {
    TRY(reserve(builder, at + SLACK));
    *base = at - labels[0];
    if (builder->trie->nodes[at].parent != UNUSED)
      taken++;
    else if (fits(builder, *base, labels, count))
      break;
  }
  if (at > begin && taken * 20 >= (at - begin) * 19) builder->search_from = at;
  return STATUS_OK;
}

static enum status place(struct builder *builder, int32_t node, const unsigned char *labels,
                         size_t count) {
  size_t base = 0;
  TRY(find_base(builder, labels, count, &base));
  builder->trie->nodes[node].base |= (uint32_t)base;
  for (size_t i = 0; i < count; i++) builder->trie->nodes[base + labels[i]].parent = node;
  if (builder->trie->count < base + LABELS + 1) builder->trie->count = base + LABELS + 1;
  return STATUS_OK;
}

static enum status build(struct builder *builder, struct range range);

static enum status build_children(struct builder *builder, struct range range) {
  unsigned char labels[LABELS];
  const size_t count = collect(builder, range, labels);
  TRY(place(builder, range.node, labels, count));
  const int32_t base = (int32_t)(builder->trie->nodes[range.node].base & ~PIECE_TRIE_ENDS);
  for (size_t i = 0, begin = range.begin; i < count; i++) {
    size_t end = begin;
    while (end < range.end && builder->keys[end].bytes[range.depth] == labels[i]) end++;
    TRY(build(builder, (struct range){begin, end, range.depth + 1, base + labels[i]}));
    begin = end;
  }
  return STATUS_OK;
}

static enum status build(struct builder *builder, struct range range) {
  const struct piece_trie_key *first = &builder->keys[range.begin];
  if (first->count == range.depth) {
    builder->trie->nodes[range.node].base |= PIECE_TRIE_ENDS;
    builder->trie->values[range.node] = (struct piece_trie_value){first->id, first->score};
    range.begin++;
  }
  if (range.begin == range.end) return STATUS_OK;
  CHECK(builder->keys[range.begin].count > range.depth, STATUS_DAMAGED,
        "the piece '%.*s' is there twice", (int)first->count, (const char *)first->bytes);
  return build_children(builder, range);
}

static enum status check_lengths(const struct piece_trie_key *keys, size_t count) {
  for (size_t i = 0; i < count; i++)
    CHECK(keys[i].count <= PIECE_TRIE_LONGEST, STATUS_DAMAGED,
          "a piece of %zu bytes, the longest allowed has %d", (size_t)keys[i].count,
          PIECE_TRIE_LONGEST);
  return STATUS_OK;
}

enum status piece_trie_build(struct piece_trie *trie, struct piece_trie_key *keys, size_t count) {
  *trie = (struct piece_trie){0};
  TRY(check_lengths(keys, count));
  struct builder builder = {.trie = trie, .keys = keys, .search_from = 1};
  if (count) qsort(keys, count, sizeof *keys, compare);
  enum status status = reserve(&builder, SLACK);
  trie->count = LABELS + 1;
  if (status == STATUS_OK) trie->nodes[PIECE_TRIE_ROOT].parent = PIECE_TRIE_ROOT - 2;
  if (status == STATUS_OK && count) status = build(&builder, (struct range){0, count, 0, 0});
  if (status != STATUS_OK) piece_trie_free(trie);
  TRY(status);
  return STATUS_OK;
}

void piece_trie_free(struct piece_trie *trie) {
  free(trie->nodes);
  free(trie->values);
  *trie = (struct piece_trie){0};
}
