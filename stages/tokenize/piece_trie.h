/* A trie of byte strings with an id and a score each, as a double array: the child of node n under
 * byte c is n's base + c, if that node's parent is n.
 */
#ifndef STAGES_TOKENIZE_PIECE_TRIE_H
#define STAGES_TOKENIZE_PIECE_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum { PIECE_TRIE_ROOT = 0, PIECE_TRIE_NONE = -1 };

struct piece_trie_node {
  uint32_t base; /* PIECE_TRIE_ENDS is set when a string ends here */
  int32_t parent;
};

/* Apart from the nodes, so that walking touches little memory. */
struct piece_trie_value {
  int32_t id; /* of the string that ends at the node; -1: none */
  float score;
};

#define PIECE_TRIE_ENDS 0x80000000u

struct piece_trie {
  struct piece_trie_node *nodes;   /* owned; 256 more than any base, so that no step leaves it */
  struct piece_trie_value *values; /* owned; of each node */
  size_t count;
};

struct piece_trie_key {
  const unsigned char *bytes; /* borrowed */
  size_t count;
  int32_t id;
  float score;
};

enum { PIECE_TRIE_LONGEST = 4096 }; /* bytes of a key: building goes as deep as the longest */

/* Builds the trie of different, non-empty keys; sorts `keys`. Local. ENVIRONMENT when memory is
 * out, DAMAGED when a key is there twice or longer than PIECE_TRIE_LONGEST. */
enum status piece_trie_build(struct piece_trie *trie, struct piece_trie_key *keys, size_t count);
void piece_trie_free(struct piece_trie *trie);

/* The child of `node` under `byte`, or PIECE_TRIE_NONE. Local. */
static inline int32_t piece_trie_step(const struct piece_trie *trie, int32_t node,
                                      unsigned char byte) {
  const int32_t child = (int32_t)(trie->nodes[node].base & ~PIECE_TRIE_ENDS) + byte;
  return trie->nodes[child].parent == node ? child : PIECE_TRIE_NONE;
}

/* Whether a string ends at `node`. Local. */
static inline bool piece_trie_ends(const struct piece_trie *trie, int32_t node) {
  return trie->nodes[node].base >= PIECE_TRIE_ENDS;
}

/* The id of the string that ends at `node`, or -1. Local. */
static inline int32_t piece_trie_id(const struct piece_trie *trie, int32_t node) {
  return piece_trie_ends(trie, node) ? trie->values[node].id : -1;
}

#endif
