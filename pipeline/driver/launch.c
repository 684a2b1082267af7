#include "pipeline/driver/launch.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MPIRUN_START_SECONDS = 10 };

enum status launch_add(struct launch *launch, const char *format, ...) {
  const size_t left = sizeof launch->bytes - launch->used;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(launch->bytes + launch->used, left, format, arguments);
  va_end(arguments);
  CHECK(length >= 0 && (size_t)length < left && launch->count + 1 < LAUNCH_WORDS, STATUS_MISMATCH,
        "the command that runs the node is too long: shorten the paths");
  launch->words[launch->count++] = launch->bytes + launch->used;
  launch->used += (size_t)length + 1;
  return STATUS_OK;
}

static enum status add_words(struct launch *launch, const char *words) {
  for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
    const size_t length = strcspn(words, " ");
    TRY(launch_add(launch, "%.*s", (int)length, words));
    words += length;
  }
  return STATUS_OK;
}

int64_t launch_threads(const struct site *site, const struct recipe_node *node) {
  if (node->options.threads) return node->options.threads;
  const int64_t threads = site->cores / node->options.ranks;
  return threads > 0 ? threads : 1;
}

/* Ranks that fit on the cores are bound to their own; others share the cores. Where no core is left
 * over for anything else, waiting ranks give theirs away. */
static enum status add_mpirun(struct launch *launch, const struct site *site,
                              const struct recipe_node *node) {
  const int64_t ranks = node->options.ranks, threads = launch_threads(site, node);
  TRY(launch_add(launch, "mpirun"));
  TRY(add_words(launch, "--quiet -np"));
  TRY(launch_add(launch, "%lld", (long long)ranks));
  if (site->root) TRY(launch_add(launch, "--allow-run-as-root"));
  if (ranks * threads <= site->cores) {
    TRY(add_words(launch, "--bind-to core --map-by"));
    TRY(launch_add(launch, "slot:PE=%lld", (long long)threads));
  } else {
    TRY(add_words(launch, "--oversubscribe --bind-to none"));
  }
  if (ranks * threads >= site->cores) TRY(add_words(launch, "--mca mpi_yield_when_idle 1"));
  /* without the right to read each other's memory, the single copy only prints warnings */
  TRY(add_words(launch, "--mca btl_vader_single_copy_mechanism none -x"));
  return launch_add(launch, "OMP_NUM_THREADS=%lld", (long long)threads);
}

static enum status add_srun(struct launch *launch, const struct site *site,
                            const struct recipe_node *node) {
  TRY(add_words(launch, "srun --mpi=pmix --kill-on-bad-exit=0 --ntasks"));
  TRY(launch_add(launch, "%lld", (long long)node->options.ranks));
  TRY(launch_add(launch, "--export=ALL,OMP_NUM_THREADS=%lld",
                 (long long)launch_threads(site, node)));
  return STATUS_OK;
}

enum status launch_node(struct launch *launch, const struct site *site, const struct run *run,
                        const struct recipe_node *node) {
  const bool parallel = kind_is_parallel(node->kind);
  const bool mpirun = strcmp(site->launcher, "mpirun") == 0;
  launch->start_seconds = parallel && mpirun ? MPIRUN_START_SECONDS : 0;
  launch->stop_signal = parallel && mpirun ? SIGUSR1 : SIGTERM; /* mpirun passes USR1 to its ranks,
                                                                   but ends them on TERM */
  if (parallel) TRY(mpirun ? add_mpirun(launch, site, node) : add_srun(launch, site, node));
  TRY(launch_add(launch, "%s", parallel ? site->stage : site->report));
  if (parallel) TRY(launch_add(launch, "%s", kind_name(node->kind)));
  TRY(add_words(launch, "--run"));
  TRY(launch_add(launch, "%s", run->folder));
  TRY(add_words(launch, "--node"));
  TRY(launch_add(launch, "%s", node->name));
  return parallel ? launch_add(launch, "--leased") : STATUS_OK;
}

enum status launch_format(struct text *text, const struct launch *launch) {
  for (size_t i = 0; i < launch->count; i++)
    TRY(text_format(text, "%s%s", i ? " " : "", launch->words[i]));
  return STATUS_OK;
}
