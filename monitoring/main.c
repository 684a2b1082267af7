/* millrace-report: what a run found.
 *
 *   millrace-report --run runs/<run> --node <node>   makes a report node, or the table of a sweep
 *                                                    node; `millrace run` does this
 *   millrace-report runs/<run>                       shows a finished run again
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/report.h"
#include "monitoring/sweep_table.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/publication.h"

enum { TERMINAL_TEXTS = 1 };

static const char *const PAGE_NAME = "report.html";
static const char *const HELP =
    "millrace-report RUN-FOLDER            show the report of a finished run\n"
    "millrace-report --run RUN --node NODE  make a report or sweep node (`millrace run` does)\n";

struct request {
  const char *run_folder, *node; /* node NULL: show */
};

static enum status parse(struct request *request, int argc, char **argv) {
  *request = (struct request){0};
  for (int i = 1; i < argc; i++) {
    const char **value = strcmp(argv[i], "--run") == 0    ? &request->run_folder
                         : strcmp(argv[i], "--node") == 0 ? &request->node
                                                          : NULL;
    if (value) {
      CHECK(++i < argc, STATUS_USAGE, "%s needs a value", argv[i - 1]);
      *value = argv[i];
      continue;
    }
    if (i == 1 && strcmp(argv[i], "report") == 0) continue; /* as `millrace report` calls it */
    CHECK(*argv[i] != '-' && !request->run_folder, STATUS_USAGE,
          "'%s' was not expected; see millrace-report --help", argv[i]);
    request->run_folder = argv[i];
  }
  CHECK(request->run_folder, STATUS_USAGE, "no run folder was given, such as runs/demo");
  return STATUS_OK;
}

static enum status print_text(const struct report *report) {
  struct text out = {0};
  const enum status status = report_write_text(&out, report, TERMINAL_TEXTS);
  if (status == STATUS_OK) printf("\n%s\n", out.bytes);
  text_free(&out);
  return status;
}

/* The run's report node, or its last node where there is none. */
static const struct recipe_node *shown_node(const struct recipe *recipe) {
  for (size_t i = 0; i < recipe->node_count; i++)
    if (recipe->nodes[i].kind == KIND_REPORT) return &recipe->nodes[i];
  return &recipe->nodes[recipe->order[recipe->node_count - 1]];
}

static enum status show(const struct recipe *recipe, const char *run_folder) {
  const struct recipe_node *node = shown_node(recipe);
  struct report report;
  TRY(report_gather(&report, recipe, node, run_folder));
  const enum status status = print_text(&report);
  report_free(&report);
  if (status == STATUS_OK && node->kind == KIND_REPORT)
    printf("curves and texts: %s/%s/%s\n", run_folder, node->name, PAGE_NAME);
  return status;
}

static enum status write_page(const struct report *report, const char *folder) {
  char path[PATH_MAX];
  struct text html = {0};
  CHECK(snprintf(path, sizeof path, "%s/%s", folder, PAGE_NAME) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", folder);
  enum status status = report_write_page(&html, report);
  if (status == STATUS_OK) status = file_write(path, html.bytes, html.length);
  text_free(&html);
  return status;
}

static enum status make_sweep(struct publication *publication, const char *run_folder) {
  struct run run;
  struct sweep_of of;
  const struct recipe_node *node;
  TRY(run_open_folder(&run, run_folder));
  enum status status = recipe_find(&node, &run.recipe, publication->node->name);
  if (status == STATUS_OK) status = sweep_of_open(&of, &run, node);
  if (status == STATUS_OK) {
    struct text table = {0};
    status = sweep_table_make(publication, &of, &table);
    if (table.bytes) printf("\n%s\n", table.bytes);
    text_free(&table);
    sweep_of_close(&of);
  }
  run_close(&run);
  return status;
}

static enum status make(struct publication *publication, const struct recipe *recipe,
                        const struct recipe_node *node, const char *run_folder) {
  struct report report;
  TRY(publication_begin(publication, recipe, node, run_folder));
  if (publication->start == RUN_FOLDER_FINISHED) return show(recipe, run_folder);
  if (node->kind == KIND_SWEEP) return make_sweep(publication, run_folder);
  TRY(report_gather(&report, recipe, node, run_folder));
  enum status status = write_page(&report, publication->folder.partial);
  if (status == STATUS_OK) status = print_text(&report);
  report_free(&report);
  TRY(status);
  TRY(manifest_add_file(&publication->manifest, publication->folder.partial, PAGE_NAME));
  TRY(publication_finish(publication, 1));
  printf("curves and texts: %s/%s\n", publication->folder.path, PAGE_NAME);
  return STATUS_OK;
}

static enum status run(const struct request *request) {
  struct recipe recipe = {0};
  struct publication publication = {0};
  const struct recipe_node *node;
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/resolved.yaml", request->run_folder) < PATH_MAX,
        STATUS_USAGE, "path too long: '%s'", request->run_folder);
  TRY(recipe_load(&recipe, path, NULL, 0));
  enum status status = STATUS_OK;
  if (!request->node) {
    status = show(&recipe, request->run_folder);
  } else {
    status = recipe_find(&node, &recipe, request->node);
    if (status == STATUS_OK) status = make(&publication, &recipe, node, request->run_folder);
  }
  publication_free(&publication);
  recipe_free(&recipe);
  return status;
}

int main(int argc, char **argv) {
  struct request request;
  if (argc > 1 && strcmp(argv[argc - 1], "--help") == 0) {
    printf("%s", HELP);
    return 0;
  }
  enum status status = parse(&request, argc, argv);
  if (status == STATUS_OK) status = run(&request);
  if (status == STATUS_OK) return 0;
  fflush(stdout);
  fprintf(stderr, "millrace-report: %s\n", error_message());
  if (status == STATUS_INTERNAL) fprintf(stderr, "%s", error_trace());
  fprintf(stderr, "millrace-report: %s; %s (exit %d)\n", error_meaning(status),
          error_advice(status), error_exit_code(status));
  return error_exit_code(status);
}
