#include "stages/train/train_mix.h"

#include <stdlib.h>

#include "pipeline/artefact/manifest.h"

/* Reads "1200 0 35"; rows behind the first `limit` do not count. */
static size_t read_rows(int64_t rows[ORDER_CORPORA], const char *text, int64_t limit) {
  size_t count = 0;
  for (char *end; *text && count < ORDER_CORPORA; text = end) {
    const int64_t listed = strtoll(text, &end, 10);
    if (end == text) break;
    rows[count] = listed < limit ? listed : limit;
    limit -= rows[count++];
  }
  return count;
}

static enum status make(struct order_mix *mix, const struct manifest *manifest,
                        const struct option_reals *weights, int64_t limit) {
  int64_t rows[ORDER_CORPORA];
  const char *text;
  TRY(scalars_get_text(&manifest->facts, "train_rows_of_inputs", &text));
  const size_t count = read_rows(rows, text, limit);
  CHECK(weights->count == count, STATUS_MISMATCH,
        "mix has %zu weights, but node '%s' was made from %zu entries of `input`", weights->count,
        manifest->node, count);
  return order_mix_make(mix, weights->values, rows, (int64_t)count);
}

enum status train_mix_make(struct order_mix *mix, const char *tokens_folder,
                           const struct option_reals *weights, int64_t rows) {
  struct manifest manifest = {0};
  *mix = (struct order_mix){0};
  if (weights->count == 1) return STATUS_OK;
  TRY(manifest_read(&manifest, tokens_folder));
  const enum status status = make(mix, &manifest, weights, rows);
  manifest_free(&manifest);
  return status;
}
