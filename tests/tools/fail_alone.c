/* Rank 1 fails in the middle of step 7 while the others wait for it. */
#include <stdlib.h>

#include "stages/stage_end.h"

static enum status look(void) {
  FAIL(STATUS_DAMAGED, "no such row");
}

int main(void) {
  struct comm world;
  if (comm_init(&world, NULL) != STATUS_OK) return EXIT_FAILURE;
  if (comm_barrier(&world) != STATUS_OK) return EXIT_FAILURE;
  if (world.rank == 1) (void)stage_end_alone(&world, 7, look());
  (void)comm_barrier(&world);
  return EXIT_SUCCESS;
}
