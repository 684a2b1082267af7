#include "pipeline/artefact/checkpoint_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors_writer.h"

enum { PAGE_BYTES = 4096 }; /* blocks of data share no page, so several hosts may write a file */

static int by_name(const void *a, const void *b) {
  const struct safetensors_tensor *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

/* Falling element size keeps every piece aligned; the name makes the order complete. */
static int by_width_and_name(const void *a, const void *b) {
  const struct safetensors_tensor *const *x = a, *const *y = b;
  const size_t wide_x = dtype_bytes((*x)->dtype), wide_y = dtype_bytes((*y)->dtype);
  if (wide_x != wide_y) return wide_x > wide_y ? -1 : 1;
  return by_name(a, b);
}

int64_t checkpoint_layout_rows(const struct safetensors_tensor *tensor) {
  return tensor->dimensions ? tensor->shape[0] : 1;
}

static enum status grow(void **items, int64_t count, size_t bytes) {
  if (count & (count - 1)) return STATUS_OK; /* full at powers of two */
  void *larger = realloc(*items, (size_t)(count ? 2 * count : 1) * bytes);
  CHECK(larger, STATUS_ENVIRONMENT, "out of memory: the layout of a checkpoint");
  *items = larger;
  return STATUS_OK;
}

static enum status add_file(struct checkpoint_layout *layout) {
  TRY(grow((void **)&layout->files, layout->file_count, sizeof *layout->files));
  struct checkpoint_file *file = &layout->files[layout->file_count];
  *file = (struct checkpoint_file){.first_piece = layout->piece_count};
  snprintf(file->name, sizeof file->name, "tensors-%05" PRId64 ".safetensors", layout->file_count);
  layout->file_count++;
  return STATUS_OK;
}

static enum status add_piece(struct checkpoint_layout *layout, struct checkpoint_piece piece) {
  struct checkpoint_file *file = &layout->files[layout->file_count - 1];
  TRY(grow((void **)&layout->pieces, layout->piece_count, sizeof *layout->pieces));
  piece.file = layout->file_count - 1;
  piece.offset = file->data_bytes;
  layout->pieces[layout->piece_count++] = piece;
  file->data_bytes += piece.bytes;
  file->piece_count++;
  return STATUS_OK;
}

/* Cuts a tensor by rows where files become full; a row is never cut. */
static enum status place_tensor(struct checkpoint_layout *layout,
                                const struct safetensors_tensor *tensor, int64_t index,
                                uint64_t file_bytes) {
  const int64_t rows = checkpoint_layout_rows(tensor);
  const uint64_t row_bytes = safetensors_row_bytes(tensor);
  int64_t first = 0;
  do {
    struct checkpoint_file *file = &layout->files[layout->file_count - 1];
    const uint64_t room = file->data_bytes < file_bytes ? file_bytes - file->data_bytes : 0;
    int64_t take = rows - first;
    if (row_bytes && (uint64_t)take > room / row_bytes) take = (int64_t)(room / row_bytes);
    if (take == 0 && first < rows && file->data_bytes == 0) take = 1; /* a row above the limit */
    if (take > 0 || rows == 0)
      TRY(add_piece(layout, (struct checkpoint_piece){.tensor = index,
                                                      .first_row = first,
                                                      .rows = take,
                                                      .bytes = (uint64_t)take * row_bytes}));
    first += take;
    if (first < rows) TRY(add_file(layout));
  } while (first < rows);
  return STATUS_OK;
}

/* The tensors and metadata of one file. */
struct description {
  struct safetensors_tensor *tensors;
  struct safetensors_pair *pairs;
  struct text *texts; /* key and value of each pair */
  int64_t pair_count;
};

static enum status describe_piece(struct description *description, int64_t i,
                                  const struct checkpoint_piece *piece,
                                  const struct safetensors_tensor *whole) {
  struct safetensors_tensor *tensor = &description->tensors[i];
  *tensor = *whole;
  if (piece->rows == checkpoint_layout_rows(whole)) return STATUS_OK;
  tensor->shape[0] = piece->rows;
  struct text *key = &description->texts[2 * i], *value = &description->texts[2 * i + 1];
  TRY(text_format(key, "piece.%s", whole->name));
  TRY(text_format(value, "%" PRId64 "/%" PRId64, piece->first_row, whole->shape[0]));
  description->pairs[description->pair_count++] =
      (struct safetensors_pair){.key = key->bytes, .value = value->bytes};
  return STATUS_OK;
}

static enum status compose(struct checkpoint_file *file, struct description *description,
                           const struct checkpoint_layout *layout,
                           const struct safetensors_tensor *tensors) {
  CHECK(description->tensors && description->pairs && description->texts, STATUS_ENVIRONMENT,
        "out of memory: the header of '%s'", file->name);
  for (int64_t i = 0; i < file->piece_count; i++) {
    const struct checkpoint_piece *piece = &layout->pieces[file->first_piece + i];
    TRY(describe_piece(description, i, piece, &tensors[piece->tensor]));
  }
  const struct safetensors_layout described = {.path = file->name,
                                               .alignment = PAGE_BYTES,
                                               .tensors = description->tensors,
                                               .count = file->piece_count,
                                               .pairs = description->pairs,
                                               .pair_count = description->pair_count};
  return safetensors_writer_compose(&file->header, &file->hash_at, &described);
}

static enum status compose_file(struct checkpoint_file *file,
                                const struct checkpoint_layout *layout,
                                const struct safetensors_tensor *tensors) {
  const size_t count = (size_t)file->piece_count + 1;
  struct description description = {.tensors = calloc(count, sizeof *description.tensors),
                                    .pairs = calloc(count, sizeof *description.pairs),
                                    .texts = calloc(2 * count, sizeof *description.texts)};
  const enum status status = compose(file, &description, layout, tensors);
  for (size_t i = 0; description.texts && i < 2 * count; i++) text_free(&description.texts[i]);
  free(description.tensors);
  free(description.pairs);
  free(description.texts);
  return status;
}

static enum status make(struct checkpoint_layout *layout, const struct safetensors_tensor **sorted,
                        const struct safetensors_tensor *tensors, int64_t count,
                        uint64_t file_bytes) {
  CHECK(sorted, STATUS_ENVIRONMENT, "out of memory: %" PRId64 " tensors", count);
  for (int64_t i = 0; i < count; i++) sorted[i] = &tensors[i];
  if (count) qsort(sorted, (size_t)count, sizeof *sorted, by_name);
  for (int64_t i = 1; i < count; i++)
    CHECK(strcmp(sorted[i - 1]->name, sorted[i]->name) != 0, STATUS_MISMATCH,
          "two tensors of a checkpoint are called '%s'", sorted[i]->name);
  if (count) qsort(sorted, (size_t)count, sizeof *sorted, by_width_and_name);
  TRY(add_file(layout));
  for (int64_t i = 0; i < count; i++)
    TRY(place_tensor(layout, sorted[i], sorted[i] - tensors, file_bytes));
  for (int64_t i = 0; i < layout->file_count; i++)
    TRY(compose_file(&layout->files[i], layout, tensors));
  return STATUS_OK;
}

enum status checkpoint_layout_make(struct checkpoint_layout *layout,
                                   const struct safetensors_tensor *tensors, int64_t count,
                                   uint64_t file_bytes) {
  const struct safetensors_tensor **sorted = calloc((size_t)count + 1, sizeof *sorted);
  *layout = (struct checkpoint_layout){0};
  const enum status status = make(layout, sorted, tensors, count, file_bytes);
  free(sorted);
  if (status != STATUS_OK) checkpoint_layout_free(layout);
  return status;
}

void checkpoint_layout_free(struct checkpoint_layout *layout) {
  for (int64_t i = 0; i < layout->file_count; i++) text_free(&layout->files[i].header);
  free(layout->files);
  free(layout->pieces);
  *layout = (struct checkpoint_layout){0};
}
