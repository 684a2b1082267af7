/* np: 2 */
/* The whole stage (read a tar of many documents, encode, pack, compress, hash, write) beside the
 * tokenizer by itself, both in processor time. The tars are read as they are: what decompression
 * costs has no part in it, and is shown by the same stage on .tar.xz. Two ranks stand beside one on
 * the clock, and so do a loop that touches no memory and the tokenizer by itself: what the machine
 * gives to two that have nothing to do with one another.
 * Needs ../shared/data. */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitoring/log.h"
#include "monitoring/timer.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "sharding/comm.h"
#include "stages/tokenize/inputs.h"
#include "stages/tokenize/tokenize_stage.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/bench.h"

enum { ARCHIVES = 4, ROUNDS = 20, REPEATS = 4, PACKED_REPEATS = 2, DOCUMENT = 4000, PATH = 1200 };
enum { SPINS = 300000000 };

struct bench {
  struct comm world, alone;
  char data[PATH - 64], model[PATH], folder[PATH], plain[PATH], packed[PATH];
  struct options options;
  struct text documents; /* of all archives, each ended by a zero byte */
};

struct seconds {
  double clock, processor;
};

static struct seconds now(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (struct seconds){timer_now(), (double)used.tv_sec + 1e-9 * (double)used.tv_nsec};
}

static void take_best(struct seconds *best, struct seconds begun) {
  const struct seconds ended = now();
  const double clock = ended.clock - begun.clock, processor = ended.processor - begun.processor;
  if (best->clock == 0 || clock < best->clock) best->clock = clock;
  if (best->processor == 0 || processor < best->processor) best->processor = processor;
}

static void demand(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, error_message());
  exit(EXIT_FAILURE);
}

/* Adds paragraphs of the play, marked with the round, until a document is long enough. */
static void make_documents(struct bench *bench) {
  struct text play = {0};
  char path[PATH + 64];
  snprintf(path, sizeof path, "%s/text/tinyshakespeare.txt", bench->data);
  demand(file_read(&play, path) == STATUS_OK, path);
  size_t begun = 0;
  for (int round = 0; round < ARCHIVES * ROUNDS; round++)
    for (const char *at = play.bytes, *stop; (stop = strstr(at, "\n\n")); at = stop + 2) {
      struct text *all = &bench->documents;
      const int count = (int)(stop - at);
      demand(text_format(all, "%.*s %d\n\n", count, at, round) == STATUS_OK, "text");
      if (all->length - begun < DOCUMENT) continue;
      demand(text_add_bytes(all, "", 1) == STATUS_OK, "text");
      begun = all->length;
    }
  bench->documents.length = begun;
  text_free(&play);
}

static void write_entry(struct archive *archive, const char *name, const char *bytes,
                        size_t count) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_set_pathname(entry, name);
  archive_entry_set_size(entry, (la_int64_t)count);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  demand(archive_write_header(archive, entry) == ARCHIVE_OK, archive_error_string(archive));
  demand(archive_write_data(archive, bytes, count) == (la_ssize_t)count, name);
  archive_entry_free(entry);
}

/* Writes documents from `at` until `share` bytes are written; returns where they end. */
static const char *write_archive(const struct bench *bench, const char *path, const char *at,
                                 size_t share) {
  char name[64];
  const char *const end = bench->documents.bytes + bench->documents.length, *begun = at;
  struct archive *archive = archive_write_new();
  archive_write_set_format_ustar(archive);
  if (strstr(path, ".xz")) archive_write_add_filter_xz(archive);
  if (strstr(path, ".xz")) archive_write_set_options(archive, "xz:compression-level=0");
  demand(archive_write_open_filename(archive, path) == ARCHIVE_OK, path);
  for (int i = 0; at < end && (size_t)(at - begun) < share; i++) {
    const size_t count = strlen(at);
    snprintf(name, sizeof name, "documents/%d.txt", i);
    write_entry(archive, name, at, count);
    at += count + 1;
  }
  demand(archive_write_close(archive) == ARCHIVE_OK, "closing an archive");
  archive_write_free(archive);
  return at;
}

static void encode(const struct bench *bench, struct tokenizer *tokenizer) {
  struct tokens ids = {0};
  const char *const end = bench->documents.bytes + bench->documents.length;
  for (const char *at = bench->documents.bytes; at < end;) {
    const size_t count = strlen(at);
    ids.count = 0;
    demand(tokenizer_encode(tokenizer, &ids, at, count) == STATUS_OK, "encoding");
    at += count + 1;
  }
  tokens_free(&ids);
}

/* Once more: as in the stage the model is opened, and its cache of words is empty. Collective. */
static void take_encoding(struct seconds *best, const struct bench *bench, struct comm *comm) {
  char spec[PATH + 16];
  struct tokenizer *tokenizer;
  snprintf(spec, sizeof spec, "%s:%s", options_choice(&bench->options, OPTION_tokenizer),
           bench->model);
  demand(comm_barrier(comm) == STATUS_OK, "barrier");
  const struct seconds begun = now();
  demand(tokenizer_open(&tokenizer, spec) == STATUS_OK, spec);
  encode(bench, tokenizer);
  tokenizer_close(tokenizer);
  demand(comm_barrier(comm) == STATUS_OK, "barrier");
  take_best(best, begun);
}

/* The stage on the ranks of `comm`. */
static void run_stage(const struct bench *bench, struct comm *comm, const char *folder) {
  const struct recipe_node node = {.name = "tokens", .kind = KIND_TOKENIZE};
  struct manifest manifest = {0};
  struct stage stage = {.node = &node,
                        .options = &bench->options,
                        .comm = comm,
                        .run_folder = bench->folder,
                        .folder = folder,
                        .manifest = &manifest};
  demand(tokenize_stage(&stage) == STATUS_OK, "the stage");
  manifest_free(&manifest);
}

static void take_stage(struct seconds *best, struct bench *bench, struct comm *comm,
                       const char *input) {
  char folder[PATH + 16];
  snprintf(folder, sizeof folder, "%s/%d", bench->folder, comm->size);
  bench->options.input = (struct option_texts){.count = 1, .values = {input}};
  if (comm->rank == 0) demand(!file_remove(folder) && !file_make_folder(folder), folder);
  demand(comm_barrier(comm) == STATUS_OK, "barrier");
  const struct seconds begun = now();
  run_stage(bench, comm, folder);
  take_best(best, begun);
}

/* A loop in registers. */
static struct seconds spin_seconds(struct comm *comm) {
  struct seconds best = {0};
  volatile uint64_t result = 0;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t x = 1;
    demand(comm_barrier(comm) == STATUS_OK, "barrier");
    const struct seconds begun = now();
    for (int64_t j = 0; j < SPINS; j++) x = (x ^ (x >> 13)) * 6364136223846793005u + 1;
    demand(comm_barrier(comm) == STATUS_OK, "barrier");
    take_best(&best, begun);
    result = x;
  }
  (void)result;
  return best;
}

/* The best of each, taken by turns: a machine that others use is as slow for all of them. */
struct measured {
  struct seconds encoding, plain, packed, both_encode, both;
};

static void take_all(struct measured *best, struct bench *bench) {
  for (int i = 0; i < REPEATS; i++) {
    if (bench->world.rank == 0) {
      take_encoding(&best->encoding, bench, &bench->alone);
      take_stage(&best->plain, bench, &bench->alone, bench->plain);
      if (i < PACKED_REPEATS) take_stage(&best->packed, bench, &bench->alone, bench->packed);
    }
    take_encoding(&best->both_encode, bench, &bench->world);
    if (i < PACKED_REPEATS) take_stage(&best->both, bench, &bench->world, bench->packed);
  }
}

static void measure(struct bench *bench) {
  const double megabytes = (double)bench->documents.length / 1e6;
  const char *kind = options_choice(&bench->options, OPTION_tokenizer);
  char tokenizer[64], name[64];
  struct measured best = {0};
  take_all(&best, bench);
  if (bench->world.rank) return;
  snprintf(tokenizer, sizeof tokenizer, "tokenizer_%s", kind);
  bench_row(tokenizer, megabytes / best.encoding.processor, "MB/s", 0, "");
  snprintf(name, sizeof name, "tokenizer_%s_2_ranks", kind);
  bench_row(name, 2 * megabytes / best.both_encode.clock, "MB/s",
            2 * best.encoding.clock / best.both_encode.clock, "1 rank");
  snprintf(name, sizeof name, "stage_tokenize_%s", kind);
  bench_row(name, megabytes / best.plain.processor, "MB/s",
            best.encoding.processor / best.plain.processor, tokenizer);
  snprintf(name, sizeof name, "stage_tokenize_%s_xz", kind);
  bench_row(name, megabytes / best.packed.clock, "MB/s", 0, "");
  snprintf(name, sizeof name, "stage_tokenize_%s_xz_2_ranks", kind);
  bench_row(name, megabytes / best.both.clock, "MB/s", best.packed.clock / best.both.clock,
            "1 rank");
}

static void measure_kind(struct bench *bench, enum tokenizer_choice kind, const char *model) {
  bench->options.tokenizer = kind;
  snprintf(bench->model, PATH, "%s/tokenizers/%s", bench->data, model);
  measure(bench);
}

/* What two ranks can gain here at all. */
static void measure_machine(struct bench *bench) {
  struct seconds one = {0};
  if (bench->world.rank == 0) one = spin_seconds(&bench->alone);
  demand(comm_barrier(&bench->world) == STATUS_OK, "barrier");
  const struct seconds both = spin_seconds(&bench->world);
  if (bench->world.rank == 0)
    bench_row("two_cores", 2 * SPINS / both.clock / 1e6, "Mspin/s", 2 * one.clock / both.clock,
              "1 core");
}

static void write_archives(const struct bench *bench, const char *folder, const char *suffix) {
  char path[PATH + 64];
  const size_t share = bench->documents.length / ARCHIVES + 1;
  const char *at = bench->documents.bytes;
  demand(file_make_folder(folder) == STATUS_OK, folder);
  for (int index = 0; index < ARCHIVES; index++) {
    snprintf(path, sizeof path, "%s/%d%s", folder, index, suffix);
    at = write_archive(bench, path, at, share);
  }
}

static void prepare(struct bench *bench) {
  make_documents(bench);
  if (bench->world.rank) return;
  write_archives(bench, bench->plain, ".tar");
  write_archives(bench, bench->packed, ".tar.xz");
}

static void name_places(struct bench *bench) {
  const char *root = getenv("ROOT"), *temporary = getenv("TMPDIR");
  snprintf(bench->data, sizeof bench->data, "%s/../shared/data", root ? root : ".");
  snprintf(bench->folder, PATH, "%s/millrace-bench-tokenize", temporary ? temporary : "/tmp");
  snprintf(bench->plain, PATH, "%.1100s/plain", bench->folder);
  snprintf(bench->packed, PATH, "%.1100s/packed", bench->folder);
  options_defaults(&bench->options);
  bench->options.boundary = BOUNDARY_FILE;
  bench->options.tokenizer_model = bench->model;
}

int main(void) {
  static struct bench bench;
  demand(comm_init(&bench.world, NULL) == STATUS_OK, "MPI");
  demand(comm_split(&bench.alone, &bench.world, bench.world.rank) == STATUS_OK, "MPI");
  if (bench.world.rank == 0) bench_head();
  name_places(&bench);
  if (file_exists(bench.data)) {
    prepare(&bench);
    demand(comm_barrier(&bench.world) == STATUS_OK, "barrier");
    measure_machine(&bench);
    measure_kind(&bench, TOKENIZER_T5, "t5-spiece.model");
    measure_kind(&bench, TOKENIZER_GPT2, "gpt2.tiktoken");
  }
  if (bench.world.rank == 0) demand(file_remove(bench.folder) == STATUS_OK, bench.folder);
  text_free(&bench.documents);
  comm_free(&bench.alone);
  comm_finalize(&bench.world);
  return EXIT_SUCCESS;
}
