/* Reads, counts and encodes the documents of one unit into parts. */
#ifndef STAGES_TOKENIZE_ENCODE_UNIT_H
#define STAGES_TOKENIZE_ENCODE_UNIT_H

#include "stages/tokenize/inputs.h"
#include "stages/tokenize/near.h"
#include "stages/tokenize/parts.h"

struct encode_unit {
  const struct inputs *inputs;   /* borrowed */
  const struct options *options; /* what documents are; borrowed */
  struct tokenizer *tokenizer;   /* borrowed */
  const char *folder;            /* of the node, with its folder parts; borrowed */
  struct hash128 key;            /* of the parts */
  struct near_bands bands;       /* of near-duplicates */
};

/* Memory that encoding uses again for one unit after another. Zero-initialise. */
struct encode_unit_room {
  struct part part;
  struct tokens ids;               /* of one document */
  struct text decoded;             /* of one text */
  struct near_signature signature; /* of one document */
  struct text keys;                /* of the part's documents, near.h */
};

void encode_unit_room_free(struct encode_unit_room *room);

/* The key of the parts that a tokenizer makes from these inputs. Local. */
struct hash128 encode_unit_key(const struct inputs *inputs, const struct options *options,
                               const struct tokenizer *tokenizer);

/* Number of parts of a unit that is finished, 0 when it is not. Looks at their headers, or
 * (`thoroughly`) at all of them. Local. */
int64_t encode_unit_parts(const struct encode_unit *work, int64_t unit, bool thoroughly);

/* Encodes one unit and writes its parts. Local. As inputs_read and part_write. */
enum status encode_unit_run(const struct encode_unit *work, int64_t unit,
                            struct encode_unit_room *room);

#endif
