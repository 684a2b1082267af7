/* Shards as one array of rows (R-DAT-3, R-DAT-4, R-DLM-9). */
#include "tests/common/tap.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/store.h"
#include "sharding/store_writer.h"

enum { SHARDS = 5, LONGEST = 9, POSITIONS = 6, CHANNELS = 5 };

static const struct store_writer_column columns[] = {
    {.name = "tokens", .dtype = DTYPE_U16, .dimensions = 1, .shape = {4}},
    {.name = "text", .dtype = DTYPE_U8, .dimensions = 1, .ragged = true},
    {.name = "ids", .dtype = DTYPE_U32, .dimensions = 1, .ragged = true},
    {.name = "embedding",
     .dtype = DTYPE_BF16,
     .dimensions = 2,
     .shape = {POSITIONS, CHANNELS},
     .planes = true},
    {.name = "ragged_embedding",
     .dtype = DTYPE_BF16,
     .dimensions = 2,
     .shape = {0, CHANNELS},
     .ragged = true},
    {.name = "score", .dtype = DTYPE_F64}};

static struct safetensors_pair pairs[] = {{"tokenizer", "abc"}};

/* Rows of shard s: s * 3 % 4, so one is empty. Everything in a row follows from its number. */
static int64_t rows_of(int64_t shard) {
  return shard * 3 % 4;
}

static uint32_t value_of(int64_t row, int64_t at) {
  return random_bits(random_open(3, "row", (uint64_t)row, 0), (uint64_t)at);
}

static int64_t length_of(int64_t row) {
  return (int64_t)(value_of(row, 1000) % (LONGEST + 1));
}

static void add_row(struct store_writer *writer, int64_t row) {
  uint16_t tokens[4];
  unsigned char text[LONGEST];
  uint32_t ids[LONGEST];
  bf16 embedding[POSITIONS * CHANNELS], ragged[LONGEST * CHANNELS];
  const double score = (double)row / 3;
  for (int i = 0; i < 4; i++) tokens[i] = (uint16_t)value_of(row, i);
  for (int i = 0; i < LONGEST; i++) text[i] = (unsigned char)value_of(row, i);
  for (int i = 0; i < LONGEST; i++) ids[i] = value_of(row, i) >> 1;
  for (int i = 0; i < POSITIONS * CHANNELS; i++) embedding[i] = (bf16)value_of(row, i);
  for (int i = 0; i < LONGEST * CHANNELS; i++) ragged[i] = (bf16)value_of(row, i + 500);
  assert_ok(store_writer_add(writer, 0, tokens, 4));
  assert_ok(store_writer_add(writer, 1, text, length_of(row)));
  assert_ok(store_writer_add(writer, 2, ids, length_of(row)));
  assert_ok(store_writer_add(writer, 3, embedding, POSITIONS * CHANNELS));
  assert_ok(store_writer_add(writer, 4, ragged, length_of(row) * CHANNELS));
  assert_ok(store_writer_add(writer, 5, &score, 1));
}

static struct store_writer_options options_of(const char *folder, int64_t shard) {
  const struct store_writer_options options = {.folder = folder,
                                               .name = "train",
                                               .tag = "abc",
                                               .index = shard,
                                               .columns = columns,
                                               .column_count = 6,
                                               .pairs = pairs,
                                               .pair_count = 1};
  return options;
}

static void write_shard(const char *folder, int64_t shard) {
  struct store_writer writer;
  const struct store_writer_options options = options_of(folder, shard);
  int64_t first = 0;
  for (int64_t s = 0; s < shard; s++) first += rows_of(s);
  assert_false(store_writer_is_done(&options));
  assert_ok(store_writer_open(&writer, &options));
  for (int64_t r = 0; r < rows_of(shard); r++) add_row(&writer, first + r);
  assert_ok(store_writer_close(&writer));
  assert_true(store_writer_is_done(&options));
}

/* Shards are written in any order. */
static void write_store(const char *folder, int64_t step) {
  struct manifest manifest = {0};
  assert_ok(file_remove(folder));
  assert_ok(file_make_folder(folder));
  for (int64_t i = 0; i < SHARDS; i++) write_shard(folder, i * step % SHARDS);
  assert_ok(manifest_collect(&manifest, folder));
  assert_ok(manifest_write(&manifest, folder));
  assert_ok(manifest_forget(&manifest, folder));
  manifest_free(&manifest);
}

static void check_embeddings(const struct store *store, struct source_cache *cache, int64_t row) {
  struct store_column fixed, ragged;
  bf16 out[LONGEST * CHANNELS];
  float real[POSITIONS * CHANNELS];
  int64_t length;
  assert_ok(store_find(store, &fixed, "embedding"));
  assert_ok(store_find(store, &ragged, "ragged_embedding"));
  assert_true(fixed.planes && fixed.dimensions == 2 && fixed.shape[1] == CHANNELS);
  assert_true(ragged.ragged && ragged.unit == CHANNELS && ragged.shape[1] == CHANNELS);
  assert_ok(store_read_bf16(&fixed, cache, row, out, &length));
  assert_ok(store_read_float(&fixed, cache, row, real, NULL));
  assert_int_equal(length, POSITIONS * CHANNELS);
  for (int i = 0; i < length; i++) {
    const float expected = bf16_to_float((bf16)value_of(row, i));
    assert_int_equal(out[i], (bf16)value_of(row, i));
    assert_memory_equal(&real[i], &expected, sizeof expected);
  }
  assert_ok(store_read_bf16(&ragged, cache, row, out, &length));
  assert_int_equal(length, length_of(row) * CHANNELS);
  for (int i = 0; i < length; i++) assert_int_equal(out[i], (bf16)value_of(row, i + 500));
}

static void check_tokens(const struct store *store, struct source_cache *cache, int64_t row) {
  struct store_column tokens, text, ids, score;
  int32_t out[LONGEST];
  float real;
  int64_t length;
  assert_ok(store_find(store, &tokens, "tokens"));
  assert_ok(store_find(store, &text, "text"));
  assert_ok(store_find(store, &ids, "ids"));
  assert_ok(store_find(store, &score, "score"));
  assert_int_equal(tokens.width, 4);
  assert_true(ids.ragged && ids.width <= LONGEST);
  assert_ok(store_read_int32(&tokens, cache, row, out, &length));
  assert_int_equal(length, 4);
  for (int i = 0; i < length; i++) assert_int_equal(out[i], (uint16_t)value_of(row, i));
  assert_ok(store_read_int32(&text, cache, row, out, &length));
  assert_int_equal(length, length_of(row));
  for (int i = 0; i < length; i++) assert_int_equal(out[i], (unsigned char)value_of(row, i));
  assert_ok(store_read_int32(&ids, cache, row, out, &length));
  for (int i = 0; i < length; i++) assert_int_equal(out[i], value_of(row, i) >> 1);
  assert_ok(store_read_float(&score, cache, row, &real, NULL));
  assert_true(real == (float)((double)row / 3));
}

static void rows_come_back(void **state) {
  (void)state;
  struct store store;
  struct source_cache cache = {0};
  write_store("s", 1);
  assert_ok(store_open(&store, "s", "train"));
  assert_int_equal(store.shard_count, SHARDS);
  assert_int_equal(store.rows, 6);
  assert_string_equal(store_value(&store, "tokenizer"), "abc");
  assert_null(store_value(&store, "none"));
  for (int64_t i = 0; i < 30; i++) {
    const int64_t row = i * 7 % store.rows;
    check_tokens(&store, &cache, row);
    check_embeddings(&store, &cache, row);
  }
  source_cache_free(&cache);
  store_close(&store);
}

static void shards_do_not_depend_on_the_order_of_work(void **state) {
  (void)state;
  struct manifest a = {0}, b = {0};
  write_store("a", 1);
  write_store("b", 3);
  assert_ok(manifest_read(&a, "a"));
  assert_ok(manifest_read(&b, "b"));
  assert_int_equal(a.output_count, SHARDS);
  assert_string_equal(a.outputs[2].path, "train-abc-00002.safetensors.zst");
  for (int64_t i = 0; i < SHARDS; i++)
    assert_int_equal(blocks_digest(&a.outputs[i].blocks), blocks_digest(&b.outputs[i].blocks));
  manifest_free(&a);
  manifest_free(&b);
}

static void requests_that_cannot_be_met_are_explained(void **state) {
  (void)state;
  struct store store;
  struct store_column column;
  struct source_cache cache = {0};
  int32_t out[64];
  assert_status(STATUS_MISMATCH, store_open(&store, "nowhere", ""));
  write_store("s", 1);
  assert_status(STATUS_MISMATCH, store_open(&store, "s", "trai"));
  assert_ok(store_open(&store, "s", ""));
  assert_status(STATUS_MISMATCH, store_find(&store, &column, "token"));
  assert_non_null(strstr(error_message(), "'tokens'"));
  assert_ok(store_find(&store, &column, "embedding"));
  assert_status(STATUS_MISMATCH, store_read_int32(&column, &cache, 0, out, NULL));
  assert_ok(store_find(&store, &column, "tokens"));
  assert_status(STATUS_INTERNAL, store_read_int32(&column, &cache, store.rows, out, NULL));
  source_cache_free(&cache);
  store_close(&store);
}

static void wrong_rows_are_refused(void **state) {
  (void)state;
  struct store_writer writer;
  const struct store_writer_options options = options_of("s", 99);
  const uint16_t tokens[4] = {0};
  assert_ok(file_make_folder("s"));
  assert_ok(store_writer_open(&writer, &options));
  assert_status(STATUS_MISMATCH, store_writer_add(&writer, 0, tokens, 3));
  assert_status(STATUS_MISMATCH, store_writer_add(&writer, 4, tokens, 4)); /* not n x CHANNELS */
  assert_ok(store_writer_add(&writer, 0, tokens, 4));
  assert_status(STATUS_INTERNAL, store_writer_close(&writer)); /* other columns lack the row */
  assert_int_equal(store_writer_token_type(65536), DTYPE_U16);
  assert_int_equal(store_writer_token_type(65537), DTYPE_U32);
}

static void damage_names_shard_block_and_row(void **state) {
  (void)state;
  struct store store;
  struct store_column column;
  struct source_cache cache = {0};
  struct text file = {0};
  int32_t out[4];
  write_store("s", 1);
  const char *path = "s/train-abc-00001.safetensors.zst"; /* rows 0 to 2 */
  assert_ok(file_read(&file, path));
  const size_t header = 1 << 10;
  file.bytes[header + (file.length - header) / 2] ^= 1;
  assert_ok(store_open(&store, "s", "train"));
  assert_ok(file_write(path, file.bytes, file.length));
  store_close(&store);
  assert_ok(store_open(&store, "s", "train"));
  assert_ok(store_find(&store, &column, "tokens"));
  assert_status(STATUS_DAMAGED, store_read_int32(&column, &cache, 1, out, NULL));
  assert_non_null(
      strstr(error_message(), "train-abc-00001.safetensors.zst' is damaged in block 1"));
  assert_non_null(strstr(error_message(), "row 1 of column 'tokens'; rows 0 to 2 are stored"));
  assert_ok(store_read_int32(&column, &cache, 3, out, NULL)); /* other shards stay usable */
  source_cache_free(&cache);
  store_close(&store);
  assert_ok(file_write(path, file.bytes, file.length - 1));
  assert_status(STATUS_DAMAGED, store_open(&store, "s", "train"));
  text_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_come_back),
      cmocka_unit_test(shards_do_not_depend_on_the_order_of_work),
      cmocka_unit_test(requests_that_cannot_be_met_are_explained),
      cmocka_unit_test(wrong_rows_are_refused),
      cmocka_unit_test(damage_names_shard_block_and_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
