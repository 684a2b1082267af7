/* millrace data stat, audit and diff on a node with planted faults. */
#define _XOPEN_SOURCE 700
#include "tests/common/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/commands.h"
#include "sharding/store_writer.h"

static struct text out;

/* Runs `millrace data VERB A [B]` with its output caught in `out`. */
static enum status data(const char *verb, const char *a, const char *b) {
  char *argv[] = {"data", (char *)verb, (char *)a, (char *)b};
  fflush(stdout);
  const int kept = dup(1), file = open("caught", O_RDWR | O_CREAT | O_TRUNC, 0666);
  dup2(file, 1);
  const enum status status = command_data(b ? 4 : 3, argv);
  fflush(stdout);
  dup2(kept, 1);
  close(kept);
  close(file);
  text_clear(&out);
  assert_ok(file_read(&out, "caught"));
  return status;
}

static void assert_says(const char *what) {
  if (!strstr(out.bytes, what)) fail_msg("'%s' is not in\n%s", what, out.bytes);
}

enum { LENGTH = 4, ROWS = 4, VOCABULARY = 10 }; /* ids: 0 pad, 1 eos, 2 unknown, then text */

typedef const uint16_t rows[ROWS][LENGTH];

static void write_side(const char *folder, const char *name, rows ids, const char *tokenizer) {
  static const struct store_writer_column columns[] = {
      {.name = "tokens", .dtype = DTYPE_U16, .dimensions = 1, .shape = {LENGTH}}};
  const struct safetensors_pair pairs[] = {{.key = "tokenizer", .value = (char *)tokenizer},
                                           {.key = "packing", .value = "paragraph"}};
  struct store_writer writer;
  assert_ok(store_writer_open(&writer, &(struct store_writer_options){.folder = folder,
                                                                      .name = name,
                                                                      .tag = "abc",
                                                                      .columns = columns,
                                                                      .column_count = 1,
                                                                      .pairs = pairs,
                                                                      .pair_count = 2}));
  for (int row = 0; row < ROWS; row++) assert_ok(store_writer_add(&writer, 0, ids[row], LENGTH));
  assert_ok(store_writer_close(&writer));
}

#define HASH "0123456789abcdef0123456789abcdef"

static void write_node(const char *folder, rows train, rows held_out, const char *tokenizer,
                       const char *options) {
  static const char json[] =
      "{\"kind\": \"byte\", \"hash\": \"" HASH "\", \"vocabulary_size\": 10, \"pad\": 0, "
      "\"eos\": 1, \"unk\": 2, \"bos\": -1}";
  static const char statistics[] = "{\"input\": {\"documents\": 8, \"bytes\": 64, \"tokens\": 32}}";
  struct manifest manifest = {0};
  char path[128];
  assert_ok(file_make_folder(folder));
  write_side(folder, "train", train, tokenizer);
  write_side(folder, "held_out", held_out, HASH);
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  assert_ok(file_write(path, json, strlen(json)));
  snprintf(path, sizeof path, "%s/statistics.json", folder);
  assert_ok(file_write(path, statistics, strlen(statistics)));
  snprintf(path, sizeof path, "%s/fingerprint", folder);
  assert_ok(file_write(path, options, strlen(options)));
  assert_ok(manifest_collect(&manifest, folder));
  assert_ok(scalars_set_integer(&manifest.facts, "train_rows", ROWS));
  assert_ok(scalars_set_integer(&manifest.facts, "train_tokens", (int64_t)ROWS * LENGTH));
  assert_ok(scalars_set_integer(&manifest.facts, "held_out_rows", ROWS));
  assert_ok(scalars_set_integer(&manifest.facts, "held_out_tokens", (int64_t)ROWS * LENGTH));
  assert_ok(manifest_write(&manifest, folder));
  manifest_free(&manifest);
}

static rows train_rows = {{3, 4, 5, 1}, {3, 3, 1, 0}, {4, 2, 1, 0}, {7, 8, 1, 0}};
static rows held_rows = {{5, 4, 3, 1}, {6, 3, 1, 0}, {4, 4, 1, 0}, {8, 7, 1, 0}};
static const char options[] = "format: 1\nrun: tokenize\nboundary: line\nheld_out: 0.01\n";

static int make(void **state) {
  (void)state;
  write_node("sound", train_rows, held_rows, HASH, options);
  write_node("again", train_rows, held_rows, HASH, options);
  return 0;
}

static void stat_counts(void **state) {
  (void)state;
  assert_ok(data("stat", "sound", NULL));
  assert_says("tokenizer byte, 10 ids, 0123456789ab");
  assert_says("documents 8 bytes 64 tokens 32, 2.000 bytes a token");
  assert_says("train: 4 rows in 1 shards, 16 tokens, 18.75 % of them padding");
  assert_says("3 to 3                3 ########################################");
  assert_says("4 to 4                1 ##############\n");
  assert_says("8 of 10 ids used (80.0 %), unknown 6.250 % of tokens");
  assert_says("(id x times): 1 x 4 0 x 3 3 x 3 4 x 2");
  assert_status(STATUS_MISMATCH, data("stat", "missing", NULL));
}

static void audit_finds_nothing_where_nothing_is(void **state) {
  (void)state;
  assert_ok(data("audit", "sound", NULL));
  assert_null(strstr(out.bytes, "FAULT"));
  assert_says("held out: 1 ids that training never sees, 6.2500 % of its tokens");
  assert_says("unknown: 6.2500 % of the tokens to train on, 0.0000 % of those held out");
  assert_says("documents: 4 to train on (0 of them repeated), 4 held out");
}

static void audit_finds_every_fault(void **state) {
  (void)state;
  static rows train = {{3, 4, 5, 1}, {1, 0, 0, 0}, {4, 10, 1, 0}, {3, 4, 5, 1}};
  static rows held_out = {{5, 4, 3, 1}, {6, 3, 1, 0}, {3, 4, 5, 1}, {8, 7, 99, 0}};
  write_node("faulty", train, held_out, "another", options);
  assert_status(STATUS_DAMAGED, data("audit", "faulty", NULL));
  assert_says(
      "FAULT  2 ids outside the vocabulary, the first in 'train-abc-00000.safetensors.zst', row "
      "2, position 1");
  assert_says("FAULT  1 rows without text, the first in 'train-abc-00000.safetensors.zst', row 1, "
              "position 0");
  assert_says("FAULT  1 documents held out that are trained on as well, the first in "
              "'held_out-abc-00000.safetensors.zst', row 2");
  assert_says("FAULT  1 shards of another tokenizer");
  assert_says("(1 of them repeated)");
  assert_non_null(strstr(error_message(), "4 kinds of faults"));
  assert_status(STATUS_DAMAGED, data("stat", "faulty", NULL));
  assert_non_null(strstr(error_message(), "row 3 holds the id 99"));
}

static void audit_compares_counts_and_hashes(void **state) {
  (void)state;
  struct manifest manifest = {0};
  struct text bytes = {0};
  assert_ok(manifest_read(&manifest, "faulty"));
  assert_ok(scalars_set_integer(&manifest.facts, "train_rows", 5));
  assert_ok(manifest_write(&manifest, "faulty"));
  manifest_free(&manifest);
  assert_status(STATUS_DAMAGED, data("audit", "faulty", NULL));
  assert_says("FAULT  train_rows: 4, the manifest says 5");
  assert_ok(file_read(&bytes, "faulty/train-abc-00000.safetensors.zst"));
  bytes.bytes[bytes.length / 2] ^= 4;
  assert_ok(file_write("faulty/train-abc-00000.safetensors.zst", bytes.bytes, bytes.length));
  text_free(&bytes);
  assert_status(STATUS_DAMAGED, data("audit", "faulty", NULL));
  assert_says("FAULT  'faulty/train-abc-00000.safetensors.zst' is damaged in block");
}

static void diff_of_equals(void **state) {
  (void)state;
  assert_ok(data("diff", "sound", "again"));
  assert_string_equal(out.bytes, "the same\n");
}

static void diff_names_the_first_difference(void **state) {
  (void)state;
  static rows train = {{3, 4, 5, 1}, {3, 3, 1, 0}, {4, 6, 1, 0}, {7, 8, 1, 0}};
  write_node("other", train, held_rows, HASH,
             "format: 1\nrun: tokenize\nboundary: file\nheld_out: 0.01\n");
  assert_status(STATUS_MISMATCH, data("diff", "sound", "other"));
  assert_says("< boundary: line\n> boundary: file\n");
  assert_says("train-abc-00000.safetensors.zst: other bytes\n"
              "  tokens: first in row 2, position 1: from there [3] 2 1 0 and [3] 6 1 0\n");
  assert_null(strstr(out.bytes, "held_out-"));
  assert_status(STATUS_MISMATCH, data("diff", "sound/train-abc-00000.safetensors.zst",
                                      "other/train-abc-00000.safetensors.zst"));
  assert_says("  tokens: first in row 2, position 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stat_counts),
      cmocka_unit_test(audit_finds_nothing_where_nothing_is),
      cmocka_unit_test(audit_finds_every_fault),
      cmocka_unit_test(audit_compares_counts_and_hashes),
      cmocka_unit_test(diff_of_equals),
      cmocka_unit_test(diff_names_the_first_difference),
  };
  const int failed = cmocka_run_group_tests_name("data commands", tests, make, NULL);
  text_free(&out);
  return failed;
}
