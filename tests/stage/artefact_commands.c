/* np: 1 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/commands.h"
#include "sharding/store_writer.h"
#include "tests/common/checkpoint_case.h"
#include "tests/common/parallel.h"

/* `millrace data` and `millrace ckpt` (R-CKP-8): what they print of files made here. */

/* Runs a command with its output caught in `out`. */
static enum status run(struct text *out, enum status command(int, char **), const char *name,
                       const char *words[4]) {
  char *argv[6] = {(char *)name};
  int argc = 1;
  for (int i = 0; i < 4 && words[i]; i++) argv[argc++] = (char *)words[i];
  fflush(stdout);
  const int kept = dup(1), file = open("caught", O_RDWR | O_CREAT | O_TRUNC, 0666);
  dup2(file, 1);
  const enum status status = command(argc, argv);
  fflush(stdout);
  dup2(kept, 1);
  close(kept);
  close(file);
  text_clear(out);
  file_read(out, "caught");
  return status;
}

static enum status data(struct text *out, const char *verb, const char *path, const char *more) {
  return run(out, command_data, "data", (const char *[4]){verb, path, more, more ? "2" : NULL});
}

static enum status ckpt(struct text *out, const char *verb, const char *path, const char *more) {
  return run(out, command_ckpt, "ckpt", (const char *[4]){verb, path, more, NULL});
}

static const struct store_writer_column columns[] = {
    {.name = "tokens", .dtype = DTYPE_U16, .dimensions = 1, .shape = {3}},
    {.name = "text", .dtype = DTYPE_U8, .dimensions = 1, .ragged = true},
    {.name = "x", .dtype = DTYPE_BF16, .dimensions = 2, .shape = {2, 2}, .planes = true}};

static enum status write_shards(void) {
  struct manifest manifest = {0};
  struct store_writer writer;
  const struct store_writer_options options = {
      .folder = "s", .name = "train", .tag = "abc", .columns = columns, .column_count = 3};
  TRY(file_make_folder("s"));
  TRY(store_writer_open(&writer, &options));
  for (uint16_t row = 0; row < 3; row++) {
    const uint16_t tokens[3] = {row, 500, 65535};
    const bf16 x[4] = {0x3f80, 0xbf80, 0x4000, row};
    TRY(store_writer_add(&writer, 0, tokens, 3));
    TRY(store_writer_add(&writer, 1, "a row\nof text", 5 + 4 * row));
    TRY(store_writer_add(&writer, 2, x, 4));
  }
  TRY(store_writer_close(&writer));
  TRY(manifest_collect(&manifest, "s"));
  TRY(manifest_write(&manifest, "s"));
  manifest_free(&manifest);
  return STATUS_OK;
}

static const char SHARD[] = "s/train-abc-00000.safetensors.zst";

static void shards_are_shown(struct parallel_test *test) {
  struct text out = {0};
  parallel_expect(test, write_shards() == STATUS_OK);
  parallel_expect(test, data(&out, "ls", "s", NULL) == STATUS_OK);
  parallel_expect(test, strstr(out.bytes, SHARD) && strstr(out.bytes, "U16 [3, 3]"));
  parallel_expect(test, strstr(out.bytes, "BF16 [3, 2, 2], byte planes") != NULL);
  parallel_expect(test, data(&out, "head", SHARD, "tokens") == STATUS_OK);
  parallel_expect(test, strcmp(out.bytes, "tokens[0] [3] 0 500 65535\n"
                                          "tokens[1] [3] 1 500 65535\n") == 0);
  parallel_expect(test, data(&out, "head", "s", "text") == STATUS_OK);
  parallel_expect(test, strcmp(out.bytes, "text[0] \"a row\"\ntext[1] \"a row\\nof \"\n") == 0);
  parallel_expect(test, data(&out, "head", "s", "x") == STATUS_OK);
  parallel_expect(test, strncmp(out.bytes, "x[0] [4] 1 -1 2 0\n", 18) == 0);
  parallel_expect(test, data(&out, "head", "s", "token") == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "nearest name is tokens") != NULL);
  parallel_expect(test, data(&out, "verify", "s", NULL) == STATUS_OK);
  parallel_expect(test, data(&out, "show", "s", NULL) == STATUS_USAGE);
  text_free(&out);
}

static void exports_are_plain(struct parallel_test *test) {
  struct text out = {0};
  struct safetensors file;
  bf16 x[12] = {0};
  const char *words[4] = {"export", SHARD, "plain.safetensors", NULL};
  parallel_expect(test, run(&out, command_data, "data", words) == STATUS_OK);
  parallel_expect(test, run(&out, command_data, "data", words) == STATUS_WRITE); /* is there */
  parallel_expect(test, safetensors_open(&file, "plain.safetensors", NULL) == STATUS_OK);
  const struct safetensors_tensor *tensor = safetensors_find(&file, "x");
  if (parallel_expect(test, tensor && tensor->dtype == DTYPE_BF16 && tensor->dimensions == 3)) {
    const struct blocks_range all = {.bytes = sizeof x};
    parallel_expect(test, safetensors_read(&file, NULL, tensor, x, all) == STATUS_OK);
    parallel_expect(test, x[8] == 0x3f80 && x[10] == 0x4000 && x[11] == 2);
  }
  parallel_expect(test, safetensors_value(&file, "planes.x") == NULL);
  safetensors_close(&file);
  text_free(&out);
}

static void flip(const char *path, off_t place) {
  unsigned char byte = 0;
  const int fd = open(path, O_RDWR);
  if (pread(fd, &byte, 1, place) == 1) byte ^= 1;
  if (pwrite(fd, &byte, 1, place) != 1) abort();
  close(fd);
}

static void damaged_shards_are_named(struct parallel_test *test) {
  struct text out = {0};
  flip(SHARD, 300);
  parallel_expect(test, data(&out, "verify", "s", NULL) == STATUS_DAMAGED);
  parallel_expect(test,
                  strstr(out.bytes, "train-abc-00000.safetensors.zst' is damaged in block 0"));
  text_free(&out);
}

/* A stream that anybody may have written: cut inside a frame, it is refused with the place. */
static void other_streams_are_verified(struct parallel_test *test) {
  static const char frame[] = "\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00"
                              "abc"; /* one raw block */
  struct text out = {0};
  parallel_expect(test, file_write("n.zst", frame, 12) == STATUS_OK);
  parallel_expect(test, data(&out, "verify", "n.zst", NULL) == STATUS_OK);
  parallel_expect(test, strcmp(out.bytes, "n.zst: sound\n") == 0);
  parallel_expect(test, file_write("n.zst", frame, 11) == STATUS_OK);
  parallel_expect(test, data(&out, "verify", "n.zst", NULL) == STATUS_DAMAGED);
  parallel_expect(test, strstr(out.bytes, "truncated at byte 11") != NULL);
  text_free(&out);
}

static enum status save(struct comm *world, int64_t step) {
  struct checkpoint_case made;
  struct scalars state = {0};
  const struct checkpoint checkpoint = {
      .comm = world, .folder = "c", .run_id = "r", .keep = {9, 0, -1}};
  checkpoint_case_make(&made, 0, 1, 0);
  checkpoint_case_fill(&made, step / 10);
  scalars_set_integer(&state, "step", step);
  const enum status status = checkpoint_save(&checkpoint, step, &made.items, &state);
  scalars_free(&state);
  checkpoint_case_free(&made);
  return status;
}

static void checkpoints_are_shown(struct parallel_test *test) {
  struct text out = {0};
  const int64_t steps[] = {10, 11, 20};
  for (int i = 0; i < 3; i++) parallel_expect(test, save(test->world, steps[i]) == STATUS_OK);
  parallel_expect(test, ckpt(&out, "list", "c", NULL) == STATUS_OK);
  parallel_expect(test, strncmp(out.bytes, "step-20  ", 9) == 0 && strstr(out.bytes, ", latest"));
  parallel_expect(test, strstr(out.bytes, "run r, after step 11") != NULL);
  parallel_expect(test, ckpt(&out, "verify", "c", NULL) == STATUS_OK);
  parallel_expect(test, ckpt(&out, "verify", "c/step-10", NULL) == STATUS_OK);
  parallel_expect(test, ckpt(&out, "diff", "c/step-10", "c/step-11") == STATUS_OK);
  parallel_expect(test, strcmp(out.bytes, "state step: 10, 11\n0 of 7 tensors differ\n") == 0);
  parallel_expect(test, ckpt(&out, "diff", "c/step-10", "c/step-20") == STATUS_MISMATCH);
  parallel_expect(test, strstr(out.bytes, "6 of 7 tensors differ") != NULL); /* one is empty */
  parallel_expect(test, ckpt(&out, "list", "s", NULL) == STATUS_MISMATCH);
  text_free(&out);
}

static void damaged_checkpoints_are_named(struct parallel_test *test) {
  struct text out = {0};
  flip("c/step-20/tensors-00000.safetensors", 2000000);
  parallel_expect(test, ckpt(&out, "verify", "c", NULL) == STATUS_DAMAGED);
  parallel_expect(test, strstr(out.bytes, "tensors-00000.safetensors' is damaged in block 2") &&
                            strstr(out.bytes, "step-11: sound"));
  parallel_expect(test, file_remove("c/latest") == STATUS_OK);
  parallel_expect(test, ckpt(&out, "repair-pointer", "c", NULL) == STATUS_OK);
  parallel_expect(test, strcmp(out.bytes, "latest is step-11\n") == 0);
  text_free(&out);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"data ls, head and verify show shards", shards_are_shown},
      {"data export undoes the filters", exports_are_plain},
      {"R-DAT-4 data verify names the damaged block", damaged_shards_are_named},
      {"R-ZST-1 data verify reads any zstd stream", other_streams_are_verified},
      {"R-CKP-8 ckpt list, verify and diff", checkpoints_are_shown},
      {"R-CKP-8 ckpt verify names the damage, repair-pointer mends", damaged_checkpoints_are_named},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
