/* One unit of a set of samples as a shard of a store. */
#ifndef STAGES_SAMPLE_UNIT_WRITER_H
#define STAGES_SAMPLE_UNIT_WRITER_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "sharding/split.h"
#include "sharding/store_writer.h"
#include "stages/flow/token_rows.h"
#include "stages/tokenize/tokenizer.h"

struct unit_texts {
  int64_t count, positions;
  const int32_t *tokens;          /* [count, positions] */
  const float *confidence;        /* [count, positions], or NULL */
  const int32_t *calls;           /* [count], or NULL */
  const struct token_rows *pairs; /* NULL: whole rows are written; otherwise targets, which end at
                                     their end token, beside their sources and references */
  int32_t end;                    /* id of the end token */
  const struct tokenizer *tokenizer; /* borrowed */
};

/* Writes the shard that `options` names (folder, name, tag, index, pairs of metadata; columns are
 * set here): "tokens", "text", and where there are such "confidence", "calls", "source" and
 * "reference". `scratch` is used for texts. Local. WRITE on failure. */
enum status unit_write(const struct unit_texts *texts, const struct store_writer_options *options,
                       struct text *scratch);

#endif
