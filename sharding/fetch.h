/* Tensors that only their owner keeps, and that every rank needs for a while: a layer's are
 * broadcast by their owners while the layer before computes, into one of two buffers (stage 3 of
 * Rajbhandari et al. 2020).
 *
 *   fetch_enter(f, l, l + 1)   waits for layer l, starts layer l + 1
 *     compute: fetch_poll(f) now and then
 *   fetch_leave(f, l)
 *
 * Owners compute with what they keep; elsewhere the tensor's place is NULL outside of its layer.
 */
#ifndef SHARDING_FETCH_H
#define SHARDING_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "sharding/comm.h"

struct fetch_tensor {
  void **place; /* borrowed: where its address stands; on its owner set for good */
  int64_t bytes;
  int64_t layer; /* ascending over the tensors */
  int owner;
};

enum { FETCH_BUFFERS = 2, FETCH_NOTHING = -1 };

/* One layer, arrived or on its way. */
struct fetch_buffer {
  unsigned char *bytes;
  int64_t layer; /* or FETCH_NOTHING */
  bool arrived;
  struct comm_request *requests; /* one for each tensor */
};

struct fetch {
  struct comm *comm;            /* borrowed */
  struct fetch_tensor *tensors; /* copied */
  int64_t count, layers;
  struct fetch_buffer buffers[FETCH_BUFFERS];
};

/* Takes buffers for the largest layer from `arena`, which may be measuring. Layers are numbered 0
 * .. layers - 1 and may be empty. Local. */
void fetch_init(struct fetch *fetch, struct comm *comm, const struct fetch_tensor *tensors,
                int64_t count, int64_t layers, struct arena *arena);

/* Sets the places of a layer's tensors to their values, and starts fetching layer `next`
 * (FETCH_NOTHING: none). Every rank names the same layers in the same order. Collective. */
enum status fetch_enter(struct fetch *fetch, int64_t layer, int64_t next);

/* Clears the places of a layer's tensors, but on their owners. The buffer keeps the values until
 * another layer takes it. Local. */
void fetch_leave(struct fetch *fetch, int64_t layer);

/* Helps on what is on its way. Local. */
enum status fetch_poll(struct fetch *fetch);

/* The tensors have changed: forgets what was fetched, and starts layer `next`. Collective. */
enum status fetch_again(struct fetch *fetch, int64_t next);

#endif
