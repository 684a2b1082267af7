/* store.h: reading rows. */
#include <inttypes.h>
#include <string.h>

#include "pipeline/artefact/byte_planes.h"
#include "pipeline/artefact/convert.h"
#include "sharding/store.h"

enum { PIECE = 1 << 12, WIDEST = 8 };

/* One row: where its elements are. */
struct place {
  const struct store_column *column;
  struct source_cache *cache;
  const struct store_shard *shard;
  const struct safetensors_tensor *tensor;
  uint64_t offset; /* of the row's bytes in the tensor */
  int64_t elements;
};

static const struct store_shard *shard_of(const struct store *store, int64_t row) {
  int64_t low = 0, high = store->shard_count - 1; /* the last shard that begins at or before row */
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (store->shards[middle].first_row <= row)
      low = middle;
    else
      high = middle - 1;
  }
  return &store->shards[low];
}

static enum status locate_ragged(struct place *place, int64_t row) {
  const struct store_column *column = place->column;
  const struct safetensors *file = &place->shard->file;
  int64_t ends[2];
  const struct blocks_range range = {.offset = (uint64_t)row * sizeof *ends, .bytes = sizeof ends};
  TRY(safetensors_read(file, place->cache, safetensors_find(file, column->offsets_name), ends,
                       range));
  CHECK(ends[0] >= 0 && ends[1] >= ends[0] && ends[1] <= place->tensor->shape[0] &&
            (ends[1] - ends[0]) * column->unit <= column->width,
        STATUS_DAMAGED, "'%s': row %" PRId64 " of '%s' is [%" PRId64 ", %" PRId64 ")",
        file->source.path, row, column->name, ends[0], ends[1]);
  place->elements = (ends[1] - ends[0]) * column->unit;
  place->offset = (uint64_t)(ends[0] * column->unit) * dtype_bytes(column->dtype);
  return STATUS_OK;
}

static enum status locate(struct place *place, int64_t row) {
  const struct store *store = place->column->store;
  CHECK(row >= 0 && row < store->rows, STATUS_INTERNAL,
        "row %" PRId64 " was asked of '%s', which has %" PRId64, row, store->folder, store->rows);
  place->shard = shard_of(store, row);
  place->tensor = safetensors_find(&place->shard->file, place->column->name);
  row -= place->shard->first_row;
  if (place->column->ragged) return locate_ragged(place, row);
  place->elements = place->column->width;
  place->offset = (uint64_t)(row * place->elements) * dtype_bytes(place->column->dtype);
  return STATUS_OK;
}

/* Elements [first, first + count) of the row, in the column's type. */
static enum status read_plain(const struct place *place, void *out, int64_t first, int64_t count) {
  const uint64_t bytes = dtype_bytes(place->column->dtype);
  const struct blocks_range range = {.offset = place->offset + (uint64_t)first * bytes,
                                     .bytes = (uint64_t)count * bytes};
  return safetensors_read(&place->shard->file, place->cache, place->tensor, out, range);
}

/* The same through the byte-plane filter; count <= PIECE. */
static enum status read_planes(const struct place *place, void *out, int64_t first, int64_t count) {
  unsigned char planes[PIECE * WIDEST];
  const uint64_t width = dtype_bytes(place->column->dtype);
  for (uint64_t plane = 0; plane < width; plane++) {
    const struct blocks_range range = {.offset = place->offset + plane * (uint64_t)place->elements +
                                                 (uint64_t)first,
                                       .bytes = (uint64_t)count};
    TRY(safetensors_read(&place->shard->file, place->cache, place->tensor,
                         planes + plane * (uint64_t)count, range));
  }
  byte_planes_join(out, planes, (size_t)count, width);
  return STATUS_OK;
}

/* Writes elements [first, first + count) to their place in the output. */
typedef enum status deliver(const struct place *place, void *out, int64_t first, int64_t count);

static enum status read_piece(const struct place *place, void *out, int64_t first, int64_t count) {
  if (place->column->planes) return read_planes(place, out, first, count);
  return read_plain(place, out, first, count);
}

static enum status deliver_raw(const struct place *place, void *out, int64_t first, int64_t count) {
  const size_t width = dtype_bytes(place->column->dtype);
  return read_piece(place, (unsigned char *)out + (size_t)first * width, first, count);
}

static enum status deliver_int32(const struct place *place, void *out, int64_t first,
                                 int64_t count) {
  unsigned char piece[PIECE * WIDEST];
  TRY(read_piece(place, piece, first, count));
  return convert_to_int32((int32_t *)out + first, piece, place->column->dtype, count);
}

static enum status deliver_float(const struct place *place, void *out, int64_t first,
                                 int64_t count) {
  unsigned char piece[PIECE * WIDEST];
  TRY(read_piece(place, piece, first, count));
  return convert_to_float((float *)out + first, piece, place->column->dtype, count);
}

static enum status read_pieces(struct place *place, int64_t row, void *out,
                               deliver *deliver_piece) {
  TRY(locate(place, row));
  for (int64_t at = 0; at < place->elements; at += PIECE) {
    const int64_t left = place->elements - at;
    TRY(deliver_piece(place, out, at, left < PIECE ? left : PIECE));
  }
  return STATUS_OK;
}

/* The rows of a fixed column that share a block with the row at `place`. */
static struct blocks_range rows_at_risk(const struct place *place) {
  const struct safetensors *file = &place->shard->file;
  const uint64_t width = (uint64_t)place->elements * dtype_bytes(place->column->dtype);
  const uint64_t begin = file->header_bytes + place->tensor->offset;
  const uint64_t first = begin + place->offset, last = first + width - 1;
  const struct blocks_range before = source_block(&file->source, first);
  const struct blocks_range after = source_block(&file->source, last);
  const uint64_t from = before.offset > begin ? before.offset - begin : 0;
  uint64_t to = after.offset + after.bytes - begin;
  if (to > place->tensor->bytes) to = place->tensor->bytes;
  const uint64_t row = from / width;
  return (struct blocks_range){.offset = (uint64_t)place->shard->first_row + row,
                               .bytes = (to + width - 1) / width - row};
}

/* What is damaged, and which rows are lost with it (R-DAT-4). */
static enum status explain(const struct place *place, int64_t row) {
  if (!place->tensor || place->column->ragged || !place->elements)
    FAIL(STATUS_DAMAGED, "%s (while reading row %" PRId64 " of column '%s')", error_message(), row,
         place->column->name);
  const struct blocks_range rows = rows_at_risk(place);
  FAIL(STATUS_DAMAGED,
       "%s (while reading row %" PRId64 " of column '%s'; rows %" PRIu64 " to %" PRIu64
       " are stored there)",
       error_message(), row, place->column->name, rows.offset, rows.offset + rows.bytes - 1);
}

static enum status read_row(struct place *place, int64_t row, void *out, deliver *deliver_piece) {
  const enum status status = read_pieces(place, row, out, deliver_piece);
  return status == STATUS_DAMAGED ? explain(place, row) : status;
}

enum status store_read(const struct store_column *column, struct source_cache *cache, int64_t row,
                       void *out, int64_t *length) {
  struct place place = {.column = column, .cache = cache};
  TRY(read_row(&place, row, out, deliver_raw));
  if (length) *length = place.elements;
  return STATUS_OK;
}

enum status store_read_int32(const struct store_column *column, struct source_cache *cache,
                             int64_t row, int32_t *out, int64_t *length) {
  struct place place = {.column = column, .cache = cache};
  TRY(read_row(&place, row, out, deliver_int32));
  if (length) *length = place.elements;
  return STATUS_OK;
}

enum status store_read_float(const struct store_column *column, struct source_cache *cache,
                             int64_t row, float *out, int64_t *length) {
  struct place place = {.column = column, .cache = cache};
  TRY(read_row(&place, row, out, deliver_float));
  if (length) *length = place.elements;
  return STATUS_OK;
}

enum status store_read_bf16(const struct store_column *column, struct source_cache *cache,
                            int64_t row, bf16 *out, int64_t *length) {
  CHECK(column->dtype == DTYPE_BF16, STATUS_MISMATCH, "column '%s' of '%s' is %s, expected BF16",
        column->name, column->store->folder, dtype_name(column->dtype));
  return store_read(column, cache, row, out, length);
}
