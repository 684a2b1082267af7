#include "sharding/add.h"
#include "sharding/gradients_state.h"
#include "sharding/window.h"

enum { BUCKET_COUNT = 64 << 10 }; /* elements: one piece of a window */

/* The sum over the members of a group of their stacks, left in the first. */
static void join_stacks(const struct gradients *gradients, const struct gradients_kind *kind,
                        struct split range) {
  const int64_t stride = kind->depth * kind->total;
  for (int64_t distance = 1; distance < kind->stacks; distance *= 2)
    for (int64_t s = 0; s + distance < kind->stacks; s += 2 * distance)
      add_arrays(gradients_level(gradients, kind, s * stride + range.begin),
                 gradients_level(gradients, kind, (s + distance) * stride + range.begin),
                 split_count(range), gradients->dtype);
}

static enum status start(const struct gradients *gradients, struct gradients_kind *kind) {
  const struct split range = kind->ready;
  kind->ready = (struct split){0, 0};
  return window_start(kind->axis->window, gradients_level(gradients, kind, range.begin),
                      split_count(range), gradients->dtype);
}

/* Tensors are reported in an order that is the same on all ranks, mostly backwards: neighbours are
 * exchanged together. */
enum status gradients_ready(struct gradients *gradients, int64_t tensor) {
  const struct gradients_slot *slot = &gradients->slots[tensor];
  if (slot->kind == GRADIENTS_REPLICATED && gradients_pass_any(gradients))
    return gradients_pass(gradients, tensor, NULL);
  struct gradients_kind *kind = gradients_kind_of(gradients, slot);
  const struct split range = {slot->offset, slot->offset + gradients_padded(slot->count)};
  join_stacks(gradients, kind, range);
  if (!kind->axis->window) return STATUS_OK; /* alone */
  if (range.end == kind->ready.begin && split_count(kind->ready) > 0) {
    kind->ready.begin = range.begin;
  } else {
    if (split_count(kind->ready) > 0) TRY(start(gradients, kind));
    kind->ready = range;
  }
  if (split_count(kind->ready) >= BUCKET_COUNT) TRY(start(gradients, kind));
  return window_poll(kind->axis->window);
}

static enum status finish_kind(const struct gradients *gradients, struct gradients_kind *kind) {
  if (!kind->axis->window) return STATUS_OK;
  if (split_count(kind->ready) > 0) TRY(start(gradients, kind));
  return window_finish(kind->axis->window);
}

enum status gradients_poll(struct gradients *gradients) {
  for (int i = 0; i < GRADIENTS_KINDS; i++)
    if (gradients->kinds[i].axis->window) TRY(window_poll(gradients->kinds[i].axis->window));
  return STATUS_OK;
}

enum status gradients_finish(struct gradients *gradients) {
  if (gradients_pass_any(gradients)) {
    TRY(gradients_pass_finish(gradients));
    return finish_kind(gradients, &gradients->kinds[GRADIENTS_SLICED]);
  }
  for (int i = 0; i < GRADIENTS_KINDS; i++) TRY(finish_kind(gradients, &gradients->kinds[i]));
  return STATUS_OK;
}
