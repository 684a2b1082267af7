/* millrace submit: one Slurm job for each node that is missing or stale. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/jobs_folder.h"
#include "pipeline/driver/launch_slurm.h"
#include "pipeline/driver/sweep_run.h"

struct submission {
  const struct arguments *arguments;
  struct run *run;
  struct site site;
  struct text job_template;
  struct graph graph;
  char jobs[RECIPE_NODES][LEDGER_JOB_BYTES]; /* of nodes that will be made */
  size_t submitted;
  bool trial; /* Slurm is only asked whether it would run the jobs */
};

static enum status read_template(struct submission *s) {
  char path[PATH_MAX];
  if (s->arguments->job_template) return file_read(&s->job_template, s->arguments->job_template);
  TRY(jobs_folder_find(path, "slurm/node.sh"));
  return file_read(&s->job_template, path);
}

/* "afterok:12:13", the jobs of the node's inputs that are still to be made. */
static enum status list_dependencies(struct text *list, const struct submission *s,
                                     const struct recipe_node *node) {
  TRY(text_add(list, ""));
  for (size_t i = 0; i < node->input_count; i++) {
    const char *job = s->jobs[node->inputs[i]];
    if (*job) TRY(text_format(list, "%s:%s", list->length ? "" : "afterok", job));
  }
  return STATUS_OK;
}

static void print_job(const struct slurm_job *job, const char *id) {
  printf("%-14s job %s", job->node->name, id);
  if (job->array) printf(", tasks %s", job->array);
  if (*job->dependency) printf(" after %s", strchr(job->dependency, ':') + 1);
  printf("\n");
}

static enum status submit_script(struct submission *s, const struct slurm_job *job,
                                 const struct text *script) {
  const struct recipe_node *node = job->node;
  char path[PATH_MAX], *id = s->jobs[node - s->run->recipe.nodes];
  if (s->trial) return launch_slurm_try(script, job, s->arguments);
  TRY(run_path(path, s->run, node->name, job->array ? ".array.job.sh" : ".job.sh"));
  s->submitted++;
  if (s->arguments->dry_run) {
    printf("# --- %s%s%s, after %s\n%s\n", path, job->array ? ", tasks " : "",
           job->array ? job->array : "",
           *job->dependency ? strchr(job->dependency, ':') + 1 : "nothing", script->bytes);
    snprintf(id, LEDGER_JOB_BYTES, "<%.40s%s>", node->name, job->array ? ".array" : "");
    return STATUS_OK;
  }
  TRY(file_write(path, script->bytes, script->length));
  TRY(launch_slurm_submit(id, path, s->run, job, s->arguments));
  print_job(job, id);
  return ledger_submit(s->run, node->name, id);
}

static enum status submit_job(struct submission *s, const struct slurm_job *job) {
  struct text script = {0};
  enum status status = launch_slurm_script(&script, &s->job_template, s->run, &s->site, job);
  if (status == STATUS_OK) status = submit_script(s, job, &script);
  text_free(&script);
  return status;
}

/* The tasks of a sweep's array whose configurations are not all finished: "1,4-6", "" for none. */
static enum status list_tasks(struct text *list, const struct sweep_of *of, int64_t tasks,
                              bool look) {
  int64_t first = 0;
  TRY(text_add(list, ""));
  for (int64_t task = 1; task <= tasks + 1; task++) {
    bool todo = false;
    for (int64_t i = task - 1; task <= tasks && !todo && i < (int64_t)of->sweep.count; i += tasks) {
      struct sweep_standing standing = {.state = SWEEP_TO_BE_MADE};
      if (look) TRY(sweep_look(&standing, of, (size_t)i));
      todo = standing.state != SWEEP_FINISHED;
    }
    if (todo && !first) first = task;
    if (todo || !first) continue;
    TRY(text_format(list, "%s%lld", list->length ? "," : "", (long long)first));
    if (task - 1 > first) TRY(text_format(list, "-%lld", (long long)(task - 1)));
    first = 0;
  }
  return STATUS_OK;
}

/* What a task of a sweep's array needs: the most of the nodes that it may make. */
static void widen(struct slurm_job *job, const struct recipe *recipe) {
  for (size_t i = 0; i < recipe->node_count; i++) {
    const struct options *options = &recipe->nodes[i].options;
    if (!recipe_depends(recipe, job->node, &recipe->nodes[i])) continue;
    if (options->ranks > job->ranks) job->ranks = options->ranks;
    if (options->threads > job->threads) job->threads = options->threads;
  }
}

/* The configurations as an array of jobs; the job that gathers them runs whatever became of it. */
static enum status submit_array(struct submission *s, const struct recipe_node *node,
                                const char *dependency) {
  char flags[96];
  struct sweep_of of;
  struct text tasks = {0};
  TRY(sweep_check_node(s->run, node, s->arguments));
  TRY(sweep_of_open(&of, s->run, node));
  const int64_t most = launch_slurm_tasks(), wanted = (int64_t)of.sweep.count;
  const int64_t count = wanted < most ? wanted : most;
  snprintf(flags, sizeof flags, "--task $SLURM_ARRAY_TASK_ID --tasks %lld", (long long)count);
  struct slurm_job job = {
      .node = node, .ranks = 1, .threads = 1, .flags = flags, .dependency = dependency};
  widen(&job, &s->run->recipe);
  if (count < wanted && !s->trial)
    printf("%-14s %lld configurations, and MaxArraySize allows %lld tasks: each makes up to %lld\n",
           node->name, (long long)wanted, (long long)most,
           (long long)((wanted + count - 1) / count));
  const bool look = !s->graph.nodes[node - s->run->recipe.nodes].waits;
  enum status status = list_tasks(&tasks, &of, count, look);
  job.array = tasks.bytes;
  if (status == STATUS_OK && tasks.length) status = submit_job(s, &job);
  text_free(&tasks);
  sweep_of_close(&of);
  return status;
}

static enum status submit_sweep(struct submission *s, const struct recipe_node *node,
                                const char *dependency) {
  char after[LEDGER_JOB_BYTES + 16] = "";
  const char *array = s->jobs[node - s->run->recipe.nodes];
  TRY(submit_array(s, node, dependency));
  if (*array) snprintf(after, sizeof after, "afterany:%s", array);
  const struct slurm_job gather = {.node = node,
                                   .ranks = 1,
                                   .threads = 1,
                                   .flags = "--gather",
                                   .dependency = *array ? after : dependency};
  return submit_job(s, &gather);
}

static enum status submit_node(struct submission *s, size_t index) {
  const struct recipe_node *node = &s->run->recipe.nodes[index];
  const struct options *options = &node->options;
  struct text dependencies = {0};
  enum status status = list_dependencies(&dependencies, s, node);
  const struct slurm_job job = {.node = node,
                                .ranks = options->ranks,
                                .threads = options->threads ? options->threads : 1,
                                .flags = "",
                                .dependency = dependencies.bytes};
  if (status == STATUS_OK)
    status =
        node->kind == KIND_SWEEP ? submit_sweep(s, node, dependencies.bytes) : submit_job(s, &job);
  text_free(&dependencies);
  return status;
}

/* A node that an earlier submission has in the queue, or that runs, is not submitted again. */
static enum status is_under_way(bool *under_way, struct submission *s, size_t index) {
  const char *name = s->run->recipe.nodes[index].name;
  struct ledger_entry entry;
  TRY(ledger_read(&entry, s->run, name));
  const bool queued = *entry.job && launch_slurm_is_queued(entry.job);
  *under_way = queued || s->graph.nodes[index].running;
  if (queued) snprintf(s->jobs[index], LEDGER_JOB_BYTES, "%s", entry.job);
  if (queued && !s->trial) printf("%-14s job %s is in the queue\n", name, entry.job);
  if (*under_way && !queued && !s->trial)
    printf("%-14s is being made by %s\n", name, s->graph.nodes[index].holder);
  return STATUS_OK;
}

static enum status submit_nodes(struct submission *s, bool trial) {
  s->trial = trial;
  for (size_t i = 0; i < s->run->recipe.node_count; i++) {
    const size_t index = s->run->recipe.order[i];
    bool under_way = false;
    if (s->graph.nodes[index].state == NODE_FINISHED) continue;
    TRY(graph_check_node(&s->graph, index));
    TRY(is_under_way(&under_way, s, index));
    if (!under_way) TRY(submit_node(s, index));
  }
  return STATUS_OK;
}

/* No job is submitted unless all of them could run. */
static enum status submit_all(struct submission *s) {
  TRY(site_find(&s->site, s->arguments));
  TRY(read_template(s));
  TRY(graph_examine(&s->graph, s->run));
  TRY(submit_nodes(s, true));
  if (!s->arguments->dry_run) TRY(run_prepare(s->run));
  TRY(submit_nodes(s, false));
  printf("%zu jobs %s for '%s': %s\n", s->submitted,
         s->arguments->dry_run ? "would be submitted" : "submitted", s->run->recipe.name,
         s->run->folder);
  return STATUS_OK;
}

enum status command_submit(int argc, char **argv) {
  struct arguments arguments;
  struct run run;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.operands.count == 1, STATUS_USAGE,
        "expected one recipe: millrace submit RECIPE [--dry-run] [--sbatch OPTION]...");
  TRY(run_open(&run, &arguments, 0));
  struct submission submission = {.arguments = &arguments, .run = &run};
  const enum status status = submit_all(&submission);
  text_free(&submission.job_template);
  graph_free(&submission.graph);
  run_close(&run);
  TRY(status);
  return STATUS_OK;
}
