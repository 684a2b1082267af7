/* millrace help, options, recipes: what there is. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/config/options.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/commands.h"
#include "pipeline/driver/jobs_folder.h"

enum status command_help(int argc, char **argv) {
  (void)argc, (void)argv;
  printf("millrace: trains and compares continuous flow and diffusion language models\n\n");
#define COMMAND(name, function, operands, help) printf("  %-9s %-22s %s\n", name, operands, help);
#define PROGRAM(name, program, operands, help) printf("  %-9s %-22s %s\n", name, operands, help);
#include "pipeline/driver/commands.def"
#undef COMMAND
#undef PROGRAM
  struct text flags = {0};
  TRY(arguments_help(&flags));
  printf("\n%s\nExit codes:\n", flags.bytes);
  text_free(&flags);
  for (int status = 0; status < STATUS_COUNT; status++)
    printf("  %3d  %s: %s\n", error_exit_code((enum status)status),
           error_meaning((enum status)status), error_advice((enum status)status));
  return STATUS_OK;
}

static enum status add_options(struct text *text, int argc, char **argv) {
  if (argc < 2) return options_document(text);
  enum kind kind = KIND_COUNT;
  const bool found = kind_find(&kind, argv[1]);
  const char *nearest = kind_nearest(argv[1]);
  CHECK(found, STATUS_USAGE, "there is no kind of stage '%s'%s%s%s", argv[1],
        nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  return options_help(text, kind);
}

enum status command_options(int argc, char **argv) {
  struct text text = {0};
  const enum status status = add_options(&text, argc, argv);
  if (status == STATUS_OK) printf("%s", text.bytes);
  text_free(&text);
  return status;
}

static int is_recipe(const struct dirent *entry) {
  const char *ending = strrchr(entry->d_name, '.');
  return ending && strcmp(ending, ".yaml") == 0;
}

/* The first comment line of a recipe says what it is. */
static void print_recipe(const char *folder, const char *name) {
  char path[PATH_MAX], line[256] = "";
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_MAX) return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  if (!fgets(line, sizeof line, file) || line[0] != '#') line[0] = '\0';
  fclose(file);
  line[strcspn(line, "\n")] = '\0';
  printf("%-40s %s\n", path, *line ? line + 1 + (line[1] == ' ') : "");
}

enum status command_recipes(int argc, char **argv) {
  char folder[PATH_MAX];
  struct dirent **entries;
  struct arguments arguments;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  CHECK(arguments.operands.count == 0, STATUS_USAGE, "expected: millrace recipes");
  TRY(jobs_folder_find(folder, "recipes"));
  const int count = scandir(folder, &entries, is_recipe, alphasort);
  CHECK(count >= 0, STATUS_ENVIRONMENT, "cannot list '%s'", folder);
  for (int i = 0; i < count; i++) {
    print_recipe(folder, entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  return STATUS_OK;
}
