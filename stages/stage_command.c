#include <string.h>

#include "pipeline/base/text.h"
#include "stages/stage_run.h"

static enum status parse_kind(enum kind *kind, const char *word) {
  if (kind_find(kind, word) && kind_is_parallel(*kind)) return STATUS_OK;
  const char *nearest = kind_nearest(word);
  FAIL(STATUS_USAGE, "there is no stage '%s'%s%s%s", word, nearest ? "; did you mean '" : "",
       nearest ? nearest : "", nearest ? "'?" : "");
}

static enum status parse_flag(struct stage_command *command, int argc, char *const argv[], int *i) {
  const char *flag = argv[*i];
  if (strcmp(flag, "--leased") == 0) {
    command->leased = true;
    return STATUS_OK;
  }
  const char **value = strcmp(flag, "--run") == 0    ? &command->run
                       : strcmp(flag, "--node") == 0 ? &command->node
                                                     : NULL;
  CHECK(value, STATUS_USAGE, "unknown flag '%s'; expected --run, --node or --leased", flag);
  CHECK(*i + 1 < argc, STATUS_USAGE, "%s needs a value", flag);
  *value = argv[++*i];
  return STATUS_OK;
}

enum status stage_command_parse(struct stage_command *command, int argc, char *const argv[]) {
  *command = (struct stage_command){0};
  CHECK(argc >= 1, STATUS_USAGE, "expected: millrace-stage KIND --run FOLDER --node NODE");
  TRY(parse_kind(&command->kind, argv[0]));
  for (int i = 1; i < argc; i++) TRY(parse_flag(command, argc, argv, &i));
  CHECK(command->run && command->node, STATUS_USAGE,
        "expected: millrace-stage %s --run FOLDER --node NODE", argv[0]);
  return STATUS_OK;
}
