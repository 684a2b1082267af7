#include "stages/stage.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requests; /* written by the handler only */

/* A second request means that the time to stop in order is over (R-SLM-1). */
static void request_stop(int signal) {
  (void)signal;
  if (++stop_requests > 1) _exit(error_exit_code(STATUS_STOPPED));
}

void stage_watch_signals(void) {
  static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
  struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    sigaction(signals[i], &action, NULL);
}

bool stage_stop_requested(void) {
  return stop_requests > 0;
}

enum status stage_folder(char path[STAGE_PATH_BYTES], const struct stage *stage,
                         const struct recipe_node *node) {
  CHECK(snprintf(path, STAGE_PATH_BYTES, "%s/%s", stage->run_folder, node->name) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s/%s'", stage->run_folder, node->name);
  return STATUS_OK;
}

/* "tokenize or embed" */
static void name_kinds(char out[256], unsigned kinds) {
  int used = 0;
  out[0] = '\0';
  for (int kind = 0; kind < KIND_COUNT; kind++)
    if (kinds & (1u << kind))
      used += snprintf(out + used, 256 - (size_t)used, "%s%s", used ? " or " : "",
                       kind_name((enum kind)kind));
}

enum status stage_input(char path[STAGE_PATH_BYTES], const struct recipe_node **node,
                        const struct stage *stage, unsigned kinds) {
  const struct recipe_node *found;
  char names[256];
  TRY(recipe_upstream(&found, stage->recipe, stage->node, kinds));
  name_kinds(names, kinds);
  CHECK(found, STATUS_MISMATCH, "node '%s' needs a node upstream that runs %s; add it to `from:`",
        stage->node->name, names);
  if (node) *node = found;
  return stage_folder(path, stage, found);
}
