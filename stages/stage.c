#include "stages/stage.h"

#include <limits.h>
#include <stdio.h>

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
