/* Byte-level BPE: the tokens that merging neighbours by rank, lowest first, gives for a string of
 * bytes, found from left to right in linear time.
 *
 * The token sequence of every prefix of a text is the sequence of a shorter prefix plus one token,
 * and two tokens may stand side by side exactly when merging their joined bytes gives them again.
 * So the longest token that is compatible with its predecessor is taken, and taken back when
 * nothing fits behind it; no place is tried twice. (The method of the crate `bpe` of
 * github/rust-gems; the proof is in its README.)
 */
#ifndef STAGES_TOKENIZE_BPE_H
#define STAGES_TOKENIZE_BPE_H

#include "stages/tokenize/piece_trie.h"
#include "stages/tokenize/tokenizer.h"

struct bpe_token {
  const unsigned char *bytes; /* borrowed; NULL: no token has this rank */
  uint32_t count;
};

/* The two tokens that a token is merged from; itself twice for one that is not. */
struct bpe_split {
  int32_t left, right;
};

enum { BPE_ANSWER_BITS = 13 };
enum { BPE_ID_BITS = 21, BPE_MAX_TOKENS = (1 << BPE_ID_BITS) - 1 };

struct bpe {
  const struct bpe_token *tokens; /* [count], borrowed; the index is rank and id */
  int32_t count;
  struct piece_trie trie; /* of all tokens */
  uint32_t *lengths;      /* [count], owned: bytes of each token */
  int32_t *shorter;       /* [count], owned: the longest token that is a proper prefix; -1: none */
  struct bpe_split *splits; /* [count], owned */
  uint64_t *pairs;     /* owned; left, right and joined token, BPE_ID_BITS each; open addressing */
  unsigned pair_shift; /* of a hash of 64 bits, to the first slot of a pair */
  uint32_t pair_mask;
  uint64_t answers[1 << BPE_ANSWER_BITS]; /* pairs, and whether they may stand side by side */
  uint64_t *dead; /* owned; scratch: a bit for each place, set where nothing fits behind it */
  size_t dead_words;
};

/* Makes the tables of at most BPE_MAX_TOKENS tokens, which must outlive it. Local. DAMAGED when a
 * single byte has no token or a token is there twice, ENVIRONMENT when memory is out. */
enum status bpe_open(struct bpe *bpe, const struct bpe_token *tokens, int32_t count);
void bpe_close(struct bpe *bpe);

/* Appends the tokens of one pre-token; one that is a token as a whole is that token, whatever
 * merging would give. Local. ENVIRONMENT when memory is out. */
enum status bpe_encode(struct bpe *bpe, struct tokens *ids, const char *bytes, size_t count);

#endif
