/* Gradients that only their owner keeps: each tensor is summed by itself as soon as it is complete,
 * from the owner's buffer and the others' pieces, which are given back when the sum has passed.
 */
#include <string.h>

#include "sharding/add.h"
#include "sharding/gradients_state.h"
#include "sharding/window.h"

static bool passes_any(const struct grid *grid, const struct zero *zero) {
  return zero && grid->world->size > 1 && grid_micro_steps(grid) == 1;
}

bool gradients_pass_any(const struct gradients *gradients) {
  return passes_any(gradients->grid, gradients->zero);
}

bool gradients_passes(const struct gradients_setup *setup, int64_t tensor) {
  const struct gradients_tensor *described = &setup->tensors[tensor];
  if (described->vocab || described->everywhere || !passes_any(setup->grid, setup->zero))
    return false;
  return setup->zero->owner && !zero_owns(setup->zero, tensor);
}

static void give_back_first(struct gradients *gradients) {
  pieces_return(&gradients->working, gradients->passing[0].piece);
  gradients->passing_count--;
  memmove(gradients->passing, gradients->passing + 1,
          (size_t)gradients->passing_count * sizeof *gradients->passing);
}

static void give_back(struct gradients *gradients, const struct window *window) {
  while (gradients->passing_count > 0 && window_is_past(window, gradients->passing[0].number))
    give_back_first(gradients);
}

/* Makes the piece what is sent: elements of the buffers' type. */
static enum status narrow(float **piece, struct gradients *gradients, int64_t count) {
  float *narrowed;
  if (gradients->dtype == DTYPE_F32) return STATUS_OK;
  TRY(pieces_take(&narrowed, &gradients->working, (count + 1) / 2));
  add_round((uint16_t *)narrowed, *piece, count);
  pieces_return(&gradients->working, *piece);
  *piece = narrowed;
  return STATUS_OK;
}

static enum status wait_for_all(struct gradients *gradients, struct window *window) {
  TRY(window_finish(window));
  give_back(gradients, window);
  gradients->sent = 0;
  return STATUS_OK;
}

static enum status queue(struct gradients *gradients, struct window *window, void *values,
                         float *piece, int64_t count) {
  const int64_t number = window->queued;
  TRY(window_start(window, values, count, gradients->dtype));
  if (piece)
    gradients->passing[gradients->passing_count++] = (struct gradients_passing){piece, number};
  gradients->sent += count;
  /* On all ranks at the same tensor. A sum goes on only while ranks help it along: one that waited
   * alone would wait for ever if another waits for it elsewhere in the backward pass. */
  if (gradients->sent >= gradients->sent_most) return wait_for_all(gradients, window);
  TRY(window_poll(window));
  give_back(gradients, window);
  return STATUS_OK;
}

enum status gradients_pass(struct gradients *gradients, int64_t tensor, float *piece) {
  const struct gradients_slot *slot = &gradients->slots[tensor];
  const struct comm *axis = gradients->kinds[slot->kind].axis;
  if (piece) TRY(narrow(&piece, gradients, slot->count));
  void *values = piece ? piece : gradients_sum(gradients, tensor).values;
  return queue(gradients, axis->window, values, piece, slot->count);
}

enum status gradients_pass_finish(struct gradients *gradients) {
  struct comm *axis = gradients->kinds[GRADIENTS_REPLICATED].axis;
  return wait_for_all(gradients, axis->window);
}
