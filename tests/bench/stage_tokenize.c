/* np: 2 */
/* The whole stage (read, encode, pack, compress, write): one rank beside the tokenizer by itself,
 * and two ranks beside one. Needs ../shared/data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/timer.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "sharding/comm.h"
#include "stages/tokenize/inputs.h"
#include "stages/tokenize/tokenize_stage.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/bench.h"

enum { ROUNDS = 40, PATH = 1200 };

struct bench {
  struct comm world, alone;
  char data[PATH - 64], model[PATH], folder[PATH], input[PATH];
  struct options options;
  uint64_t bytes;
};

static enum status make_input(struct bench *bench) {
  struct text play = {0}, all = {0};
  char path[PATH + 64];
  snprintf(path, sizeof path, "%s/text/tinyshakespeare.txt", bench->data);
  TRY(file_read(&play, path));
  for (int round = 0; round < ROUNDS; round++) /* no two documents alike */
    for (const char *at = play.bytes, *stop; (stop = strstr(at, "\n\n")); at = stop + 2)
      TRY(text_format(&all, "%.*s %d\n\n", (int)(stop - at), at, round));
  const enum status status = file_write(bench->input, all.bytes, all.length);
  bench->bytes = all.length;
  text_free(&play);
  text_free(&all);
  return status;
}

/* Seconds of the stage on the ranks of `comm`. */
static double stage_seconds(struct bench *bench, struct comm *comm) {
  const struct recipe_node node = {.name = "tokens", .kind = KIND_TOKENIZE};
  struct manifest manifest = {0};
  char folder[PATH + 16];
  snprintf(folder, sizeof folder, "%s/%d", bench->folder, comm->size);
  if (comm->rank == 0 && (file_remove(folder) || file_make_folder(folder))) exit(EXIT_FAILURE);
  struct stage stage = {.node = &node,
                        .options = &bench->options,
                        .comm = comm,
                        .run_folder = bench->folder,
                        .folder = folder,
                        .manifest = &manifest};
  if (comm_barrier(comm) != STATUS_OK) exit(EXIT_FAILURE);
  const double begun = timer_now();
  if (tokenize_stage(&stage) != STATUS_OK) exit(EXIT_FAILURE);
  const double seconds = timer_now() - begun;
  manifest_free(&manifest);
  return seconds;
}

static enum status encode_document(void *state, const char *bytes, size_t count) {
  void *const *both = state;
  struct tokens *ids = both[1];
  ids->count = 0;
  return tokenizer_encode(both[0], ids, bytes, count);
}

/* Seconds of reading and encoding alone. */
static double encoding_seconds(struct bench *bench) {
  struct tokenizer *tokenizer;
  struct tokens ids = {0};
  struct inputs inputs;
  char spec[PATH + 16];
  snprintf(spec, sizeof spec, "t5:%s", bench->model);
  const struct inputs_request request = {
      .paths = &bench->options.input, .boundary = BOUNDARY_BLANK_LINE, .unit_bytes = UNIT_BYTES};
  if (tokenizer_open(&tokenizer, spec) || inputs_list(&inputs, &request)) exit(EXIT_FAILURE);
  void *both[] = {tokenizer, &ids};
  struct splitter splitter = {.boundary = BOUNDARY_BLANK_LINE,
                              .sink = {.add = encode_document, .state = both}};
  const double begun = timer_now();
  for (size_t i = 0; i < inputs.unit_count; i++)
    if (inputs_read(&inputs, &inputs.units[i], &splitter)) exit(EXIT_FAILURE);
  const double seconds = timer_now() - begun;
  splitter_free(&splitter);
  inputs_free(&inputs);
  tokens_free(&ids);
  tokenizer_close(tokenizer);
  return seconds;
}

static void measure(struct bench *bench) {
  const double megabytes = (double)bench->bytes / 1e6;
  double encoding = 0, one = 0;
  if (bench->world.rank == 0) {
    encoding = encoding_seconds(bench);
    one = stage_seconds(bench, &bench->alone);
  }
  if (comm_barrier(&bench->world) != STATUS_OK) exit(EXIT_FAILURE);
  const double both = stage_seconds(bench, &bench->world);
  if (bench->world.rank) return;
  bench_row("read_and_encode_t5", megabytes / encoding, "MB/s", 0, "");
  bench_row("stage_tokenize", megabytes / one, "MB/s", encoding / one, "read_and_encode_t5");
  bench_row("stage_tokenize_2_ranks", megabytes / both, "MB/s", one / both, "stage_tokenize");
}

static enum status prepare(struct bench *bench) {
  const char *root = getenv("ROOT"), *temporary = getenv("TMPDIR");
  snprintf(bench->data, sizeof bench->data, "%s/../shared/data", root ? root : ".");
  snprintf(bench->model, PATH, "%s/tokenizers/t5-spiece.model", bench->data);
  snprintf(bench->folder, PATH, "%s/millrace-bench-tokenize", temporary ? temporary : "/tmp");
  snprintf(bench->input, PATH, "%.1100s/text", bench->folder);
  options_defaults(&bench->options);
  bench->options.input = (struct option_texts){.count = 1, .values = {bench->input}};
  bench->options.tokenizer = TOKENIZER_T5;
  bench->options.tokenizer_model = bench->model;
  if (!file_exists(bench->data) || bench->world.rank) return STATUS_OK;
  TRY(file_make_folder(bench->folder));
  return make_input(bench);
}

int main(void) {
  static struct bench bench;
  if (comm_init(&bench.world, NULL) != STATUS_OK) return EXIT_FAILURE;
  if (bench.world.rank == 0) bench_head();
  if (comm_agree(&bench.world, prepare(&bench)) != STATUS_OK) return EXIT_FAILURE;
  if (comm_split(&bench.alone, &bench.world, bench.world.rank) != STATUS_OK) return EXIT_FAILURE;
  if (file_exists(bench.data)) measure(&bench);
  if (bench.world.rank == 0 && file_remove(bench.folder) != STATUS_OK) return EXIT_FAILURE;
  comm_free(&bench.alone);
  comm_finalize(&bench.world);
  return EXIT_SUCCESS;
}
