/* np: 1 2 4 */
/* R-DLM-9, R-DAT-1, R-DAT-2: a tokenize node has the same bytes for any number of ranks. */
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/store.h"
#include "tests/common/tokenize_case.h"

static enum status add_word(struct text *text, struct random_stream draw, uint64_t w) {
  const uint64_t word = random_below(draw, w, 400);
  return text_format(text, "%c%c%s ", (int)('a' + word % 20), (int)('a' + word / 20),
                     word % 3 ? "ing" : "er");
}

static enum status make_inputs(void) {
  TRY(tokenize_case_inputs(add_word, 2)); /* pairs share documents */
  TRY(file_make_folder("empty"));
  return file_write("empty/blank.txt", "\n \n\n", 4);
}

static struct options base_options(void) {
  struct options options;
  options_defaults(&options);
  options.input = (struct option_texts){.count = 1, .values = {"text"}};
  options.held_out = 0.1;
  options.vocabulary_size = 400;
  options.sequence_length = 32;
  options.shard_tokens = 2048;
  return options;
}

static void wrapped_and_trained(struct parallel_test *test) {
  if (test->world->rank == 0) parallel_ok(test, make_inputs());
  const struct options options = base_options();
  tokenize_case_compare(test, &options, "trained");
}

static void paragraphs_of_bytes(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  options.packing = PACKING_PARAGRAPH;
  options.sequence_length = 200;
  tokenize_case_compare(test, &options, "bytes");
}

/* Rows are full, ids are in the vocabulary, and there are as many ends as documents. */
static void rows_hold_the_text(struct parallel_test *test) {
  struct store store;
  struct store_column column;
  struct source_cache cache = {0};
  int32_t row[32];
  int64_t length = 0, ends = 0;
  if (!parallel_ok(test, store_open(&store, "trained-together", "train"))) return;
  parallel_ok(test, store_find(&store, &column, "tokens"));
  parallel_expect(test, column.width == 32);
  for (int64_t i = 0; i < store.rows && column.width == 32; i++) {
    parallel_ok(test, store_read_int32(&column, &cache, i, row, &length));
    parallel_expect(test, length == 32);
    for (int j = 0; j < 32; j++) {
      parallel_expect(test, row[j] >= 0 && row[j] < 400);
      ends += row[j] == 1;
    }
  }
  parallel_expect(test, ends > 1200 && ends < 1700);
  source_cache_free(&cache);
  store_close(&store);
}

/* The first rows of two folders are the same. */
static void compare_rows(struct parallel_test *test, const char *a, const char *b, int64_t rows) {
  struct store stores[2] = {{0}};
  struct store_column columns[2];
  struct source_cache caches[2];
  int32_t row[2][32];
  memset(caches, 0, sizeof caches);
  const char *const folders[] = {a, b};
  for (int i = 0; i < 2; i++) {
    if (!parallel_ok(test, store_open(&stores[i], folders[i], "train"))) return;
    parallel_ok(test, store_find(&stores[i], &columns[i], "tokens"));
  }
  parallel_expect(test, stores[1].rows == rows);
  for (int64_t r = 0; r < rows && r < stores[1].rows; r++) {
    for (int i = 0; i < 2; i++)
      parallel_ok(test, store_read_int32(&columns[i], &caches[i], r, row[i], NULL));
    parallel_expect(test, memcmp(row[0], row[1], sizeof row[0]) == 0);
  }
  for (int i = 0; i < 2; i++) {
    source_cache_free(&caches[i]);
    store_close(&stores[i]);
  }
}

/* Three entries of `input`: each is packed by itself, as if it were alone. */
static void rows_keep_to_their_input(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  options.held_out = 0.2;
  options.shard_tokens = 500;
  options.input =
      (struct option_texts){.count = 3, .values = {"text/2.txt", "text/0.txt", "text/7.txt"}};
  tokenize_case_compare(test, &options, "inputs");
  struct manifest manifest = {0};
  const char *rows;
  long long first = 0, second = 0, third = 0;
  int64_t total = 0;
  parallel_ok(test, manifest_read(&manifest, "inputs-together"));
  parallel_ok(test, scalars_get_text(&manifest.facts, "train_rows_of_inputs", &rows));
  parallel_ok(test, scalars_get_integer(&manifest.facts, "train_rows", &total));
  parallel_expect(test, sscanf(rows, "%lld %lld %lld", &first, &second, &third) == 3);
  parallel_expect(test, first > 0 && third > 0 && first + second + third == total);
  manifest_free(&manifest);
  options.input.count = 1;
  tokenize_case_folder(test, "input");
  parallel_ok(test, tokenize_case_run(test->world, &options, "input").status);
  compare_rows(test, "inputs-together", "input", first);
}

/* Each document of near.txt is one of text/8.txt with a word more: all of them are left out. */
static enum status write_near(void) {
  struct text text = {0}, near = {0};
  enum status status = file_read(&text, "text/8.txt");
  for (char *at = text.bytes, *stop; status == STATUS_OK && (stop = strstr(at, "\n\n"));
       at = stop + 2)
    status = text_format(&near, "%.*s more\n\n", (int)(stop - at), at);
  if (status == STATUS_OK) status = file_write("near.txt", near.bytes, near.length);
  text_free(&text);
  text_free(&near);
  return status;
}

static void near_duplicates_are_left_out(struct parallel_test *test) {
  struct options options = base_options();
  struct manifest manifest = {0};
  int64_t equal = 0, near = 0;
  if (test->world->rank == 0) parallel_ok(test, write_near());
  parallel_ok(test, comm_barrier(test->world));
  options.tokenizer = TOKENIZER_BYTE;
  options.near_duplicates = 0.5;
  options.input = (struct option_texts){.count = 2, .values = {"text/8.txt", "near.txt"}};
  tokenize_case_compare(test, &options, "near");
  parallel_ok(test, manifest_read(&manifest, "near-together"));
  parallel_ok(test, scalars_get_integer(&manifest.facts, "duplicates", &equal));
  parallel_ok(test, scalars_get_integer(&manifest.facts, "near_duplicates", &near));
  parallel_expect(test, equal == 2 * 64); /* every tenth of 641 repeats, in both files */
  parallel_expect(test, near > 500 && near <= 641 - 64);
  manifest_free(&manifest);
}

/* A stopped stage goes on from its parts, with the same bytes in the end. */
static void stops_and_resumes(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  tokenize_case_folder(test, "whole");
  tokenize_case_folder(test, "stopped");
  const struct tokenize_outcome whole = tokenize_case_run(test->world, &options, "whole");
  tokenize_case_stop_after(1);
  parallel_expect(test,
                  tokenize_case_run(test->world, &options, "stopped").status == STATUS_STOPPED);
  tokenize_case_stop_after(-1);
  const struct tokenize_outcome resumed = tokenize_case_run(test->world, &options, "stopped");
  parallel_ok(test, resumed.status);
  parallel_expect(test, strcmp(whole.identity, resumed.identity) == 0);
  parallel_expect(test, !file_exists("stopped/parts"));
}

static void bad_inputs(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  options.input.values[0] = "missing";
  tokenize_case_folder(test, "bad");
  parallel_expect(test, tokenize_case_run(test->world, &options, "bad").status == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "missing"));
  options.input.values[0] = "empty";
  parallel_expect(test, tokenize_case_run(test->world, &options, "bad").status == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "'empty' holds no documents"));
  options.tokenizer = TOKENIZER_TRAIN;
  parallel_expect(test, tokenize_case_run(test->world, &options, "bad").status == STATUS_MISMATCH);
}

int main(void) {
  static const struct parallel_case cases[] = {
      {"a trained vocabulary and its rows do not depend on ranks (R-DLM-9)", wrapped_and_trained},
      {"paragraph rows of bytes do not depend on ranks (R-DLM-9)", paragraphs_of_bytes},
      {"rows hold the text", rows_hold_the_text},
      {"rows keep to their entry of input", rows_keep_to_their_input},
      {"near-duplicates are left out, for any number of ranks", near_duplicates_are_left_out},
      {"a stopped stage resumes to the same bytes (R-DAT-1)", stops_and_resumes},
      {"missing and empty inputs are refused by name", bad_inputs},
  };
  return parallel_main(cases, sizeof cases / sizeof *cases);
}
