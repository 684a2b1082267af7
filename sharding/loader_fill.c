#include "sharding/loader_fill.h"

#include <stdlib.h>
#include <string.h>

static enum status check_field(const struct loader_field *field) {
  const enum dtype dtype = field->dtype;
  CHECK(dtype == DTYPE_I32 || dtype == DTYPE_F32 || dtype == DTYPE_BF16, STATUS_INTERNAL,
        "column '%s' cannot be loaded as %s", field->column->name, dtype_name(dtype));
  CHECK(field->elements > 0, STATUS_INTERNAL, "column '%s': slots of no elements",
        field->column->name);
  return STATUS_OK;
}

enum status loader_fill_init(struct loader_fill *fill, const struct loader_options *options) {
  int64_t longest = 1;
  const struct order *order = &options->order;
  CHECK(order->rows >= 1 && options->first_slot >= 0 && options->slots >= 0 &&
            options->first_slot + options->slots <= order->batch,
        STATUS_MISMATCH, "slots %lld to %lld are not within a batch of %lld over %lld rows",
        (long long)options->first_slot, (long long)(options->first_slot + options->slots),
        (long long)order->batch, (long long)order->rows);
  CHECK(options->field_count <= LOADER_FIELDS, STATUS_INTERNAL, "more than %d fields",
        LOADER_FIELDS);
  for (int64_t i = 0; i < options->field_count; i++) {
    if (!options->fields[i].column) continue;
    TRY(check_field(&options->fields[i]));
    if (options->fields[i].column->width > longest) longest = options->fields[i].column->width;
  }
  fill->row = malloc((size_t)longest * sizeof(float));
  CHECK(fill->row, STATUS_ENVIRONMENT, "out of memory: a row of %lld elements", (long long)longest);
  return STATUS_OK;
}

void loader_fill_free(struct loader_fill *fill) {
  source_cache_free(&fill->cache);
  free(fill->row);
  *fill = (struct loader_fill){0};
}

enum status loader_fill_allocate(struct loader_batch *batch, const struct loader_options *options) {
  const size_t slots = (size_t)options->slots + 1;
  batch->samples = calloc(slots, sizeof *batch->samples);
  CHECK(batch->samples, STATUS_ENVIRONMENT, "out of memory: a batch");
  for (int64_t i = 0; i < options->field_count; i++) {
    const struct loader_field *field = &options->fields[i];
    if (!field->column) continue;
    batch->fields[i] = calloc(slots, (size_t)field->elements * dtype_bytes(field->dtype));
    batch->lengths[i] = calloc(slots, sizeof *batch->lengths[i]);
    CHECK(batch->fields[i] && batch->lengths[i], STATUS_ENVIRONMENT,
          "out of memory: %lld rows of column '%s'", (long long)options->slots,
          field->column->name);
  }
  return STATUS_OK;
}

void loader_fill_release(struct loader_batch *batch) {
  for (int i = 0; i < LOADER_FIELDS; i++) {
    free(batch->fields[i]);
    free(batch->lengths[i]);
  }
  free(batch->samples);
  *batch = (struct loader_batch){0};
}

static void pad(const struct loader_field *field, void *slot, int64_t from) {
  for (int64_t i = from; i < field->elements; i++) {
    if (field->dtype == DTYPE_I32) ((int32_t *)slot)[i] = field->pad;
    if (field->dtype == DTYPE_F32) ((float *)slot)[i] = (float)field->pad;
    if (field->dtype == DTYPE_BF16) ((bf16 *)slot)[i] = bf16_from_float((float)field->pad);
  }
}

static enum status read_row(struct loader_fill *fill, const struct loader_field *field, int64_t row,
                            int64_t *length) {
  const struct store_column *column = field->column;
  if (field->dtype == DTYPE_I32)
    return store_read_int32(column, &fill->cache, row, fill->row, length);
  if (field->dtype == DTYPE_F32)
    return store_read_float(column, &fill->cache, row, fill->row, length);
  return store_read_bf16(column, &fill->cache, row, fill->row, length);
}

static enum status fill_slot(struct loader_fill *fill, const struct loader_field *field, void *slot,
                             int64_t row, int64_t *present) {
  int64_t length = 0;
  if (row >= 0) TRY(read_row(fill, field, row, &length));
  *present = length < field->elements ? length : field->elements;
  memcpy(slot, fill->row, (size_t)*present * dtype_bytes(field->dtype));
  pad(field, slot, *present);
  return STATUS_OK;
}

enum status loader_fill_step(struct loader_fill *fill, struct loader_batch *batch,
                             const struct loader_options *options, int64_t step) {
  batch->step = step;
  batch->hash = 0;
  for (int64_t i = 0; i < options->slots; i++) {
    batch->samples[i] = order_at(&options->order, step, options->first_slot + i);
    batch->hash += order_sample_hash(batch->samples[i]);
  }
  for (int64_t f = 0; f < options->field_count; f++) {
    const struct loader_field *field = &options->fields[f];
    const size_t bytes = (size_t)field->elements * dtype_bytes(field->dtype);
    for (int64_t i = 0; field->column && i < options->slots; i++)
      TRY(fill_slot(fill, field, (unsigned char *)batch->fields[f] + (size_t)i * bytes,
                    batch->samples[i].row, &batch->lengths[f][i]));
  }
  return STATUS_OK;
}
