#include "tests/common/tokenize_case.h"

#include <stdio.h>
#include <string.h>

#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "stages/tokenize/tokenize_stage.h"

static int calls_before_stop = -1;

bool stage_stop_requested(void) {
  return calls_before_stop >= 0 && calls_before_stop-- <= 0;
}

void tokenize_case_stop_after(int units) {
  calls_before_stop = units;
}

struct tokenize_outcome tokenize_case_run(struct comm *comm, const struct options *options,
                                          const char *folder) {
  const struct recipe_node node = {.name = "tokens", .kind = KIND_TOKENIZE};
  struct manifest manifest = {0};
  struct tokenize_outcome outcome = {.status = STATUS_OK};
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
  outcome.status = comm_agree(comm, outcome.status); /* the folder is there for all */
  return outcome;
}

static enum status write_corpus(const char *path, int documents, uint64_t seed,
                                tokenize_case_word *word) {
  struct text text = {0};
  for (int i = 0; i < documents; i++) {
    const int source = i % 10 == 9 ? i - 9 : i;
    const struct random_stream draw = random_open(seed, "corpus", (uint64_t)source, 0);
    const uint64_t words = 5 + random_below(draw, 0, 40);
    for (uint64_t w = 1; w <= words; w++) TRY(word(&text, draw, w));
    TRY(text_add(&text, "\n\n"));
  }
  const enum status status = file_write(path, text.bytes, text.length);
  text_free(&text);
  return status;
}

enum status tokenize_case_inputs(tokenize_case_word *word, int share) {
  TRY(file_make_folder("text"));
  for (int i = 0; i < TOKENIZE_CASE_FILES; i++) {
    char path[64];
    snprintf(path, sizeof path, "text/%d.txt", i);
    TRY(write_corpus(path, 80 * i + 1, (uint64_t)(i / share), word));
  }
  return STATUS_OK;
}

void tokenize_case_folder(struct parallel_test *test, const char *name) {
  if (test->world->rank == 0) parallel_ok(test, file_make_folder(name));
  parallel_ok(test, comm_barrier(test->world));
}

void tokenize_case_compare(struct parallel_test *test, const struct options *options,
                           const char *name) {
  char alone[64], together[64];
  snprintf(alone, sizeof alone, "%s-alone", name);
  snprintf(together, sizeof together, "%s-together", name);
  tokenize_case_folder(test, alone);
  tokenize_case_folder(test, together);
  struct comm single;
  struct tokenize_outcome first = {.status = STATUS_OK};
  if (!parallel_ok(test, comm_split(&single, test->world, test->world->rank))) return;
  if (test->world->rank == 0) first = tokenize_case_run(&single, options, alone);
  parallel_ok(test, first.status);
  const struct tokenize_outcome second = tokenize_case_run(test->world, options, together);
  parallel_ok(test, second.status);
  parallel_expect(test, strcmp(first.identity, second.identity) == 0);
  comm_free(&single);
}
