/* The tokenizer of a node: read from a file, another node's, or trained on the node's own training
 * documents. */
#ifndef STAGES_TOKENIZE_VOCABULARY_H
#define STAGES_TOKENIZE_VOCABULARY_H

#include "sharding/comm.h"
#include "stages/tokenize/inputs.h"
#include "stages/tokenize/tokenizer.h"

enum { VOCABULARY_SAMPLE_BYTES = 6 << 20 }; /* of text that a vocabulary is trained on */

struct vocabulary {
  const struct inputs *inputs;   /* borrowed */
  const struct options *options; /* borrowed */
  const char *folder;            /* of the node; borrowed */
  const char *same;              /* of the node that has the same tokenizer; NULL: none; borrowed */
};

/* Opens the tokenizer that the options name, and keeps a copy in the node's folder (tokenizer.json,
 * tokenizer.model). One that an earlier attempt left there is taken again. Held-out documents are
 * not trained on. The result depends on the input and the options, never on ranks. Collective.
 * MISMATCH when the text cannot give such a vocabulary, and as tokenizer_open. */
enum status vocabulary_open(struct tokenizer **tokenizer, const struct vocabulary *vocabulary,
                            struct comm *comm);

#endif
