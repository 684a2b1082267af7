#include <string.h>

#include "pipeline/config/recipe_resolve.h"

enum mark { UNSEEN, OPEN, DONE };

struct walk {
  struct recipe *recipe;
  enum mark marks[RECIPE_NODES];
  size_t path[RECIPE_NODES];
  size_t depth, done;
};

/* "a -> b -> a": the part of the path from `node` on, and `node` again. */
static enum status report_cycle(const struct walk *walk, size_t node) {
  char cycle[1024] = "";
  size_t first = 0;
  while (walk->path[first] != node) first++;
  for (size_t i = first; i < walk->depth; i++) {
    strncat(cycle, walk->recipe->nodes[walk->path[i]].name, sizeof cycle - strlen(cycle) - 1);
    strncat(cycle, " -> ", sizeof cycle - strlen(cycle) - 1);
  }
  FAIL(STATUS_MISMATCH, "%s: the nodes form a cycle: %s%s (each is from the next)",
       walk->recipe->nodes[node].where, cycle, walk->recipe->nodes[node].name);
}

static enum status visit(struct walk *walk, size_t node) {
  if (walk->marks[node] == DONE) return STATUS_OK;
  if (walk->marks[node] == OPEN) return report_cycle(walk, node);
  walk->marks[node] = OPEN;
  walk->path[walk->depth++] = node;
  const struct recipe_node *self = &walk->recipe->nodes[node];
  for (size_t i = 0; i < self->input_count; i++) TRY(visit(walk, self->inputs[i]));
  walk->depth--;
  walk->marks[node] = DONE;
  walk->recipe->order[walk->done++] = node;
  return STATUS_OK;
}

enum status recipe_sort(struct recipe *recipe) {
  struct walk walk = {.recipe = recipe};
  for (size_t i = 0; i < recipe->node_count; i++) TRY(visit(&walk, i));
  return STATUS_OK;
}
