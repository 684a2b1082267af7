/* millrace submit: one Slurm job for each node that is missing or stale. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/jobs_folder.h"
#include "pipeline/driver/launch_slurm.h"

struct submission {
  const struct arguments *arguments;
  struct run *run;
  struct site site;
  struct text job_template;
  struct graph graph;
  char jobs[RECIPE_NODES][LEDGER_JOB_BYTES]; /* of nodes that will be made */
  size_t submitted;
};

static enum status read_template(struct submission *s) {
  char path[PATH_MAX];
  if (s->arguments->job_template) return file_read(&s->job_template, s->arguments->job_template);
  TRY(jobs_folder_find(path, "slurm/node.sh"));
  return file_read(&s->job_template, path);
}

/* "12:13", the jobs of the node's inputs that are still to be made. */
static enum status list_dependencies(struct text *list, const struct submission *s,
                                     const struct recipe_node *node) {
  TRY(text_add(list, ""));
  for (size_t i = 0; i < node->input_count; i++) {
    const char *job = s->jobs[node->inputs[i]];
    if (*job) TRY(text_format(list, "%s%s", list->length ? ":" : "", job));
  }
  return STATUS_OK;
}

static enum status submit_script(struct submission *s, size_t index, const struct text *script,
                                 const char *dependencies) {
  const struct recipe_node *node = &s->run->recipe.nodes[index];
  char path[PATH_MAX];
  char *job = s->jobs[index];
  TRY(run_path(path, s->run, node->name, ".job.sh"));
  if (s->arguments->dry_run) {
    snprintf(job, LEDGER_JOB_BYTES, "<%.40s>", node->name);
    printf("# --- %s, after %s\n%s\n", path, *dependencies ? dependencies : "nothing",
           script->bytes);
    return STATUS_OK;
  }
  TRY(file_write(path, script->bytes, script->length));
  TRY(launch_slurm_submit(job, path, dependencies, s->arguments));
  printf("%-14s job %s%s%s\n", node->name, job, *dependencies ? " after " : "", dependencies);
  return ledger_submit(s->run, node->name, job);
}

static enum status submit_node(struct submission *s, size_t index) {
  const struct recipe_node *node = &s->run->recipe.nodes[index];
  struct text script = {0}, dependencies = {0};
  enum status status = list_dependencies(&dependencies, s, node);
  if (status == STATUS_OK)
    status = launch_slurm_script(&script, &s->job_template, s->run, &s->site, node);
  if (status == STATUS_OK) status = submit_script(s, index, &script, dependencies.bytes);
  text_free(&script);
  text_free(&dependencies);
  s->submitted++;
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
  if (queued) printf("%-14s job %s is in the queue\n", name, entry.job);
  if (*under_way && !queued)
    printf("%-14s is being made by %s\n", name, s->graph.nodes[index].holder);
  return STATUS_OK;
}

static enum status submit_all(struct submission *s) {
  TRY(site_find(&s->site, s->arguments));
  TRY(read_template(s));
  TRY(graph_examine(&s->graph, s->run));
  if (!s->arguments->dry_run) TRY(run_prepare(s->run));
  for (size_t i = 0; i < s->run->recipe.node_count; i++) {
    const size_t index = s->run->recipe.order[i];
    bool under_way;
    if (s->graph.nodes[index].state == NODE_FINISHED) continue;
    TRY(graph_check_node(&s->graph, index));
    TRY(is_under_way(&under_way, s, index));
    if (!under_way) TRY(submit_node(s, index));
  }
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
