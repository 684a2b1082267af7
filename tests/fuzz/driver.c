/* The main program of a fuzz target.
 *
 *   TARGET [-seconds=S] [-seed=N]   run on its seeds, then on changed seeds, for S seconds of
 *                                   processor time; the input at work is kept in ./TARGET.input
 *   TARGET FILE...                  run on these inputs: a finding, again
 *   TARGET -write=FOLDER            write the seeds as files, for another fuzzer
 *
 * Changed inputs are a function of N and their number alone. With libFuzzer (FUZZ_LIBRARY), which
 * has a main of its own, only -write is ours.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "tests/common/fuzz.h"
#include "tests/common/fuzz_change.h"

static struct fuzz_seeds seeds;

void fuzz_seed(const void *bytes, size_t count) {
  fuzz_require(seeds.count < FUZZ_SEEDS, "the seeds fit in their table");
  fuzz_require(text_add_bytes(&seeds.items[seeds.count++], bytes, count) == STATUS_OK,
               "memory suffices");
}

static int write_seeds(const char *folder) {
  char path[PATH_MAX];
  fuzz_require(file_make_folder(folder) == STATUS_OK, "the folder can be made");
  for (size_t i = 0; i < seeds.count; i++) {
    snprintf(path, sizeof path, "%s/seed-%02zu", folder, i);
    fuzz_require(file_write(path, seeds.items[i].bytes, seeds.items[i].length) == STATUS_OK,
                 "a seed can be written");
  }
  return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  fuzz_make_seeds();
  if (*argc > 1 && strncmp((*argv)[1], "-write=", 7) == 0) exit(write_seeds((*argv)[1] + 7));
  return 0;
}

#ifndef FUZZ_LIBRARY
enum { HANG_SECONDS = 20, MEMORY_MIB = 1024 };

/* Where the input at work is seen after a crash of any kind. */
static char *record;
static int record_file;

static void open_record(const char *program) {
  char path[PATH_MAX];
  const char *slash = strrchr(program, '/');
  snprintf(path, sizeof path, "%s.input", slash ? slash + 1 : program);
  record_file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
  fuzz_require(record_file >= 0 && ftruncate(record_file, FUZZ_BYTES) == 0, "input can be kept");
  record = mmap(NULL, FUZZ_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, record_file, 0);
  fuzz_require(record != MAP_FAILED, "input can be kept");
  fprintf(stderr, "the input at work is in %s\n", path);
}

/* Inputs are exact copies, so that a sanitizer sees a read behind their end. */
static void run(const struct text *input) {
  uint8_t *copy = malloc(input->length ? input->length : 1);
  fuzz_require(copy != NULL, "memory suffices");
  if (input->length) memcpy(copy, input->bytes, input->length);
  if (record) {
    memcpy(record, copy, input->length);
    fuzz_require(ftruncate(record_file, (off_t)input->length) == 0, "input can be kept");
  }
  alarm(HANG_SECONDS);
  LLVMFuzzerTestOneInput(copy, input->length);
  alarm(0);
  if (record) fuzz_require(ftruncate(record_file, FUZZ_BYTES) == 0, "input can be kept");
  free(copy);
}

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fuzz(double seconds, uint64_t seed) {
  struct text input = {0};
  uint64_t runs = 0;
  const double begun = cpu_seconds();
  for (size_t i = 0; i < seeds.count; i++) run(&seeds.items[i]);
  for (; cpu_seconds() - begun < seconds; runs++) {
    fuzz_change(&input, &seeds, seed, runs);
    run(&input);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%llu inputs, %.1f s, %ld MiB\n", (unsigned long long)runs, cpu_seconds() - begun,
         usage.ru_maxrss >> 10);
  fuzz_require(usage.ru_maxrss >> 10 < MEMORY_MIB, "memory stays below 1 GiB");
  text_free(&input);
}

static void run_file(const char *path) {
  struct text input = {0};
  fuzz_require(file_read(&input, path) == STATUS_OK, "the input can be read");
  run(&input);
  text_free(&input);
}

int main(int argc, char **argv) {
  double seconds = 1;
  int64_t seed = 1, files = 0;
  LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "-seconds=", 9) == 0)
      fuzz_require(text_parse_real(&seconds, argv[i] + 9), "-seconds= has a number");
    else if (strncmp(argv[i], "-seed=", 6) == 0)
      fuzz_require(text_parse_integer(&seed, argv[i] + 6), "-seed= has a number");
    else
      run_file(argv[i]), files++;
  }
  if (files) return 0;
  open_record(argv[0]);
  fuzz(seconds, (uint64_t)seed);
  for (size_t i = 0; i < seeds.count; i++) text_free(&seeds.items[i]);
  return 0;
}
#endif
