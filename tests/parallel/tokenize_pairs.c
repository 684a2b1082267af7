/* np: 1 2 4 */
/* R-DAT-2, R-DAT-4, R-DLM-9: pairs of source and target as rows, for any number of ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/store.h"
#include "stages/train/train_data.h"
#include "tests/common/tokenize_case.h"

enum { FILES = 5, LINES = 300, LENGTH = 48, SOURCE = 20 };

/* Line i of file f: a source that every fourth line repeats from the line before, its target. */
static void write_line(struct parallel_test *test, struct text *source, struct text *target,
                       int64_t i) {
  const int64_t said = i % 4 == 3 ? i - 1 : i;
  const struct random_stream draw = random_open(3, "pairs", (uint64_t)said, 0);
  const struct random_stream other = random_open(4, "pairs", (uint64_t)i, 0);
  parallel_ok(test, text_format(source, "%lld ", (long long)said));
  for (uint64_t w = random_below(draw, 0, 12); w; w--)
    parallel_ok(test, text_format(source, "%llu", (unsigned long long)random_below(draw, w, 99)));
  for (uint64_t w = 1 + random_below(other, 0, 12); w; w--)
    parallel_ok(test, text_format(target, "%c", (int)('a' + random_below(other, w, 26))));
  parallel_ok(test, text_format(target, "%lld\n", (long long)i));
  parallel_ok(test, text_add(source, "\n"));
}

static void write_file(struct parallel_test *test, int file) {
  struct text source = {0}, target = {0};
  char path[64];
  for (int i = 0; i < LINES; i++) write_line(test, &source, &target, file * LINES + i);
  snprintf(path, sizeof path, "sources/%d", file);
  parallel_ok(test, file_write(path, source.bytes, source.length));
  snprintf(path, sizeof path, "targets/%d", file);
  parallel_ok(test, file_write(path, target.bytes, target.length));
  text_free(&source);
  text_free(&target);
}

static struct options pair_options(void) {
  struct options options;
  options_defaults(&options);
  options.input = (struct option_texts){.count = 1, .values = {"sources"}};
  options.target = (struct option_texts){.count = 1, .values = {"targets"}};
  options.boundary = BOUNDARY_LINE;
  options.packing = PACKING_PAIRS;
  options.tokenizer = TOKENIZER_BYTE;
  options.held_out = 0.2;
  options.sequence_length = LENGTH;
  options.source_length = SOURCE;
  options.shard_tokens = 12000;
  return options;
}

static void does_not_depend_on_ranks(struct parallel_test *test) {
  tokenize_case_folder(test, "sources");
  tokenize_case_folder(test, "targets");
  if (test->world->rank == 0)
    for (int file = 0; file < FILES; file++) write_file(test, file);
  parallel_ok(test, comm_barrier(test->world));
  struct options options = pair_options();
  tokenize_case_compare(test, &options, "cut");
  options.long_pairs = LONG_PAIRS_DROP;
  tokenize_case_compare(test, &options, "drop");
}

/* The side of every source, and the rows that were read. */
struct sides {
  char of[FILES * LINES]; /* by the number that a source begins with: 't', 'h' or 0 */
  int64_t rows, cut, longest;
};

static void take_row(struct parallel_test *test, struct sides *sides, const int32_t *row,
                     int64_t length, int32_t source, char side) {
  char text[LENGTH + 1] = {0};
  for (int64_t i = 0; i < length; i++) text[i] = (char)row[i]; /* ids are bytes */
  if (!parallel_expect(test, source > 0 && source <= SOURCE && source < length)) return;
  const long said = strtol(text, NULL, 10);
  if (!parallel_expect(test, said >= 0 && said < FILES * LINES)) return;
  parallel_expect(test, !sides->of[said] || sides->of[said] == side);
  sides->of[said] = side;
  parallel_expect(test, text[source] >= 'a' && text[source] <= 'z');
  sides->cut += source == SOURCE;
  sides->rows++;
}

static void read_side(struct parallel_test *test, struct sides *sides, const char *folder,
                      const char *name) {
  struct store store;
  struct store_column tokens, sources;
  struct source_cache cache = {0};
  int32_t row[LENGTH], source = 0;
  int64_t length = 0;
  if (!parallel_ok(test, store_open(&store, folder, name))) return;
  parallel_ok(test, store_find(&store, &tokens, "tokens"));
  parallel_ok(test, store_find(&store, &sources, "source_length"));
  for (int64_t i = 0; i < store.rows && tokens.width <= LENGTH; i++) {
    parallel_ok(test, store_read_int32(&tokens, &cache, i, row, &length));
    parallel_ok(test, store_read_int32(&sources, &cache, i, &source, NULL));
    take_row(test, sides, row, length, source, name[0]);
  }
  source_cache_free(&cache);
  store_close(&store);
}

/* Every pair is one row; a source's pairs are all on one side. */
static void rows_hold_the_pairs(struct parallel_test *test) {
  struct sides cut = {0}, drop = {0};
  read_side(test, &cut, "cut-together", "train");
  read_side(test, &cut, "cut-together", "held_out");
  parallel_expect(test, cut.rows == FILES * LINES && cut.cut > 50);
  read_side(test, &drop, "drop-together", "train");
  read_side(test, &drop, "drop-together", "held_out");
  parallel_expect(test, drop.rows > cut.rows - cut.cut && drop.rows < cut.rows);
}

/* What is cut or left out is counted. */
static void says_what_was_left_out(struct parallel_test *test) {
  struct text json = {0};
  if (test->world->rank) return;
  parallel_ok(test, file_read(&json, "cut-together/statistics.json"));
  parallel_expect(test, strstr(json.bytes, "\"left_out_pairs\": 0") != NULL);
  parallel_expect(test, strstr(json.bytes, "\"cut_pairs\": 0") == NULL);
  text_clear(&json);
  parallel_ok(test, file_read(&json, "drop-together/statistics.json"));
  parallel_expect(test, strstr(json.bytes, "\"left_out_pairs\": 0") == NULL);
  parallel_expect(test, strstr(json.bytes, "\"cut_pairs\": 0") != NULL);
  text_free(&json);
}

static struct train_data_request request_of(const char *folder) {
  static const struct option_reals no_mix = {.count = 1, .values = {1}};
  return (struct train_data_request){.tokens_folder = folder,
                                     .side = "train",
                                     .positions = LENGTH,
                                     .pad = 0,
                                     .mix = &no_mix,
                                     .seed = 7,
                                     .batch = 16,
                                     .rows_each = 4,
                                     .shards = {.begin = 0, .end = 4}};
}

/* Training is given the lengths of sources and rows. */
static void training_sees_both_lengths(struct parallel_test *test) {
  struct arena arena = {0};
  struct train_data data;
  const struct train_data_request request = request_of("cut-together");
  parallel_ok(test, arena_init(&arena, "test", 1 << 20));
  if (!parallel_ok(test, train_data_open(&data, &request, &arena))) return;
  parallel_ok(test, train_data_load(&data, 0));
  const struct flow_batch batch = train_data_micro(&data, 2);
  for (int64_t i = 0; parallel_expect(test, batch.sources != NULL) && i < batch.count; i++) {
    const int32_t *row = batch.tokens + i * LENGTH;
    const int32_t source = batch.sources[i], length = batch.lengths[i];
    parallel_expect(test, source > 0 && source < length && length <= LENGTH);
    parallel_expect(test, row[source - 1] < 'a' && row[source] >= 'a');
    parallel_expect(test, length == LENGTH || row[length] == 0);
  }
  train_data_close(&data);
  arena_free(&arena);
}

/* Each byte of a shard that is flipped is found, by opening it or by reading its rows. */
static enum status read_all(struct parallel_test *test, const char *folder) {
  struct store store;
  struct store_column tokens, sources;
  struct source_cache cache = {0};
  int32_t row[LENGTH];
  TRY(store_open(&store, folder, "held_out"));
  enum status status = store_find(&store, &tokens, "tokens");
  if (status == STATUS_OK) status = store_find(&store, &sources, "source_length");
  for (int64_t i = 0; status == STATUS_OK && i < store.rows; i++) {
    status = store_read_int32(&tokens, &cache, i, row, NULL);
    if (status == STATUS_OK) status = store_read_int32(&sources, &cache, i, row, NULL);
  }
  parallel_expect(test, store.rows > 0);
  source_cache_free(&cache);
  store_close(&store);
  return status;
}

static void flip(struct parallel_test *test, const char *path, size_t at) {
  FILE *file = fopen(path, "r+b");
  if (!parallel_expect(test, file != NULL)) return;
  fseek(file, (long)at, SEEK_SET);
  const int byte = fgetc(file);
  fseek(file, (long)at, SEEK_SET);
  fputc(byte ^ 0x10, file);
  fclose(file);
}

static void damage_is_found(struct parallel_test *test) {
  struct store store;
  char path[512] = "";
  uint64_t bytes = 0;
  if (test->world->rank) return;
  parallel_ok(test, store_open(&store, "cut-together", "held_out"));
  snprintf(path, sizeof path, "%s", store.shards[0].file.source.path);
  store_close(&store);
  parallel_ok(test, file_size(&bytes, path));
  parallel_ok(test, read_all(test, "cut-together"));
  for (uint64_t at = 0; at < bytes; at += 37) {
    flip(test, path, at);
    const enum status status = read_all(test, "cut-together");
    parallel_expect(test, status == STATUS_DAMAGED);
    error_clear();
    flip(test, path, at);
  }
}

int main(void) {
  static const struct parallel_case cases[] = {
      {"rows of pairs do not depend on ranks (R-DAT-2)", does_not_depend_on_ranks},
      {"each pair is a row, and no source is on both sides", rows_hold_the_pairs},
      {"pairs that were cut or left out are counted", says_what_was_left_out},
      {"training sees the lengths of sources and rows", training_sees_both_lengths},
      {"a flipped byte in a shard of pairs is found (R-DAT-4)", damage_is_found},
  };
  return parallel_main(cases, sizeof cases / sizeof *cases);
}
