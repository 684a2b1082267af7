#include "stages/train/train_items.h"

#include <stdio.h>
#include <string.h>

#include "stages/flow/model_weights.h"
#include "stages/train/train_teacher.h"

enum { ITEMS_OF_PARAM = 5, ITEM_NAME_BYTES = PARAM_NAME_BYTES + 8 };

struct list {
  struct checkpoint_item *items;
  int64_t count;
  struct arena *arena;
};

/* One array of a parameter's shape; `held` says whether this rank has its rows. */
struct array {
  const char *prefix;
  enum dtype dtype;
  void *data;
  bool held;
};

static void add(struct list *list, const struct param *param, struct array array) {
  char *name = arena_take(list->arena, ITEM_NAME_BYTES);
  snprintf(name, ITEM_NAME_BYTES, "%s%s", array.prefix, param->name);
  const struct checkpoint_rows rows = model_weights_rows(param);
  struct checkpoint_item item = {.name = name,
                                 .dtype = array.dtype,
                                 .dimensions = param->dimensions,
                                 .first_row = rows.first,
                                 .rows = array.held ? rows.count : 0,
                                 .data = array.data};
  memcpy(item.shape, param->shape, sizeof param->shape);
  list->items[list->count++] = item;
}

static const struct optimizer_tensor *state_of(const struct train *train,
                                               const struct param *param) {
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->trained[i] == param) return train->optimizer.tensors + i;
  return NULL;
}

static void add_state(struct list *list, const struct train *train,
                      const struct optimizer_tensor *state) {
  const struct param *param = state->param;
  const bool low = param_dtype(param, train->kernels.element) == DTYPE_BF16;
  const enum dtype moments = train->options->moments == MOMENTS_BF16 ? DTYPE_BF16 : DTYPE_F32;
  if (low) add(list, param, (struct array){"low.", DTYPE_I16, state->low, state->owned});
  add(list, param, (struct array){"first.", moments, state->first, state->owned});
  if (!state->muon)
    add(list, param, (struct array){"second.", moments, state->second, state->owned});
}

static void add_param(struct list *list, const struct train *train, const struct param *param,
                      bool weights_only) {
  const enum dtype dtype = param_dtype(param, train->kernels.element);
  const struct optimizer_tensor *state = state_of(train, param);
  const bool is_here = param->place != PARAM_ELSEWHERE;
  add(list, param, (struct array){MODEL_PREFIX, dtype, param->data, is_here});
  if (state && !weights_only) add_state(list, train, state);
  if (state && train->options->ema > 0)
    add(list, param, (struct array){MODEL_AVERAGE_PREFIX, DTYPE_F32, state->average, state->owned});
}

/* Of a distillation whose teacher cannot be made again from what came before. */
static void add_teacher(struct list *list, const struct train *train) {
  for (int64_t i = 0; train_teacher_is_kept(train) && i < train->teacher.count; i++) {
    const struct param *param = train->teacher.items[i];
    add(list, param,
        (struct array){"teacher.", param_dtype(param, train->kernels.element), param->data,
                       param->place != PARAM_ELSEWHERE});
  }
}

static void add_window(struct list *list, const struct train *train) {
  list->items[list->count++] = (struct checkpoint_item){.name = "health.losses",
                                                        .dtype = DTYPE_F64,
                                                        .dimensions = 1,
                                                        .shape = {HEALTH_WINDOW},
                                                        .rows = HEALTH_WINDOW,
                                                        .data = (void *)train->health.losses};
}

void train_items_list(struct checkpoint_items *items, const struct train *train, bool weights_only,
                      struct arena *arena) {
  const size_t most = (size_t)(train->params.count * ITEMS_OF_PARAM + train->teacher.count + 1);
  struct list list = {.items = arena_take(arena, most * sizeof(*list.items)), .arena = arena};
  for (int64_t i = 0; i < train->params.count; i++)
    if (!train->params.items[i]->derived)
      add_param(&list, train, train->params.items[i], weights_only);
  if (!weights_only) add_teacher(&list, train);
  if (!weights_only) add_window(&list, train);
  *items = (struct checkpoint_items){.items = list.items, .count = list.count};
}
