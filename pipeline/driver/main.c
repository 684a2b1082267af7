/* millrace: the driver. Runs stages as programs of their own and never computes on tensors. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/process.h"

static const struct command {
  const char *name;
  enum status (*function)(int, char **);
  const char *program;
} commands[] = {
#define COMMAND(name, function, operands, help) {name, function, NULL},
#define PROGRAM(name, program, operands, help) {name, NULL, program},
#include "pipeline/driver/commands.def"
#undef COMMAND
#undef PROGRAM
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* Becomes the program behind a command: "millrace-report ARGS", "millrace-stage generate ARGS". */
static enum status become(const struct command *command, int argc, char **argv) {
  char path[PATH_MAX];
  struct launch launch = {0};
  TRY(site_beside(path, command->program));
  TRY(launch_add(&launch, "%s", path));
  const char *own = strrchr(command->program, '-') + 1;
  if (strcmp(own, command->name) != 0) TRY(launch_add(&launch, "%s", command->name));
  for (int i = 1; i < argc; i++) TRY(launch_add(&launch, "%s", argv[i]));
  return process_become(launch.words);
}

static enum status find_command(const struct command **command, const char *name) {
  const char *names[COMMAND_COUNT];
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    names[i] = commands[i].name;
    if (strcmp(name, commands[i].name) != 0) continue;
    *command = &commands[i];
    return STATUS_OK;
  }
  const char *nearest = text_nearest(name, names, COMMAND_COUNT);
  FAIL(STATUS_USAGE, "there is no command '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
       nearest ? nearest : "", nearest ? "'?" : "");
}

static bool asks_for_help(int argc, char **argv) {
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return true;
  return false;
}

static enum status dispatch(int argc, char **argv) {
  if (asks_for_help(argc, argv)) return command_help(argc, argv);
  const struct command *command = NULL;
  TRY(find_command(&command, argv[1]));
  if (command->program) return become(command, argc - 1, argv + 1);
  if (argc > 2 && strcmp(argv[2], "--help") == 0) return command_help(argc, argv);
  return command->function(argc - 1, argv + 1);
}

/* The last lines: result, reason, what to do next (R-SLM-6). */
static void report(enum status status, int argc, char **argv) {
  fflush(stdout);
  fprintf(stderr, "millrace: %s\n", error_message());
  if (status == STATUS_INTERNAL) fprintf(stderr, "%s", error_trace());
  fprintf(stderr, "millrace: %s (exit %d). Next: %s", error_meaning(status),
          error_exit_code(status), error_advice(status));
  if (status != STATUS_USAGE) {
    fprintf(stderr, ":");
    for (int i = 0; i < argc; i++) fprintf(stderr, " %s", argv[i]);
  }
  fprintf(stderr, "\n");
}

int main(int argc, char **argv) {
  const enum status status = dispatch(argc, argv);
  if (status != STATUS_OK) report(status, argc, argv);
  return error_exit_code(status);
}
