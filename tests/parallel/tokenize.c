/* np: 1 2 4 */
/* R-DLM-9, R-DAT-1, R-DAT-2: a tokenize node has the same bytes for any number of ranks. */
#include <stdio.h>
#include <string.h>

#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "sharding/comm.h"
#include "sharding/store.h"
#include "stages/tokenize/tokenize_stage.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/parallel.h"

static int calls_before_stop = -1; /* a signal comes after so many units of a rank; -1: never */

bool stage_stop_requested(void) {
  return calls_before_stop >= 0 && calls_before_stop-- <= 0;
}

/* About `documents` small documents of made-up words, every tenth one a repetition. */
static enum status write_corpus(const char *path, int documents, uint64_t seed) {
  struct text text = {0};
  for (int i = 0; i < documents; i++) {
    const int source = i % 10 == 9 ? i - 9 : i;
    const struct random_stream draw = random_open(seed, "corpus", (uint64_t)source, 0);
    const uint64_t words = 5 + random_below(draw, 0, 40);
    for (uint64_t w = 1; w <= words; w++) {
      const uint64_t word = random_below(draw, w, 400);
      TRY(text_format(&text, "%c%c%s ", (int)('a' + word % 20), (int)('a' + word / 20),
                      word % 3 ? "ing" : "er"));
    }
    TRY(text_add(&text, "\n\n"));
  }
  const enum status status = file_write(path, text.bytes, text.length);
  text_free(&text);
  return status;
}

static enum status make_inputs(void) {
  TRY(file_make_folder("text"));
  for (int i = 0; i < 9; i++) {
    char path[64];
    snprintf(path, sizeof path, "text/%d.txt", i);
    TRY(write_corpus(path, 80 * i + 1, (uint64_t)i / 2)); /* pairs share documents */
  }
  TRY(file_make_folder("empty"));
  return file_write("empty/blank.txt", "\n \n\n", 4);
}

struct outcome {
  enum status status;
  char identity[HASH_HEX_BYTES]; /* on rank 0 */
};

static struct outcome run_stage(struct comm *comm, const struct options *options,
                                const char *folder) {
  const struct recipe_node node = {.name = "tokens", .kind = KIND_TOKENIZE};
  struct manifest manifest = {0};
  struct outcome outcome = {.status = STATUS_OK};
  struct stage stage = {.node = &node,
                        .options = options,
                        .comm = comm,
                        .run_folder = ".",
                        .folder = folder,
                        .manifest = &manifest};
  outcome.status = tokenize_stage(&stage);
  if (outcome.status == STATUS_OK && comm->rank == 0)
    outcome.status = manifest_identity(outcome.identity, &manifest);
  if (outcome.status == STATUS_OK && comm->rank == 0)
    outcome.status = manifest_write(&manifest, folder);
  manifest_free(&manifest);
  return outcome;
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

static void make_folder(struct parallel_test *test, const char *name) {
  if (test->world->rank == 0) parallel_ok(test, file_make_folder(name));
  parallel_ok(test, comm_barrier(test->world));
}

/* The stage on rank 0 alone, then on all ranks: the same outputs. */
static void compare(struct parallel_test *test, const struct options *options, const char *name) {
  char alone[64], together[64];
  snprintf(alone, sizeof alone, "%s-alone", name);
  snprintf(together, sizeof together, "%s-together", name);
  make_folder(test, alone);
  make_folder(test, together);
  struct comm single;
  struct outcome first = {.status = STATUS_OK};
  if (!parallel_ok(test, comm_split(&single, test->world, test->world->rank))) return;
  if (test->world->rank == 0) first = run_stage(&single, options, alone);
  parallel_ok(test, first.status);
  const struct outcome second = run_stage(test->world, options, together);
  parallel_ok(test, second.status);
  parallel_expect(test, strcmp(first.identity, second.identity) == 0);
  comm_free(&single);
}

static void wrapped_and_trained(struct parallel_test *test) {
  if (test->world->rank == 0) parallel_ok(test, make_inputs());
  const struct options options = base_options();
  compare(test, &options, "trained");
}

static void paragraphs_of_bytes(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  options.packing = PACKING_PARAGRAPH;
  options.sequence_length = 200;
  compare(test, &options, "bytes");
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

/* A stopped stage goes on from its parts, with the same bytes in the end. */
static void stops_and_resumes(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  make_folder(test, "whole");
  make_folder(test, "stopped");
  const struct outcome whole = run_stage(test->world, &options, "whole");
  calls_before_stop = 1;
  parallel_expect(test, run_stage(test->world, &options, "stopped").status == STATUS_STOPPED);
  calls_before_stop = -1;
  const struct outcome resumed = run_stage(test->world, &options, "stopped");
  parallel_ok(test, resumed.status);
  parallel_expect(test, strcmp(whole.identity, resumed.identity) == 0);
  parallel_expect(test, !file_exists("stopped/parts"));
}

static void bad_inputs(struct parallel_test *test) {
  struct options options = base_options();
  options.tokenizer = TOKENIZER_BYTE;
  options.input.values[0] = "missing";
  make_folder(test, "bad");
  parallel_expect(test, run_stage(test->world, &options, "bad").status == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "missing"));
  options.input.values[0] = "empty";
  parallel_expect(test, run_stage(test->world, &options, "bad").status == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "'empty' holds no documents"));
  options.tokenizer = TOKENIZER_TRAIN;
  parallel_expect(test, run_stage(test->world, &options, "bad").status == STATUS_MISMATCH);
}

int main(void) {
  static const struct parallel_case cases[] = {
      {"a trained vocabulary and its rows do not depend on ranks (R-DLM-9)", wrapped_and_trained},
      {"paragraph rows of bytes do not depend on ranks (R-DLM-9)", paragraphs_of_bytes},
      {"rows hold the text", rows_hold_the_text},
      {"a stopped stage resumes to the same bytes (R-DAT-1)", stops_and_resumes},
      {"missing and empty inputs are refused by name", bad_inputs},
  };
  return parallel_main(cases, sizeof cases / sizeof *cases);
}
