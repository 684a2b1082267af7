/* Parts: the encoded documents of a unit of work, between encoding and packing.
 *
 * A unit gives one part, or several when it is large; they lie in FOLDER/parts/UUUUUUUU-PPPP and
 * are the journal of the node: each is written in one move, the last of a unit says so, and a unit
 * whose parts are all there is not read again. Nothing in them depends on ranks.
 */
#ifndef STAGES_TOKENIZE_PARTS_H
#define STAGES_TOKENIZE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"
#include "stages/tokenize/tally.h"
#include "stages/tokenize/tokenizer.h"

enum { PART_TOKENS = 1 << 20 }; /* a part is ended when it holds as many */

struct part_document {
  struct hash128 hash; /* of its bytes */
  int64_t tokens;
  int64_t source; /* of them, those of a pair's source, which come first; 0: no pair */
  int64_t bytes;
};

struct part {
  struct hash128 key; /* of what decides the content: tokenizer, input, division */
  int64_t unit, piece;
  int64_t last; /* 1: the unit's last part */
  struct tally tally;
  int64_t width;         /* bytes of a token, 2 or 4: store_writer_token_type */
  struct text documents; /* array of struct part_document, owned */
  struct text tokens;    /* of all documents, one after another, `width` bytes each; owned */
};

/* Number of documents, of tokens, and the i-th document, borrowed. Local. */
int64_t part_count(const struct part *part);
int64_t part_tokens(const struct part *part);
const struct part_document *part_document(const struct part *part, int64_t i);

/* Adds a document and its document.tokens ids. Local. */
enum status part_add(struct part *part, struct part_document document, const int32_t *ids);

/* Writes a part under FOLDER/parts, which exists. It outlives a killed process; after a failure of
 * the machine it may be damaged, which a thorough look finds. Local. WRITE on failure. */
enum status part_write(const struct part *part, const char *folder);

/* Whether part (unit, piece) of this key is there; *last receives its mark. A part of another key
 * or a damaged one counts as missing. Reads the header alone, or (`thoroughly`) everything. Local.
 */
bool part_exists(struct part *part, const char *folder, bool thoroughly, bool *last);

/* Number of parts of a unit that is finished, 0 when it is not; looks as part_exists does. Local.
 */
int64_t parts_of_unit(const char *folder, struct hash128 key, int64_t unit, bool thoroughly);

/* Reads part (part->unit, part->piece) into the memory that `part` has, and checks it against its
 * hash and part->key; the tokens only when `with_tokens`. Local. DAMAGED names the file and what to
 * do. */
enum status part_read(struct part *part, const char *folder, bool with_tokens);

/* Empties for the next part; frees. Local. */
void part_clear(struct part *part);
void part_free(struct part *part);

#endif
