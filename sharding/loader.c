#include "sharding/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sharding/loader_fill.h"

enum { DEEPEST = 64, MESSAGE_BYTES = 1024 };

enum place_state { PLACE_FREE, PLACE_BUSY, PLACE_READY, PLACE_GIVEN };

/* A batch and what it holds or will hold. */
struct place {
  enum place_state state;
  bool stale; /* busy with a step that is no longer wanted */
  int64_t step;
  struct loader_batch batch;
  enum status status; /* of reading it */
  char message[MESSAGE_BYTES];
};

struct loader {
  struct loader_options options;
  struct loader_field fields[LOADER_FIELDS];
  struct place *places; /* owned; one with the caller and `depth` ahead */
  int64_t place_count;
  int64_t next; /* the step that is read next; -1: none yet */
  struct loader_fill fill;
  bool closing, threaded;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  double waits[LOADER_WAITS];
  struct loader_waits totals;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads the step of a place; the report of this thread is kept for the caller's. */
static void read_place(struct loader *loader, struct place *place) {
  place->status = loader_fill_step(&loader->fill, &place->batch, &loader->options, place->step);
  if (place->status != STATUS_OK) snprintf(place->message, MESSAGE_BYTES, "%s", error_message());
}

static struct place *find(struct loader *loader, enum place_state state) {
  for (int64_t i = 0; i < loader->place_count; i++)
    if (loader->places[i].state == state) return &loader->places[i];
  return NULL;
}

/* The thread: fills free places with the next steps. */
static void *read_ahead(void *argument) {
  struct loader *loader = argument;
  pthread_mutex_lock(&loader->lock);
  while (!loader->closing) {
    struct place *place = loader->next < 0 ? NULL : find(loader, PLACE_FREE);
    if (!place) {
      pthread_cond_wait(&loader->changed, &loader->lock);
      continue;
    }
    place->state = PLACE_BUSY;
    place->stale = false;
    place->step = loader->next++;
    pthread_mutex_unlock(&loader->lock);
    read_place(loader, place);
    pthread_mutex_lock(&loader->lock);
    place->state = place->stale ? PLACE_FREE : PLACE_READY;
    pthread_cond_broadcast(&loader->changed);
  }
  pthread_mutex_unlock(&loader->lock);
  return NULL;
}

/* Signals are for the main thread: this one starts with all of them blocked. */
static enum status start_thread(struct loader *loader) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&loader->thread, NULL, read_ahead, loader);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  CHECK(!failed, STATUS_ENVIRONMENT, "cannot start the loader's thread: %s", strerror(failed));
  loader->threaded = true;
  return STATUS_OK;
}

static enum status prepare(struct loader *loader, const struct loader_options *options) {
  const int64_t depth = options->depth < 0 ? LOADER_DEPTH : options->depth;
  CHECK(depth <= DEEPEST, STATUS_MISMATCH, "%lld steps cannot be read ahead, at most %d",
        (long long)depth, DEEPEST);
  loader->options = *options;
  TRY(loader_fill_init(&loader->fill, options));
  for (int64_t i = 0; i < options->field_count; i++) loader->fields[i] = options->fields[i];
  loader->options.fields = loader->fields;
  loader->next = -1;
  loader->places = calloc((size_t)depth + 1, sizeof *loader->places);
  CHECK(loader->places, STATUS_ENVIRONMENT, "out of memory: a loader");
  loader->place_count = depth + 1;
  for (int64_t i = 0; i <= depth; i++)
    TRY(loader_fill_allocate(&loader->places[i].batch, &loader->options));
  return depth ? start_thread(loader) : STATUS_OK;
}

enum status loader_open(struct loader **loader, const struct loader_options *options) {
  struct loader *made = calloc(1, sizeof *made);
  CHECK(made, STATUS_ENVIRONMENT, "out of memory: a loader");
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  const enum status status = prepare(made, options);
  if (status != STATUS_OK) loader_close(made);
  TRY(status);
  *loader = made;
  return STATUS_OK;
}

void loader_close(struct loader *loader) {
  if (!loader) return;
  pthread_mutex_lock(&loader->lock);
  loader->closing = true;
  pthread_cond_broadcast(&loader->changed);
  pthread_mutex_unlock(&loader->lock);
  if (loader->threaded) pthread_join(loader->thread, NULL);
  for (int64_t i = 0; i < loader->place_count; i++) loader_fill_release(&loader->places[i].batch);
  free(loader->places);
  loader_fill_free(&loader->fill);
  pthread_cond_destroy(&loader->changed);
  pthread_mutex_destroy(&loader->lock);
  free(loader);
}

static bool holds(const struct place *place, int64_t step) {
  return (place->state == PLACE_READY || place->state == PLACE_BUSY) && !place->stale &&
         place->step == step;
}

static void drop(struct place *place) {
  if (place->state == PLACE_BUSY)
    place->stale = true;
  else
    place->state = PLACE_FREE;
}

/* Finds the place that holds `step`; when none does, the reading starts over at it. */
static struct place *await(struct loader *loader, int64_t step) {
  struct place *found = NULL;
  for (int64_t i = 0; i < loader->place_count; i++)
    if (holds(&loader->places[i], step)) found = &loader->places[i];
  for (int64_t i = 0; i < loader->place_count; i++) {
    struct place *place = &loader->places[i];
    if (place->state == PLACE_GIVEN || !found || place->step < step) drop(place);
  }
  if (!found) loader->next = step;
  pthread_cond_broadcast(&loader->changed);
  for (;;) {
    for (int64_t i = 0; i < loader->place_count; i++)
      if (holds(&loader->places[i], step) && loader->places[i].state == PLACE_READY)
        return &loader->places[i];
    pthread_cond_wait(&loader->changed, &loader->lock);
  }
}

static void count_wait(struct loader *loader, double seconds) {
  loader->waits[loader->totals.count++ % LOADER_WAITS] = seconds;
  loader->totals.total_seconds += seconds;
}

enum status loader_get(struct loader *loader, int64_t step, const struct loader_batch **batch) {
  const double start = now();
  struct place *place = &loader->places[0];
  if (loader->threaded) {
    pthread_mutex_lock(&loader->lock);
    place = await(loader, step);
    place->state = PLACE_GIVEN;
    pthread_mutex_unlock(&loader->lock);
  } else {
    place->step = step;
    read_place(loader, place);
  }
  count_wait(loader, now() - start);
  CHECK(place->status == STATUS_OK, place->status, "step %lld: %s", (long long)step,
        place->message);
  *batch = &place->batch;
  return STATUS_OK;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct loader_waits loader_waits(const struct loader *loader) {
  struct loader_waits waits = loader->totals;
  double sorted[LOADER_WAITS];
  const int64_t count = waits.count < LOADER_WAITS ? waits.count : LOADER_WAITS;
  if (!count) return waits;
  for (int64_t i = 0; i < count; i++) {
    sorted[i] = loader->waits[i];
    waits.mean_seconds += sorted[i] / (double)count;
  }
  qsort(sorted, (size_t)count, sizeof *sorted, by_size);
  waits.p99_seconds = sorted[(count * 99 + 99) / 100 - 1];
  return waits;
}
