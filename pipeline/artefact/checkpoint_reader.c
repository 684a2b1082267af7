#include "pipeline/artefact/checkpoint_reader.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_layout.h"
#include "pipeline/base/text.h"

static bool is_tensor_file(const char *path) {
  return strncmp(path, "tensors-", 8) == 0;
}

static enum status open_files(struct checkpoint_reader *reader) {
  const struct manifest *manifest = &reader->manifest;
  char path[PATH_MAX];
  reader->files = calloc((size_t)manifest->output_count + 1, sizeof *reader->files);
  CHECK(reader->files, STATUS_ENVIRONMENT, "out of memory: '%s'", reader->folder);
  for (int64_t i = 0; i < manifest->output_count; i++) {
    if (!is_tensor_file(manifest->outputs[i].path)) continue;
    TRY(manifest_join(path, reader->folder, manifest->outputs[i].path));
    TRY(safetensors_open(&reader->files[reader->file_count], path, &manifest->outputs[i].blocks));
    reader->file_count++;
  }
  return STATUS_OK;
}

/* Reads "first row/rows of the whole" of a piece. */
static enum status describe(struct checkpoint_reader_piece *piece) {
  char key[512];
  int end = 0;
  piece->rows = piece->whole_rows = checkpoint_layout_rows(piece->tensor);
  CHECK(snprintf(key, sizeof key, "piece.%s", piece->tensor->name) < (int)sizeof key,
        STATUS_DAMAGED, "'%s': the name of a tensor is too long", piece->file->source.path);
  const char *value = safetensors_value(piece->file, key);
  if (!value) return STATUS_OK;
  const int got =
      sscanf(value, "%" SCNd64 "/%" SCNd64 "%n", &piece->first_row, &piece->whole_rows, &end);
  CHECK(got == 2 && !value[end] && piece->first_row >= 0 &&
            piece->first_row <= piece->whole_rows - piece->rows,
        STATUS_DAMAGED, "'%s': '%s' = '%s' is not a place of %" PRId64 " rows",
        piece->file->source.path, key, value, piece->rows);
  return STATUS_OK;
}

static int by_name_and_row(const void *a, const void *b) {
  const struct checkpoint_reader_piece *x = a, *y = b;
  const int names = strcmp(x->tensor->name, y->tensor->name);
  return names ? names : (x->first_row > y->first_row) - (x->first_row < y->first_row);
}

static enum status gather_pieces(struct checkpoint_reader *reader) {
  int64_t count = 0;
  for (int64_t f = 0; f < reader->file_count; f++) count += reader->files[f].count;
  reader->pieces = calloc((size_t)count + 1, sizeof *reader->pieces);
  reader->tensors = calloc((size_t)count + 1, sizeof *reader->tensors);
  CHECK(reader->pieces && reader->tensors, STATUS_ENVIRONMENT, "out of memory: '%s'",
        reader->folder);
  for (int64_t f = 0; f < reader->file_count; f++) {
    for (int64_t i = 0; i < reader->files[f].count; i++) {
      struct checkpoint_reader_piece *piece = &reader->pieces[reader->piece_count++];
      piece->file = &reader->files[f];
      piece->tensor = &reader->files[f].tensors[i];
      TRY(describe(piece));
    }
  }
  if (count) qsort(reader->pieces, (size_t)count, sizeof *reader->pieces, by_name_and_row);
  return STATUS_OK;
}

static bool same_rows(const struct checkpoint_reader_piece *a,
                      const struct checkpoint_reader_piece *b) {
  bool same = a->whole_rows == b->whole_rows && a->tensor->dtype == b->tensor->dtype &&
              a->tensor->dimensions == b->tensor->dimensions;
  for (int i = 1; same && i < a->tensor->dimensions; i++)
    same = a->tensor->shape[i] == b->tensor->shape[i];
  return same;
}

/* Takes the pieces of the next tensor, which must follow one another to its end. */
static enum status cover(struct checkpoint_reader *reader, int64_t *at) {
  const struct checkpoint_reader_piece *first = &reader->pieces[*at];
  struct safetensors_tensor *tensor = &reader->tensors[reader->tensor_count++];
  int64_t row = 0;
  *tensor = *first->tensor;
  if (tensor->dimensions) tensor->shape[0] = first->whole_rows;
  tensor->bytes = safetensors_row_bytes(tensor) * (uint64_t)first->whole_rows;
  for (; *at < reader->piece_count; (*at)++) {
    const struct checkpoint_reader_piece *piece = &reader->pieces[*at];
    if (strcmp(piece->tensor->name, tensor->name) != 0) break;
    CHECK(same_rows(piece, first) && piece->first_row == row, STATUS_DAMAGED,
          "'%s': tensor '%s' has a piece at row %" PRId64 " where row %" PRId64 " was expected",
          piece->file->source.path, tensor->name, piece->first_row, row);
    row += piece->rows;
  }
  CHECK(row == first->whole_rows, STATUS_DAMAGED,
        "'%s': tensor '%s' ends at row %" PRId64 " of %" PRId64, reader->folder, tensor->name, row,
        first->whole_rows);
  return STATUS_OK;
}

static enum status open_all(struct checkpoint_reader *reader) {
  CHECK(reader->folder, STATUS_ENVIRONMENT, "out of memory");
  TRY(manifest_verify(&reader->manifest, reader->folder, false));
  TRY(open_files(reader));
  TRY(gather_pieces(reader));
  for (int64_t at = 0; at < reader->piece_count;) TRY(cover(reader, &at));
  return STATUS_OK;
}

enum status checkpoint_reader_take(struct checkpoint_reader *reader, const char *step_folder,
                                   struct manifest *manifest) {
  *reader = (struct checkpoint_reader){.folder = strdup(step_folder), .manifest = *manifest};
  *manifest = (struct manifest){0};
  const enum status status = open_all(reader);
  if (status != STATUS_OK) checkpoint_reader_close(reader);
  return status;
}

enum status checkpoint_reader_open(struct checkpoint_reader *reader, const char *step_folder) {
  struct manifest manifest = {0};
  TRY(manifest_read(&manifest, step_folder));
  return checkpoint_reader_take(reader, step_folder, &manifest);
}

void checkpoint_reader_close(struct checkpoint_reader *reader) {
  for (int64_t i = 0; i < reader->file_count; i++) safetensors_close(&reader->files[i]);
  free(reader->files);
  free(reader->pieces);
  free(reader->tensors);
  free(reader->folder);
  manifest_free(&reader->manifest);
  *reader = (struct checkpoint_reader){0};
}

const struct safetensors_tensor *checkpoint_reader_find(const struct checkpoint_reader *reader,
                                                        const char *name) {
  int64_t low = 0, high = reader->tensor_count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const int order = strcmp(reader->tensors[middle].name, name);
    if (order == 0) return &reader->tensors[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

/* The overlap of a piece with the wanted rows, if any. */
static enum status read_overlap(const struct checkpoint_reader_piece *piece,
                                struct source_cache *cache, struct checkpoint_rows rows,
                                unsigned char *out) {
  const int64_t begin = rows.first > piece->first_row ? rows.first : piece->first_row;
  const int64_t wanted = rows.first + rows.count, have = piece->first_row + piece->rows;
  const int64_t end = wanted < have ? wanted : have;
  if (begin >= end) return STATUS_OK;
  const uint64_t width = safetensors_row_bytes(piece->tensor);
  const struct blocks_range range = {.offset = (uint64_t)(begin - piece->first_row) * width,
                                     .bytes = (uint64_t)(end - begin) * width};
  return safetensors_read(piece->file, cache, piece->tensor,
                          out + (uint64_t)(begin - rows.first) * width, range);
}

enum status checkpoint_reader_read(const struct checkpoint_reader *reader,
                                   struct source_cache *cache,
                                   const struct safetensors_tensor *tensor,
                                   struct checkpoint_rows rows, void *out) {
  CHECK(rows.first >= 0 && rows.count >= 0 &&
            rows.first + rows.count <= checkpoint_layout_rows(tensor),
        STATUS_INTERNAL, "rows %" PRId64 " + %" PRId64 " of tensor '%s' do not exist", rows.first,
        rows.count, tensor->name);
  for (int64_t i = 0; i < reader->piece_count; i++)
    if (strcmp(reader->pieces[i].tensor->name, tensor->name) == 0)
      TRY(read_overlap(&reader->pieces[i], cache, rows, out));
  return STATUS_OK;
}
