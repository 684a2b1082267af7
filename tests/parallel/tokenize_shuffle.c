/* np: 1 2 4 */
/* R-DAT-2: documents are put in a global order by many ranks, and the shards have the same bytes
 * for any number of them and after any stop; no document is lost, doubled or changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/store.h"
#include "tests/common/tokenize_case.h"

enum { ROW = 64, MOST_DOCUMENTS = 8192, END = 257 };

static enum status add_word(struct text *text, struct random_stream draw, uint64_t w) {
  return text_format(text, "%x ", (unsigned)random_below(draw, w, 60000));
}

static enum status make_inputs(void) {
  return tokenize_case_inputs(add_word, 1);
}

static struct options base_options(enum shuffle_choice shuffle) {
  struct options options;
  options_defaults(&options);
  options.input = (struct option_texts){.count = 1, .values = {"text"}};
  options.held_out = 0.1;
  options.tokenizer = TOKENIZER_BYTE;
  options.sequence_length = ROW;
  options.shard_tokens = 20000;
  options.shuffle = shuffle;
  return options;
}

/* Hashes of the documents of a folder's training rows, in their order. */
struct documents {
  uint64_t hashes[MOST_DOCUMENTS];
  int64_t count;
};

static void read_documents(struct parallel_test *test, const char *folder,
                           struct documents *found) {
  struct store store;
  struct store_column column;
  struct source_cache cache = {0};
  int32_t row[ROW];
  uint64_t hash = 0;
  found->count = 0;
  if (!parallel_ok(test, store_open(&store, folder, "train"))) return;
  parallel_ok(test, store_find(&store, &column, "tokens"));
  for (int64_t i = 0; i < store.rows; i++) {
    parallel_ok(test, store_read_int32(&column, &cache, i, row, NULL));
    for (int j = 0; j < ROW; j++) {
      hash = hash_bytes_seeded(&row[j], sizeof row[j], hash);
      if (row[j] != END || found->count == MOST_DOCUMENTS) continue; /* the end of a document */
      found->hashes[found->count++] = hash;
      hash = 0;
    }
  }
  source_cache_free(&cache);
  store_close(&store);
}

static int by_value(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static int64_t count_equal(const struct documents *a, const struct documents *b) {
  int64_t equal = 0;
  for (int64_t i = 0; i < a->count && i < b->count; i++) equal += a->hashes[i] == b->hashes[i];
  return equal;
}

/* Rows end in the middle of a document: at most the last one of each is not in the other. */
static void expect_permuted(struct parallel_test *test, const char *a, const char *b) {
  static struct documents before, after;
  read_documents(test, a, &before);
  read_documents(test, b, &after);
  parallel_expect(test, before.count > 2000 && labs(before.count - after.count) <= 1);
  parallel_expect(test, count_equal(&before, &after) < 20);
  qsort(before.hashes, (size_t)before.count, sizeof *before.hashes, by_value);
  qsort(after.hashes, (size_t)after.count, sizeof *after.hashes, by_value);
  int64_t common = 0;
  for (int64_t i = 0, j = 0; i < before.count && j < after.count;) {
    common += before.hashes[i] == after.hashes[j];
    const bool first = before.hashes[i] <= after.hashes[j];
    j += before.hashes[i] >= after.hashes[j];
    i += first;
  }
  parallel_expect(test, common >= before.count - 1 && common >= after.count - 1);
}

static void all_are_mixed(struct parallel_test *test) {
  if (test->world->rank == 0) parallel_ok(test, make_inputs());
  parallel_ok(test, comm_barrier(test->world));
  const struct options plain = base_options(SHUFFLE_NONE), options = base_options(SHUFFLE_ALL);
  tokenize_case_folder(test, "plain");
  parallel_ok(test, tokenize_case_run(test->world, &plain, "plain").status);
  tokenize_case_compare(test, &options, "all");
  expect_permuted(test, "plain", "all-together");
}

static void another_seed_is_another_order(struct parallel_test *test) {
  struct options options = base_options(SHUFFLE_ALL);
  options.shuffle_seed = 43;
  tokenize_case_folder(test, "seed");
  parallel_ok(test, tokenize_case_run(test->world, &options, "seed").status);
  expect_permuted(test, "all-together", "seed");
}

static void read_rows(struct parallel_test *test, const char *folder, char rows[128]) {
  struct manifest manifest = {0};
  const char *text = "";
  parallel_ok(test, manifest_read(&manifest, folder));
  parallel_ok(test, scalars_get_text(&manifest.facts, "train_rows_of_inputs", &text));
  snprintf(rows, 128, "%s", text);
  manifest_free(&manifest);
}

/* Entries stay side by side, each with as many rows as before; together they are one. */
static void entries_stay_apart(struct parallel_test *test) {
  char before[128], after[128], merged[128];
  struct options options = base_options(SHUFFLE_NONE);
  options.input =
      (struct option_texts){.count = 3, .values = {"text/5.txt", "text/0.txt", "text/8.txt"}};
  tokenize_case_folder(test, "entries");
  parallel_ok(test, tokenize_case_run(test->world, &options, "entries").status);
  options.shuffle = SHUFFLE_INPUTS;
  tokenize_case_compare(test, &options, "apart");
  options.shuffle = SHUFFLE_ALL;
  tokenize_case_compare(test, &options, "merged");
  read_rows(test, "entries", before);
  read_rows(test, "apart-together", after);
  read_rows(test, "merged-together", merged);
  parallel_expect(test, strchr(before, ' ') && strcmp(before, after) == 0);
  parallel_expect(test, !strchr(merged, ' '));
}

static void damage(struct parallel_test *test, const char *path) {
  struct text bytes = {0};
  if (test->world->rank == 0 && file_exists(path)) {
    parallel_ok(test, file_read(&bytes, path));
    bytes.bytes[bytes.length / 2] ^= 1;
    parallel_ok(test, file_write(path, bytes.bytes, bytes.length));
  }
  text_free(&bytes);
  parallel_ok(test, comm_barrier(test->world));
}

/* Stopped a little later each time, in every pass, with damage in between (R-DAT-1). */
static void stops_and_resumes(struct parallel_test *test) {
  const struct options options = base_options(SHUFFLE_ALL);
  struct tokenize_outcome outcome = {.status = STATUS_STOPPED};
  struct manifest whole = {0};
  char identity[HASH_HEX_BYTES] = "";
  int runs = 0;
  tokenize_case_folder(test, "stopped");
  for (int calls = 2; outcome.status == STATUS_STOPPED; calls += 2, runs++) {
    tokenize_case_stop_after(calls);
    outcome = tokenize_case_run(test->world, &options, "stopped");
    if (outcome.status == STATUS_STOPPED) damage(test, "stopped/parts/scatter-00000000");
  }
  tokenize_case_stop_after(-1);
  parallel_ok(test, outcome.status);
  parallel_expect(test, runs >= 2);
  parallel_ok(test, manifest_read(&whole, "all-together"));
  if (test->world->rank == 0) {
    parallel_ok(test, manifest_identity(identity, &whole));
    parallel_expect(test, strcmp(identity, outcome.identity) == 0);
  }
  manifest_free(&whole);
  parallel_expect(test, !file_exists("stopped/parts"));
}

int main(void) {
  static const struct parallel_case cases[] = {
      {"documents are mixed, none is lost, for any number of ranks (R-DAT-2)", all_are_mixed},
      {"another seed is another order", another_seed_is_another_order},
      {"entries of input are mixed apart, or merged (R-DAT-2)", entries_stay_apart},
      {"stops and damage between passes leave the same bytes (R-DAT-1)", stops_and_resumes},
  };
  return parallel_main(cases, sizeof cases / sizeof *cases);
}
