/* millrace-stage: every kind of stage in one MPI program.
 *
 *   mpirun -np R millrace-stage <kind> --run runs/<run> --node <node>
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sharding/world.h"
#include "stages/stage_end.h"
#include "stages/stage_run.h"
#include "stages/tokenize/tokenize_command.h"

#define STAGE(NAME, function) enum status function(struct stage *stage);
#include "stages/stages.def"
#undef STAGE

static enum status (*const functions[KIND_COUNT])(struct stage *) = {
#define STAGE(NAME, function) [KIND_##NAME] = function,
#include "stages/stages.def"
#undef STAGE
    [KIND_SWEEP] = NULL, /* of programs of their own */
    [KIND_REPORT] = NULL,
};

enum stage_count {
#define STAGE(NAME, function) COUNTED_##NAME,
#include "stages/stages.def"
#undef STAGE
  STAGE_COUNT
};
_Static_assert(STAGE_COUNT == KIND_COUNT - 2, "a kind of kinds.def has no line in stages.def");

static int64_t environment_integer(const char *name) {
  const char *text = getenv(name);
  int64_t value = 0;
  return text && text_parse_integer(&value, text) ? value : 0;
}

/* What the launcher says that it started. mpirun inside a Slurm job is mpirun. */
static struct world_expectation expectation(void) {
  const int64_t mpirun = environment_integer("OMPI_COMM_WORLD_SIZE");
  const int64_t srun = getenv("SLURM_STEP_ID") ? environment_integer("SLURM_STEP_NUM_TASKS") : 0;
  const char *launcher = srun > 0 ? "srun" : NULL;
  return (struct world_expectation){
      .ranks = mpirun > 0 ? mpirun : srun,
      .launcher = getenv("OMPI_COMM_WORLD_LOCAL_SIZE") && mpirun > 0 ? "mpirun" : launcher,
      .threads = omp_get_max_threads(),
      .session_folder = getenv("PMIX_SERVER_TMPDIR")};
}

/* Says where every rank runs and what will make ranks slow. Collective. */
static enum status check_world(struct comm *world, struct log *log) {
  const struct world_expectation expected = expectation();
  struct world_report report;
  struct text lines = {0};
  const enum status status = world_check(world, &expected, &report, &lines);
  log_lines(log, &lines);
  text_free(&lines);
  return status;
}

static enum status run(struct comm *world, const struct stage_command *command) {
  struct log log = {.out = world->rank == 0 ? stdout : NULL, .name = command->node};
  enum status status = check_world(world, &log);
  if (status == STATUS_OK) status = stage_run(world, &log, command, functions[command->kind]);
  return status;
}

static int help(int argc, char **argv) {
  enum kind kind;
  struct text text = {0};
  if (argc > 2 && kind_find(&kind, argv[1]) && options_help(&text, kind) == STATUS_OK)
    printf("%s", text.bytes);
  else
    printf("millrace-stage KIND --run FOLDER --node NODE, under mpirun; started by `millrace "
           "run`.\nmillrace-stage KIND --help lists the options of a kind.\n");
  text_free(&text);
  return 0;
}

static bool asks_for_help(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--help") == 0) return true;
  return argc == 1;
}

/* `millrace-stage tokenize --text ...`: no ranks, no run folder. */
static int tokenize(int argc, char **argv) {
  struct text output = {0};
  const enum status status = tokenize_command(&output, argc, argv);
  if (status == STATUS_OK)
    fwrite(output.bytes, 1, output.length, stdout);
  else
    log_failure(STAGE_PROGRAM, status);
  text_free(&output);
  return error_exit_code(status);
}

int main(int argc, char **argv) {
  struct comm world = {0};
  struct stage_command command;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (asks_for_help(argc, argv)) return help(argc, argv);
  if (strcmp(argv[1], "tokenize") == 0 && tokenize_command_is_meant(argc - 2, argv + 2))
    return tokenize(argc - 2, argv + 2);
  enum status status = stage_command_parse(&command, argc - 1, argv + 1);
  const bool yields = environment_integer("OMPI_MCA_mpi_yield_when_idle") > 0; /* by the launcher */
  if (status == STATUS_OK) status = stage_watch_signals();
  if (status == STATUS_OK) status = comm_init(&world, &(struct comm_options){.yield = yields});
  const bool opened = status == STATUS_OK;
  if (opened) status = run(&world, &command);
  if (status != STATUS_OK && (!opened || world.rank == 0)) log_failure(STAGE_PROGRAM, status);
  if (opened) comm_finalize(&world);
  return error_exit_code(status);
}
