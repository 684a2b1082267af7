#include "sharding/fetch.h"

#include <string.h>

#include "sharding/split.h"

static int64_t rounded(int64_t bytes) {
  return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

/* The tensors of a layer. */
static struct split range_of(const struct fetch_tensor *tensors, int64_t count, int64_t layer) {
  struct split range = {0, 0};
  while (range.begin < count && tensors[range.begin].layer < layer) range.begin++;
  range.end = range.begin;
  while (range.end < count && tensors[range.end].layer == layer) range.end++;
  return range;
}

static int64_t layer_bytes(const struct fetch_tensor *tensors, struct split range) {
  int64_t bytes = 0;
  for (int64_t i = range.begin; i < range.end; i++) bytes += rounded(tensors[i].bytes);
  return bytes;
}

void fetch_init(struct fetch *fetch, struct comm *comm, const struct fetch_tensor *tensors,
                int64_t count, int64_t layers, struct arena *arena) {
  int64_t bytes = 0, most = 0;
  *fetch = (struct fetch){.comm = comm, .count = count, .layers = layers};
  for (int64_t l = 0; l < layers; l++) {
    const struct split range = range_of(tensors, count, l);
    if (layer_bytes(tensors, range) > bytes) bytes = layer_bytes(tensors, range);
    if (split_count(range) > most) most = split_count(range);
  }
  fetch->tensors = arena_take(arena, (size_t)count * sizeof *fetch->tensors);
  if (fetch->tensors) memcpy(fetch->tensors, tensors, (size_t)count * sizeof *fetch->tensors);
  for (int i = 0; i < FETCH_BUFFERS; i++) {
    struct fetch_buffer *buffer = &fetch->buffers[i];
    buffer->layer = FETCH_NOTHING;
    buffer->bytes = arena_take(arena, (size_t)bytes);
    buffer->requests = arena_take_zeroed(arena, (size_t)most * sizeof *buffer->requests);
  }
}

static struct fetch_buffer *find(struct fetch *fetch, int64_t layer) {
  for (int i = 0; i < FETCH_BUFFERS; i++)
    if (fetch->buffers[i].layer == layer) return &fetch->buffers[i];
  return NULL;
}

static enum status wait_for(struct fetch *fetch, struct fetch_buffer *buffer) {
  if (buffer->layer == FETCH_NOTHING || buffer->arrived) return STATUS_OK;
  const struct split range = range_of(fetch->tensors, fetch->count, buffer->layer);
  for (int64_t i = 0; i < split_count(range); i++)
    TRY(comm_wait(fetch->comm, &buffer->requests[i]));
  buffer->arrived = true;
  return STATUS_OK;
}

static bool owns(const struct fetch *fetch, const struct fetch_tensor *tensor) {
  return tensor->owner == fetch->comm->rank;
}

/* Begins to bring a layer into a buffer, whose former contents are waited for first. */
static enum status start(struct fetch *fetch, struct fetch_buffer *buffer, int64_t layer) {
  TRY(wait_for(fetch, buffer));
  const struct split range = range_of(fetch->tensors, fetch->count, layer);
  unsigned char *at = buffer->bytes;
  buffer->layer = layer;
  buffer->arrived = false;
  for (int64_t i = range.begin; i < range.end; at += rounded(fetch->tensors[i++].bytes)) {
    const struct fetch_tensor *tensor = &fetch->tensors[i];
    TRY(comm_broadcast_start(fetch->comm, &buffer->requests[i - range.begin],
                             owns(fetch, tensor) ? *tensor->place : at, tensor->bytes,
                             tensor->owner));
  }
  return STATUS_OK;
}

static void set_places(struct fetch *fetch, int64_t layer, unsigned char *at) {
  const struct split range = range_of(fetch->tensors, fetch->count, layer);
  for (int64_t i = range.begin; i < range.end; i++) {
    if (!owns(fetch, &fetch->tensors[i])) *fetch->tensors[i].place = at;
    if (at) at += rounded(fetch->tensors[i].bytes);
  }
}

enum status fetch_enter(struct fetch *fetch, int64_t layer, int64_t next) {
  struct fetch_buffer *buffer = find(fetch, layer);
  if (!buffer) {
    buffer = &fetch->buffers[0];
    TRY(start(fetch, buffer, layer));
  }
  set_places(fetch, layer, buffer->bytes);
  TRY(wait_for(fetch, buffer));
  if (next == FETCH_NOTHING || find(fetch, next)) return STATUS_OK;
  return start(fetch, buffer == &fetch->buffers[0] ? &fetch->buffers[1] : &fetch->buffers[0], next);
}

void fetch_leave(struct fetch *fetch, int64_t layer) {
  set_places(fetch, layer, NULL);
}

static enum status poll(struct fetch *fetch, struct fetch_buffer *buffer) {
  const struct split range = range_of(fetch->tensors, fetch->count, buffer->layer);
  for (int64_t i = 0; i < split_count(range); i++) {
    bool done;
    if (buffer->requests[i].count > 0) TRY(comm_test(fetch->comm, &buffer->requests[i], &done));
  }
  return STATUS_OK;
}

enum status fetch_poll(struct fetch *fetch) {
  for (int i = 0; i < FETCH_BUFFERS; i++) {
    struct fetch_buffer *buffer = &fetch->buffers[i];
    if (buffer->layer != FETCH_NOTHING && !buffer->arrived) TRY(poll(fetch, buffer));
  }
  return STATUS_OK;
}

enum status fetch_again(struct fetch *fetch, int64_t next) {
  for (int i = 0; i < FETCH_BUFFERS; i++) {
    TRY(wait_for(fetch, &fetch->buffers[i]));
    fetch->buffers[i].layer = FETCH_NOTHING;
  }
  return next == FETCH_NOTHING ? STATUS_OK : start(fetch, &fetch->buffers[0], next);
}
