/* Near-duplicates among documents: MinHash signatures of five-word shingles, cut into bands
 * (Broder 1997; arXiv 2107.06499). Two documents that share the key of a band are taken for nearly
 * the same: of documents with Jaccard similarity s that happens with probability
 * 1 - (1 - s^rows)^bands, which rises steeply about the threshold.
 */
#ifndef STAGES_TOKENIZE_NEAR_H
#define STAGES_TOKENIZE_NEAR_H

#include <stdint.h>

#include "pipeline/base/text.h"

enum { NEAR_HASHES = 128, NEAR_WORDS = 5 };

/* bands x rows <= NEAR_HASHES; bands = 0: near-duplicates are kept. */
struct near_bands {
  int64_t bands, rows;
};

/* The bands whose probability is steepest nearest to `threshold` in (0, 1); none for 0. Local. */
struct near_bands near_bands_for(double threshold);

/* The smallest value of each of NEAR_HASHES permutations over the shingles added so far. */
struct near_signature {
  uint32_t least[NEAR_HASHES];
};

void near_begin(struct near_signature *signature);

/* Adds the shingles of a text: words are runs of letters and digits, ASCII letters without case; a
 * text of fewer words is one shingle. Local. */
void near_add(struct near_signature *signature, const char *bytes, size_t count);

/* The key of a band. Local. */
uint64_t near_key(const struct near_signature *signature, struct near_bands bands, int64_t band);

/* Writes and reads the keys [documents, bands] of a part, FOLDER/parts/near-UUUUUUUU-PPPP. Reading
 * replaces `keys`. Local. WRITE; DAMAGED names the file. */
enum status near_write(const struct text *keys, const char *folder, int64_t unit, int64_t piece);
enum status near_read(struct text *keys, const char *folder, int64_t unit, int64_t piece);

#endif
