/* Measures of diversity of token rows. */
#ifndef STAGES_EVALUATE_DIVERSITY_H
#define STAGES_EVALUATE_DIVERSITY_H

#include <stdint.h>

#include "pipeline/base/error.h"

/* A set of rows; what lies beyond a row's length is not looked at. */
struct diversity_rows {
  const int32_t *tokens;  /* [count, positions], borrowed */
  const int32_t *lengths; /* [count], borrowed */
  int64_t count, positions;
};

/* Mean over rows of the entropy of the row's own unigrams, in nats: the convention of the papers on
 * flow and diffusion language models. Local. ENVIRONMENT when memory is out. */
enum status diversity_entropy(double *entropy, struct diversity_rows rows);

/* Different n-grams divided by all n-grams, pooled over rows (distinct-n, Li et al. 2016); n-grams
 * do not cross rows. Depends on how many rows there are: compare sets of one size. Local.
 * ENVIRONMENT when memory is out. */
enum status diversity_distinct(double *distinct, struct diversity_rows rows, int64_t n);

#endif
