#include "stages/train/train_fetch.h"

#include "stages/train/train_teacher.h"

static bool fetches(const struct train *train) {
  return train->options->zero == ZERO_3 && train->grid.world->size > 1;
}

static bool is_kept_apart(const struct param *param) {
  return param->layer && param->kind == PARAM_MATRIX;
}

static void number_layers(struct train *train, const struct params *params) {
  for (int64_t i = 0; i < params->count; i++) {
    struct param_layer *layer = params->items[i]->layer;
    if (layer && layer->first == i) layer->number = train->layers++;
  }
}

/* A teacher that follows the student stays where the student is made. */
static void place_follower(struct train *train) {
  for (int64_t i = 0; i < train->trained_count; i++) {
    const int64_t at = train_teacher_place(train, i);
    if (at >= 0) train->teacher_owner[at] = train->zero.owner[i];
  }
}

/* Nobody owns what is not trained: whoever has least so far keeps it. */
static void place_teacher(struct train *train) {
  const struct params *teacher = &train->teacher;
  struct arena *arena = &train->declarations;
  const size_t count = (size_t)teacher->count, ranks = (size_t)train->grid.world->size;
  struct zero_cost *costs = arena_take(arena, count * sizeof *costs);
  double *loads = arena_take_zeroed(arena, ranks * sizeof *loads);
  int64_t apart = 0;
  train->teacher_owner = arena_take_zeroed(arena, count * sizeof(int));
  for (int64_t i = 0; i < teacher->count; i++)
    if (is_kept_apart(teacher->items[i]))
      costs[apart++] = (struct zero_cost){(double)param_count(teacher->items[i]), i};
  zero_assign(train->teacher_owner, costs, apart, loads, (int)ranks);
  if (train_teacher_follows(train)) place_follower(train);
}

static void place(const struct train *train, struct param *param, int owner) {
  if (!is_kept_apart(param)) return;
  param->place = owner == train->grid.world->rank ? PARAM_HERE : PARAM_ELSEWHERE;
}

void train_fetch_plan(struct train *train) {
  if (!fetches(train)) return;
  number_layers(train, &train->params);
  number_layers(train, &train->teacher);
  place_teacher(train);
  for (int64_t i = 0; i < train->trained_count; i++)
    place(train, train->trained[i], train->zero.owner[i]);
  for (int64_t i = 0; i < train->teacher.count; i++)
    place(train, train->teacher.items[i], train->teacher_owner[i]);
}

struct list {
  struct fetch_tensor *tensors;
  int64_t count;
};

static void add(struct list *list, const struct train *train, struct param *param, int owner) {
  const size_t each = dtype_bytes(param_dtype(param, train->kernels.element));
  if (param->place == PARAM_EVERYWHERE) return;
  list->tensors[list->count++] =
      (struct fetch_tensor){.place = &param->data,
                            .bytes = param->row_count * param->cols * (int64_t)each,
                            .layer = param->layer->number,
                            .owner = owner};
}

static struct list list_tensors(struct train *train) {
  const size_t most = (size_t)(train->trained_count + train->teacher.count);
  struct list list = {.tensors = arena_take(&train->declarations, most * sizeof *list.tensors)};
  for (int64_t i = 0; i < train->trained_count; i++)
    add(&list, train, train->trained[i], train->zero.owner[i]);
  for (int64_t i = 0; i < train->teacher.count; i++)
    add(&list, train, train->teacher.items[i], train->teacher_owner[i]);
  return list;
}

/* The layer that is used after this one; the networks' own layers come before the teacher's. */
static int64_t next_of(const struct train *train, const struct param_layer *layer, bool backward) {
  const int64_t next = backward ? layer->number - 1 : layer->number + 1;
  return next < train->layers ? next : FETCH_NOTHING;
}

static enum status enter(void *context, const struct param_layer *layer, bool backward) {
  struct train *train = context;
  return fetch_enter(&train->fetch, layer->number, next_of(train, layer, backward));
}

static void leave(void *context, const struct param_layer *layer) {
  struct train *train = context;
  fetch_leave(&train->fetch, layer->number);
}

static enum status poll(void *context) {
  struct train *train = context;
  TRY(gradients_poll(train->gradients));
  return fetch_poll(&train->fetch);
}

enum status train_fetch_open(struct train *train) {
  struct arena measuring;
  train->helper = (struct tape_helper){.context = train, .poll = poll};
  if (!fetches(train)) return STATUS_OK;
  const struct list list = list_tensors(train);
  arena_measure(&measuring, "fetched weights");
  fetch_init(&train->fetch, train->grid.world, list.tensors, list.count, train->layers, &measuring);
  TRY(arena_init(&train->fetched, "fetched weights", measuring.peak));
  fetch_init(&train->fetch, train->grid.world, list.tensors, list.count, train->layers,
             &train->fetched);
  train->helper.enter = enter;
  train->helper.leave = leave;
  return STATUS_OK;
}

enum status train_fetch_again(struct train *train) {
  return train->helper.enter ? fetch_again(&train->fetch, 0) : STATUS_OK;
}

void train_fetch_close(struct train *train) {
  if (train->helper.enter) (void)fetch_again(&train->fetch, FETCH_NOTHING);
  arena_free(&train->fetched);
}
