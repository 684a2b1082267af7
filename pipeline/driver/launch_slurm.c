#include "pipeline/driver/launch_slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/process.h"

enum { DEFAULT_ARRAY_SIZE = 1001 };

/* Appends the value of the placeholder called `name`; `*known` is false when there is none. */
static enum status add_value(struct text *script, const char *name, const struct run *run,
                             const struct site *site, const struct slurm_job *job, bool *known) {
  char self[PATH_MAX];
  char flags[PATH_MAX + 128] = "";
  TRY(site_beside(self, "millrace"));
  const int used = snprintf(flags, sizeof flags, "%s", job->flags);
  if (site->by_hand)
    snprintf(flags + used, sizeof flags - (size_t)used, " --stage-program '%s'", site->stage);
  const struct {
    const char *name, *text;
    int64_t number;
  } values[] = {{"RUN", run->recipe.name, 0},
                {"NODE", job->node->name, 0},
                {"FOLDER", run->folder, 0},
                {"LAUNCHER", site->launcher, 0},
                {"MILLRACE", self, 0},
                {"FLAGS", flags, 0},
                {"RANKS", NULL, job->ranks},
                {"THREADS", NULL, job->threads},
                {"CORES", NULL, job->ranks * job->threads}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (strcmp(values[i].name, name) != 0) continue;
    *known = true;
    if (values[i].text) return text_add(script, values[i].text);
    return text_format(script, "%lld", (long long)values[i].number);
  }
  return STATUS_OK;
}

enum status launch_slurm_script(struct text *script, const struct text *template_text,
                                const struct run *run, const struct site *site,
                                const struct slurm_job *job) {
  size_t line = 1;
  for (const char *at = template_text->bytes; *at; at++) {
    char name[32] = "";
    int length = 0;
    bool known = false;
    line += *at == '\n';
    if (sscanf(at, "{{%31[A-Z_]}}%n", name, &length) != 1 || length == 0) {
      TRY(text_add_bytes(script, at, 1));
      continue;
    }
    TRY(add_value(script, name, run, site, job, &known));
    CHECK(known, STATUS_MISMATCH, "line %zu of the job template: unknown placeholder {{%s}}", line,
          name);
    at += length - 1;
  }
  return STATUS_OK;
}

static enum status read_job(char job[LEDGER_JOB_BYTES], const struct text *output) {
  const size_t length = output->length ? strcspn(output->bytes, ";\n") : 0;
  CHECK(length > 0 && length < LEDGER_JOB_BYTES, STATUS_ENVIRONMENT,
        "sbatch printed no job id: '%s'", output->bytes ? output->bytes : "");
  memcpy(job, output->bytes, length);
  job[length] = '\0';
  return STATUS_OK;
}

/* What the user asks of sbatch besides, and the script. */
static enum status add_own(struct launch *command, const char *path,
                           const struct arguments *arguments) {
  for (size_t i = 0; i < arguments->sbatch.count; i++)
    TRY(launch_add(command, "%s", arguments->sbatch.items[i]));
  return launch_add(command, "%s", path);
}

enum status launch_slurm_submit(char id[LEDGER_JOB_BYTES], const char *path, const struct run *run,
                                const struct slurm_job *job, const struct arguments *arguments) {
  struct launch command = {0};
  struct text output = {0};
  TRY(launch_add(&command, "sbatch"));
  TRY(launch_add(&command, "--parsable"));
  if (*job->dependency) {
    TRY(launch_add(&command, "--dependency=%s", job->dependency));
    TRY(launch_add(&command, "--kill-on-invalid-dep=yes"));
  }
  if (job->array) {
    TRY(launch_add(&command, "--array=%s", job->array));
    TRY(launch_add(&command, "--output=%s/%s.%%a.job.log", run->folder, job->node->name));
  }
  TRY(add_own(&command, path, arguments));
  enum status status = process_capture(&output, command.words);
  if (status == STATUS_OK) status = read_job(id, &output);
  text_free(&output);
  TRY(status);
  return STATUS_OK;
}

/* The words of a trial, whose complaint is to come as output. */
static enum status list_trial(struct launch *command, const char *path, const struct slurm_job *job,
                              const struct arguments *arguments) {
  static const char script[] = "exec \"$@\" 2>&1";
  static const char *const words[] = {"sh", "-c", script, "sh", "sbatch", "--test-only"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    TRY(launch_add(command, "%s", words[i]));
  if (job->array) TRY(launch_add(command, "--array=%s", job->array));
  return add_own(command, path, arguments);
}

/* A Slurm that cannot be asked has not refused: sbatch itself will say what is wrong. */
static enum status try_script(const char *path, const struct slurm_job *job,
                              const struct arguments *arguments) {
  struct launch command = {0};
  struct text said = {0};
  TRY(list_trial(&command, path, job, arguments));
  TRY(text_add(&said, ""));
  const bool failed = process_capture(&said, command.words) != STATUS_OK;
  const char *refusal = failed ? strstr(said.bytes, "allocation failure: ") : NULL;
  enum status status = STATUS_OK;
  error_clear();
  if (refusal)
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "node '%s': Slurm would not run its job, and none was submitted: %.*s; "
                         "change the job template, or what --sbatch gives",
                         job->node->name, (int)strcspn(refusal, "\n"), refusal);
  text_free(&said);
  return status;
}

enum status launch_slurm_try(const struct text *script, const struct slurm_job *job,
                             const struct arguments *arguments) {
  char path[PATH_MAX];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/millrace-job-XXXXXX", folder ? folder : "/tmp");
  const int fd = mkstemp(path);
  CHECK(fd >= 0, STATUS_ENVIRONMENT, "cannot make a temporary file '%s'", path);
  close(fd);
  enum status status = file_write(path, script->bytes, script->length);
  if (status == STATUS_OK) status = try_script(path, job, arguments);
  unlink(path);
  return status;
}

int64_t launch_slurm_tasks(void) {
  struct launch command = {0};
  struct text output = {0};
  long long size = DEFAULT_ARRAY_SIZE;
  enum status status = launch_add(&command, "scontrol");
  if (status == STATUS_OK) status = launch_add(&command, "show");
  if (status == STATUS_OK) status = launch_add(&command, "config");
  if (status == STATUS_OK) status = process_capture(&output, command.words);
  const char *line = status == STATUS_OK ? strstr(output.bytes, "MaxArraySize") : NULL;
  if (status != STATUS_OK) error_clear();
  if (!line || sscanf(line, "MaxArraySize = %lld", &size) != 1 || size < 2)
    size = DEFAULT_ARRAY_SIZE;
  text_free(&output);
  return size - 1;
}

bool launch_slurm_is_queued(const char *job) {
  struct launch command = {0};
  struct text output = {0};
  enum status status = launch_add(&command, "squeue");
  if (status == STATUS_OK) status = launch_add(&command, "--noheader");
  if (status == STATUS_OK) status = launch_add(&command, "--job=%s", job);
  if (status == STATUS_OK) status = launch_add(&command, "--format=%%T");
  if (status == STATUS_OK) status = process_capture(&output, command.words);
  const bool queued = status == STATUS_OK && output.length > 1;
  if (status != STATUS_OK) error_clear();
  text_free(&output);
  return queued;
}
