/* The loader: content by order alone, read ahead by a thread (R-ORD-4, R-IO-1). */
#define _DEFAULT_SOURCE
#include "tests/common/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "sharding/loader.h"
#include "sharding/store_writer.h"

enum { ROWS = 57, LONGEST = 12, CHANNELS = 3, BATCH = 8, ELEMENTS = 10, PAD = -7 };

static const struct store_writer_column columns[] = {
    {.name = "tokens", .dtype = DTYPE_U16, .dimensions = 1, .ragged = true},
    {.name = "embedding", .dtype = DTYPE_BF16, .dimensions = 1, .shape = {CHANNELS}}};

static void write_store(void) {
  struct manifest manifest = {0};
  assert_ok(file_remove("s"));
  assert_ok(file_make_folder("s"));
  for (int64_t shard = 0; shard < 3; shard++) {
    struct store_writer writer;
    const struct store_writer_options options = {.folder = "s",
                                                 .name = "train",
                                                 .tag = "",
                                                 .index = shard,
                                                 .columns = columns,
                                                 .column_count = 2};
    assert_ok(store_writer_open(&writer, &options));
    for (int64_t row = shard * 19; row < (shard + 1) * 19; row++) {
      uint16_t tokens[LONGEST];
      const bf16 embedding[CHANNELS] = {bf16_from_float((float)row), 0, 0x3f80};
      for (int i = 0; i < LONGEST; i++) tokens[i] = (uint16_t)(row * 100 + i);
      assert_ok(store_writer_add(&writer, 0, tokens, row % (LONGEST + 1)));
      assert_ok(store_writer_add(&writer, 1, embedding, CHANNELS));
    }
    assert_ok(store_writer_close(&writer));
  }
  assert_ok(manifest_collect(&manifest, "s"));
  assert_ok(manifest_write(&manifest, "s"));
  manifest_free(&manifest);
}

struct data {
  struct store store;
  struct store_column tokens, embedding;
  struct loader_field fields[2];
  struct loader_options options;
};

static void open_data(struct data *data, int64_t depth) {
  write_store();
  assert_ok(store_open(&data->store, "s", "train"));
  assert_ok(store_find(&data->store, &data->tokens, "tokens"));
  assert_ok(store_find(&data->store, &data->embedding, "embedding"));
  data->fields[0] = (struct loader_field){&data->tokens, DTYPE_I32, ELEMENTS, PAD};
  data->fields[1] = (struct loader_field){&data->embedding, DTYPE_F32, CHANNELS, 0};
  data->options = (struct loader_options){.order = {.seed = 3, .rows = ROWS, .batch = BATCH},
                                          .first_slot = 2,
                                          .slots = 4,
                                          .fields = data->fields,
                                          .field_count = 2,
                                          .depth = depth};
}

static void check_batch(const struct loader_batch *batch, const struct order *order, int64_t step) {
  const int32_t *tokens = batch->fields[0];
  const float *embedding = batch->fields[1];
  uint64_t hash = 0;
  assert_int_equal(batch->step, step);
  for (int64_t i = 0; i < 4; i++) {
    const struct order_sample sample = order_at(order, step, 2 + i);
    const int64_t row = sample.row;
    hash += order_sample_hash(sample);
    assert_int_equal(batch->samples[i].index, sample.index);
    const int64_t whole = row % (LONGEST + 1), length = whole < ELEMENTS ? whole : ELEMENTS;
    assert_int_equal(batch->lengths[0][i], length);
    for (int64_t j = 0; j < ELEMENTS; j++)
      assert_int_equal(tokens[i * ELEMENTS + j], j < length ? row * 100 + j : PAD);
    assert_true(embedding[i * CHANNELS] == (float)row && embedding[i * CHANNELS + 2] == 1.0f);
  }
  assert_true(batch->hash == hash);
}

static void content_does_not_depend_on_depth(void **state) {
  (void)state;
  const int64_t depths[] = {0, 1, 2, 7, -1};
  const int64_t jumps[] = {0, 1, 2, 3, 4, 20, 21, 20, 20, 5, 6, 8, 9, 1000000000, 0};
  for (int d = 0; d < 5; d++) {
    struct data data;
    struct loader *loader;
    const struct loader_batch *batch;
    open_data(&data, depths[d]);
    assert_ok(loader_open(&loader, &data.options));
    for (int i = 0; i < 15; i++) {
      assert_ok(loader_get(loader, jumps[i], &batch));
      check_batch(batch, &data.options.order, jumps[i]);
    }
    for (int64_t step = 100; step < 200; step++) {
      assert_ok(loader_get(loader, step, &batch));
      check_batch(batch, &data.options.order, step);
    }
    loader_close(loader);
    store_close(&data.store);
  }
}

static void waits_are_measured(void **state) {
  (void)state;
  struct data data;
  struct loader *loader;
  const struct loader_batch *batch;
  open_data(&data, 2);
  assert_ok(loader_open(&loader, &data.options));
  assert_int_equal(loader_waits(loader).count, 0);
  for (int64_t step = 0; step < 50; step++) {
    assert_ok(loader_get(loader, step, &batch));
    usleep(200);
  }
  const struct loader_waits waits = loader_waits(loader);
  assert_int_equal(waits.count, 50);
  assert_true(waits.mean_seconds > 0 && waits.p99_seconds >= waits.mean_seconds / 100);
  print_message("# wait: mean %.1f us, p99 %.1f us\n", 1e6 * waits.mean_seconds,
                1e6 * waits.p99_seconds);
  loader_close(loader);
  store_close(&data.store);
}

static void a_single_pass_ends_in_empty_slots(void **state) {
  (void)state;
  struct data data;
  struct loader *loader;
  const struct loader_batch *batch;
  open_data(&data, 1);
  data.options.order.single_pass = true;
  assert_ok(loader_open(&loader, &data.options));
  assert_ok(loader_get(loader, ROWS / BATCH, &batch)); /* one row, in slot 0 */
  for (int i = 0; i < 4; i++) {
    assert_int_equal(batch->samples[i].row, -1);
    assert_int_equal(batch->lengths[0][i], 0);
    assert_int_equal(((int32_t *)batch->fields[0])[i * ELEMENTS], PAD);
  }
  loader_close(loader);
  store_close(&data.store);
}

static void damage_reaches_the_caller(void **state) {
  (void)state;
  for (int64_t depth = 0; depth < 2; depth++) {
    struct data data;
    struct loader *loader;
    struct text file = {0};
    const struct loader_batch *batch;
    open_data(&data, depth);
    const char *path = "s/train-00001.safetensors.zst";
    assert_ok(file_read(&file, path));
    const int fd = open(path, O_WRONLY);
    file.bytes[file.length - 150] ^= 1; /* the last frame before the table */
    assert_int_equal(pwrite(fd, file.bytes, file.length, 0), (ssize_t)file.length);
    close(fd);
    assert_ok(loader_open(&loader, &data.options));
    enum status status = STATUS_OK;
    for (int64_t step = 0; step < 20 && status == STATUS_OK; step++)
      status = loader_get(loader, step, &batch);
    assert_int_equal(status, STATUS_DAMAGED);
    assert_non_null(strstr(error_message(), "train-00001"));
    loader_close(loader);
    store_close(&data.store);
    text_free(&file);
  }
}

static void impossible_slots_are_refused(void **state) {
  (void)state;
  struct data data;
  struct loader *loader;
  open_data(&data, 0);
  data.options.first_slot = 6;
  assert_status(STATUS_MISMATCH, loader_open(&loader, &data.options));
  data.options.first_slot = 0;
  data.options.depth = 65;
  assert_status(STATUS_MISMATCH, loader_open(&loader, &data.options));
  store_close(&data.store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(content_does_not_depend_on_depth),
      cmocka_unit_test(waits_are_measured),
      cmocka_unit_test(a_single_pass_ends_in_empty_slots),
      cmocka_unit_test(damage_reaches_the_caller),
      cmocka_unit_test(impossible_slots_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
