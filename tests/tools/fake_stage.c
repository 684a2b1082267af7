/* Stands in for millrace-stage and millrace-report in tests of the driver: makes a node's folder
 * with one small file. Its arguments are those of the real programs.
 *
 * FAKE in the environment says how nodes behave: "elf=exit65 cfm=sleep5 ar=nothing"; "elf:12=exit65"
 * is for the node with 12 steps, when it has no behaviour in all. A sleeping
 * node stops with 75 when asked to. Every start adds the node's name to <run>/trace.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/driver/publication.h"
#include "pipeline/driver/run.h"

static volatile sig_atomic_t stopped;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

/* The value of a flag, or NULL. */
static const char *value_of(int argc, char **argv, const char *flag) {
  for (int i = 1; i + 1 < argc; i++)
    if (strcmp(argv[i], flag) == 0) return argv[i + 1];
  return NULL;
}

/* The behaviour of `node` in FAKE: "" when it has none. */
static void look_up(char out[64], const char *node) {
  const char *fake = getenv("FAKE");
  const size_t length = strlen(node);
  out[0] = '\0';
  for (const char *at = fake ? strstr(fake, node) : NULL; at; at = strstr(at + 1, node))
    if (at[length] == '=' && (at == fake || at[-1] == ' ')) sscanf(at + length + 1, "%63s", out);
}

static void behaviour_of(char out[64], const struct recipe_node *node) {
  char with_steps[128];
  look_up(out, node->name);
  snprintf(with_steps, sizeof with_steps, "%s:%lld", node->name, (long long)node->options.steps);
  if (!*out) look_up(out, with_steps);
}

static void trace(const char *run, const char *node) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/trace", run);
  FILE *file = fopen(path, "a");
  if (!file) return;
  fprintf(file, "%s\n", node);
  fclose(file);
}

static enum status behave(const struct recipe_node *node) {
  char behaviour[64];
  int number = 0;
  behaviour_of(behaviour, node);
  if (sscanf(behaviour, "exit%d", &number) == 1)
    FAIL(error_status_of_exit(number), "node '%s' was told to fail", node->name);
  if (sscanf(behaviour, "kill%d", &number) == 1) raise(number);
  if (sscanf(behaviour, "sleep%d", &number) != 1) return STATUS_OK;
  for (int i = 0; i < number * 50 && !stopped; i++)
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  CHECK(!stopped, STATUS_STOPPED, "node '%s' was asked to stop", node->name);
  return STATUS_OK;
}

/* What plans read of finished nodes. */
static enum status add_facts(struct scalars *facts) {
  TRY(scalars_set_integer(facts, "train_rows", 1));
  return scalars_set_integer(facts, "held_out_rows", 1);
}

static enum status make(const struct recipe *recipe, const char *run, const char *name) {
  const struct recipe_node *node;
  struct publication publication = {0};
  char path[PATH_MAX + 16];
  TRY(recipe_find(&node, recipe, name));
  enum status status = publication_begin(&publication, recipe, node, run);
  snprintf(path, sizeof path, "%s/out.txt", publication.folder.partial);
  if (status == STATUS_OK) status = behave(node);
  FILE *file = status == STATUS_OK ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%s %lld\n", name, (long long)node->options.seed);
    fclose(file);
    status = manifest_add_file(&publication.manifest, publication.folder.partial, "out.txt");
  }
  if (status == STATUS_OK) status = add_facts(&publication.manifest.facts);
  char behaviour[64];
  behaviour_of(behaviour, node);
  if (status == STATUS_OK && strcmp(behaviour, "nothing") != 0)
    status = publication_finish(&publication, 1);
  publication_free(&publication);
  return status;
}

int main(int argc, char **argv) {
  char path[PATH_MAX];
  struct recipe recipe;
  const char *run = value_of(argc, argv, "--run"), *node = value_of(argc, argv, "--node");
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (!run || !node) return error_exit_code(STATUS_USAGE);
  if (rank && strcmp(rank, "0") != 0) return 0;
  signal(SIGUSR1, stop);
  signal(SIGTERM, stop);
  trace(run, node);
  snprintf(path, sizeof path, "%s/%s", run, RUN_RESOLVED);
  enum status status = recipe_load(&recipe, path, NULL, 0);
  if (status == STATUS_OK) {
    status = make(&recipe, run, node);
    recipe_free(&recipe);
  }
  if (status != STATUS_OK) fprintf(stderr, "fake stage: %s\n", error_message());
  printf("fake stage: %s %s\n", node, status == STATUS_OK ? "done" : "failed");
  return error_exit_code(status);
}
