#include "pipeline/artefact/checkpoint_compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_layout.h"
#include "pipeline/artefact/convert.h"

enum { PIECE_BYTES = 1 << 20 };

/* Both sides of a comparison of one tensor. */
struct pair {
  const struct checkpoint_reader *readers[2];
  const struct safetensors_tensor *tensors[2];
  struct source_cache caches[2];
  unsigned char *bytes[2]; /* owned; some rows */
  int64_t different;       /* elements */
  double largest;          /* difference of real numbers */
};

static bool is_real(enum dtype dtype) {
  return dtype == DTYPE_F16 || dtype == DTYPE_BF16 || dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

static enum status compare_elements(struct pair *pair, uint64_t bytes) {
  const enum dtype dtype = pair->tensors[0]->dtype;
  const size_t width = dtype_bytes(dtype);
  for (uint64_t at = 0; at < bytes; at += width) {
    float values[2];
    if (memcmp(pair->bytes[0] + at, pair->bytes[1] + at, width) == 0) continue;
    pair->different++;
    if (!is_real(dtype)) continue;
    for (int side = 0; side < 2; side++)
      TRY(convert_to_float(&values[side], pair->bytes[side] + at, dtype, 1));
    const double difference = fabs((double)values[0] - (double)values[1]);
    if (!(difference <= pair->largest)) pair->largest = difference;
  }
  return STATUS_OK;
}

static enum status reserve(struct pair *pair, uint64_t bytes) {
  for (int side = 0; side < 2; side++) {
    free(pair->bytes[side]);
    pair->bytes[side] = malloc(bytes ? bytes : 1);
    CHECK(pair->bytes[side], STATUS_ENVIRONMENT, "out of memory: rows of '%s'",
          pair->tensors[0]->name);
  }
  return STATUS_OK;
}

static enum status compare_rows(struct pair *pair) {
  const uint64_t row_bytes = safetensors_row_bytes(pair->tensors[0]);
  const int64_t rows = checkpoint_layout_rows(pair->tensors[0]);
  const int64_t take =
      row_bytes && row_bytes < PIECE_BYTES ? (int64_t)(PIECE_BYTES / row_bytes) : 1;
  pair->different = 0;
  pair->largest = 0;
  TRY(reserve(pair, (uint64_t)take * row_bytes));
  for (int64_t row = 0; row < rows; row += take) {
    const struct checkpoint_rows range = {.first = row,
                                          .count = rows - row < take ? rows - row : take};
    for (int side = 0; side < 2; side++)
      TRY(checkpoint_reader_read(pair->readers[side], &pair->caches[side], pair->tensors[side],
                                 range, pair->bytes[side]));
    TRY(compare_elements(pair, (uint64_t)range.count * row_bytes));
  }
  return STATUS_OK;
}

static bool same_kind(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
  return a->dtype == b->dtype && a->dimensions == b->dimensions &&
         memcmp(a->shape, b->shape, (size_t)a->dimensions * sizeof *a->shape) == 0;
}

static enum status compare_tensor(struct checkpoint_comparison *comparison, struct pair *pair) {
  char a[SAFETENSORS_DESCRIPTION], b[SAFETENSORS_DESCRIPTION];
  const struct safetensors_tensor *first = pair->tensors[0], *second = pair->tensors[1];
  comparison->tensors++;
  if (first && second && same_kind(first, second)) {
    TRY(compare_rows(pair));
    if (!pair->different) return STATUS_OK;
    comparison->different++;
    return text_format(&comparison->details,
                       "%s: %" PRId64 " of %" PRId64 " elements differ, by at most %.6g\n",
                       first->name, pair->different, safetensors_elements(first), pair->largest);
  }
  comparison->different++;
  return text_format(&comparison->details, "%s: %s, %s\n", first ? first->name : second->name,
                     first ? safetensors_describe(a, first) : "missing",
                     second ? safetensors_describe(b, second) : "missing");
}

static enum status compare_tensors(struct checkpoint_comparison *comparison, struct pair *pair) {
  const struct checkpoint_reader *a = pair->readers[0], *b = pair->readers[1];
  for (int64_t i = 0; i < a->tensor_count; i++) {
    pair->tensors[0] = &a->tensors[i];
    pair->tensors[1] = checkpoint_reader_find(b, a->tensors[i].name);
    TRY(compare_tensor(comparison, pair));
  }
  for (int64_t i = 0; i < b->tensor_count; i++) {
    pair->tensors[0] = checkpoint_reader_find(a, b->tensors[i].name);
    pair->tensors[1] = &b->tensors[i];
    if (!pair->tensors[0]) TRY(compare_tensor(comparison, pair));
  }
  return STATUS_OK;
}

static enum status add_scalar(struct text *text, const struct scalar *item) {
  if (!item) return text_add(text, "missing");
  if (item->kind == SCALAR_INTEGER) return text_format(text, "%" PRId64, item->integer);
  if (item->kind == SCALAR_REAL) return text_format(text, "%.17g", item->real);
  return text_add(text, item->text);
}

static enum status compare_scalar(struct text *details, const char *name, const struct scalar *a,
                                  const struct scalar *b) {
  struct text one = {0}, other = {0};
  enum status status = add_scalar(&one, a);
  if (status == STATUS_OK) status = add_scalar(&other, b);
  if (status == STATUS_OK && strcmp(one.bytes, other.bytes) != 0)
    status = text_format(details, "state %s: %s, %s\n", name, one.bytes, other.bytes);
  text_free(&one);
  text_free(&other);
  return status;
}

static enum status compare_states(struct text *details, const struct scalars *a,
                                  const struct scalars *b) {
  for (int64_t i = 0; i < a->count; i++) {
    const char *name = a->items[i].name;
    TRY(compare_scalar(details, name, &a->items[i], scalars_find(b, name)));
  }
  for (int64_t i = 0; i < b->count; i++) {
    const char *name = b->items[i].name;
    if (!scalars_find(a, name)) TRY(compare_scalar(details, name, NULL, &b->items[i]));
  }
  return STATUS_OK;
}

enum status checkpoint_compare(struct checkpoint_comparison *comparison,
                               const struct checkpoint_reader *a,
                               const struct checkpoint_reader *b) {
  struct pair pair = {.readers = {a, b}};
  *comparison = (struct checkpoint_comparison){0};
  enum status status = text_add(&comparison->details, "");
  if (status == STATUS_OK) status = compare_tensors(comparison, &pair);
  if (status == STATUS_OK)
    status = compare_states(&comparison->details, &a->manifest.state, &b->manifest.state);
  for (int side = 0; side < 2; side++) {
    source_cache_free(&pair.caches[side]);
    free(pair.bytes[side]);
  }
  if (status != STATUS_OK) text_free(&comparison->details);
  return status;
}
