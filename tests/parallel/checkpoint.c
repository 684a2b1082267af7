/* np: 1 2 4 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "tests/common/checkpoint_case.h"
#include "tests/common/parallel.h"

static const char CONFIG[] = "0123456789abcdef0123456789abcdef";

static struct checkpoint at(struct comm *comm, const char *folder) {
  const struct checkpoint checkpoint = {.comm = comm,
                                        .folder = folder,
                                        .run_id = "test",
                                        .config_hash = CONFIG,
                                        .data_fingerprint = "data",
                                        .keep = {3, 0, -1},
                                        .file_bytes = 3 << 20};
  return checkpoint;
}

/* Rank 0 does something to files; the others wait. */
static void clear(struct parallel_test *test, const char *folder) {
  if (test->world->rank == 0) file_remove(folder);
  parallel_expect(test, comm_barrier(test->world) == STATUS_OK);
}

static enum status save_as(const struct checkpoint *checkpoint, int style, int64_t step) {
  struct checkpoint_case made;
  struct scalars state = {0};
  checkpoint_case_make(&made, checkpoint->comm->rank, checkpoint->comm->size, style);
  checkpoint_case_fill(&made, step);
  scalars_set_integer(&state, "position", step * 10);
  const enum status status = checkpoint_save(checkpoint, step, &made.items, &state);
  scalars_free(&state);
  checkpoint_case_free(&made);
  return status;
}

/* Loads into another layout; sets the step found. Contents must be those of that step. */
static enum status load_as(struct parallel_test *test, const struct checkpoint *checkpoint,
                           int style, int64_t *step) {
  struct checkpoint_case made;
  struct scalars state = {0};
  int64_t position = -1;
  checkpoint_case_make(&made, checkpoint->comm->rank, checkpoint->comm->size, style);
  const enum status status = checkpoint_load(checkpoint, step, &made.items, &state);
  if (status == STATUS_OK && *step >= 0) {
    parallel_expect(test, checkpoint_case_is(&made, *step));
    scalars_get_integer(&state, "position", &position);
    parallel_expect(test, position == *step * 10);
  }
  scalars_free(&state);
  checkpoint_case_free(&made);
  return status;
}

static void any_layout_to_any_layout(struct parallel_test *test) {
  const struct checkpoint checkpoint = at(test->world, "layouts");
  int64_t step = 0;
  clear(test, "layouts");
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_OK && step == -1);
  for (int saved = 0; saved < CHECKPOINT_CASE_STYLES; saved++) {
    parallel_expect(test, save_as(&checkpoint, saved, saved + 1) == STATUS_OK);
    for (int loaded = 0; loaded < CHECKPOINT_CASE_STYLES; loaded++)
      parallel_expect(test,
                      load_as(test, &checkpoint, loaded, &step) == STATUS_OK && step == saved + 1);
  }
}

/* Digest of all files of a step but the manifest's words about the job. */
static uint64_t digest(const char *step_folder) {
  struct manifest manifest = {0};
  uint64_t sum = 0;
  if (manifest_read(&manifest, step_folder) != STATUS_OK) return 0;
  if (manifest_verify(&manifest, step_folder, true) == STATUS_OK)
    for (int64_t i = 0; i < manifest.output_count; i++)
      sum = sum * 31 + blocks_digest(&manifest.outputs[i].blocks);
  sum += (uint64_t)manifest.output_count;
  manifest_free(&manifest);
  return sum;
}

/* What one rank alone writes is what all write together, in every layout. */
static void files_do_not_depend_on_ranks(struct parallel_test *test) {
  struct comm alone = {0};
  clear(test, "together");
  clear(test, "alone");
  parallel_expect(test, comm_split(&alone, test->world, test->world->rank) == STATUS_OK);
  const struct checkpoint single = at(&alone, "alone");
  if (test->world->rank == 0) parallel_expect(test, save_as(&single, 0, 7) == STATUS_OK);
  const uint64_t expected = test->world->rank == 0 ? digest("alone/step-7") : 0;
  for (int style = 0; style < CHECKPOINT_CASE_STYLES; style++) {
    const struct checkpoint checkpoint = at(test->world, "together");
    parallel_expect(test, save_as(&checkpoint, style, 7) == STATUS_OK);
    if (test->world->rank == 0) {
      parallel_expect(test, digest("together/step-7") == expected && expected > 3);
      file_remove("together");
    }
    comm_barrier(test->world);
  }
  comm_free(&alone);
}

/* Changes one byte of a file in place, on rank 0. */
static void flip(struct parallel_test *test, const char *path, off_t place) {
  if (test->world->rank == 0) {
    unsigned char byte = 0;
    const int fd = open(path, O_RDWR);
    parallel_expect(test, pread(fd, &byte, 1, place) == 1);
    byte ^= 0x10;
    parallel_expect(test, pwrite(fd, &byte, 1, place) == 1);
    close(fd);
  }
  comm_barrier(test->world);
}

static void cut(struct parallel_test *test, const char *path) {
  if (test->world->rank == 0) parallel_expect(test, truncate(path, 100) == 0);
  comm_barrier(test->world);
}

static void damage_falls_back(struct parallel_test *test) {
  struct checkpoint checkpoint = at(test->world, "damage");
  struct text notes = {0};
  int64_t step = 0;
  clear(test, "damage");
  checkpoint.notes = &notes;
  for (int64_t s = 1; s <= 3; s++) parallel_expect(test, save_as(&checkpoint, 1, s) == STATUS_OK);
  flip(test, "damage/step-3/tensors-00001.safetensors", 1500000);
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_OK && step == 2);
  if (test->world->rank == 0) {
    parallel_expect(test, strstr(notes.bytes, "step-3 is passed over") != NULL);
    parallel_expect(test, strstr(notes.bytes, "tensors-00001.safetensors' is damaged in block 2") !=
                              NULL);
    parallel_expect(test, file_exists("damage/step-3.damaged"));
  }
  cut(test, "damage/step-2/tensors-00000.safetensors");
  parallel_expect(test, load_as(test, &checkpoint, 3, &step) == STATUS_OK && step == 1);
  parallel_expect(test, save_as(&checkpoint, 0, 3) == STATUS_OK); /* damaged gives way */
  parallel_expect(test, load_as(test, &checkpoint, 2, &step) == STATUS_OK && step == 3);
  flip(test, "damage/step-3/manifest.json", 300);
  parallel_expect(test, load_as(test, &checkpoint, 3, &step) == STATUS_OK && step == 1);
  flip(test, "damage/step-1/tensors-00000.safetensors", 20);
  parallel_expect(test, load_as(test, &checkpoint, 3, &step) == STATUS_DAMAGED);
  parallel_expect(test, strstr(error_message(), "none of the 3 checkpoints") != NULL);
  text_free(&notes);
}

static void other_jobs_are_refused(struct parallel_test *test) {
  struct checkpoint checkpoint = at(test->world, "other");
  int64_t step = 0;
  clear(test, "other");
  parallel_expect(test, save_as(&checkpoint, 0, 5) == STATUS_OK);
  checkpoint.data_fingerprint = "others";
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "data data, this job has others") != NULL);
  checkpoint.accept_other_data = true;
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_OK && step == 5);
  checkpoint.config_hash = "abc";
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_MISMATCH);
  checkpoint.config_hash = NULL;
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_OK);
}

static void other_tensors_are_refused(struct parallel_test *test) {
  const struct checkpoint checkpoint = at(test->world, "tensors");
  struct checkpoint_case made;
  int64_t step = 0;
  clear(test, "tensors");
  parallel_expect(test, save_as(&checkpoint, 0, 5) == STATUS_OK);
  checkpoint_case_make(&made, test->world->rank, test->world->size, 0);
  made.list[0].shape[1]++;
  parallel_expect(test, checkpoint_load(&checkpoint, &step, &made.items, NULL) == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "F32 [300, 301], this job has F32 [300, 302]"));
  made.list[0].shape[1]--;
  made.list[3].name = "momentum";
  parallel_expect(test, checkpoint_load(&checkpoint, &step, &made.items, NULL) == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "no tensor 'momentum'") != NULL);
  made.items.count = 1; /* a part of what is there */
  parallel_expect(test, checkpoint_load(&checkpoint, &step, &made.items, NULL) == STATUS_OK);
  checkpoint_case_free(&made);
}

static void missing_rows_are_found(struct parallel_test *test) {
  const struct checkpoint checkpoint = at(test->world, "missing");
  struct checkpoint_case made;
  clear(test, "missing");
  checkpoint_case_make(&made, test->world->rank, test->world->size, 2);
  if (made.list[1].rows) made.list[1].rows--; /* the last row of the table's moment */
  parallel_expect(test, checkpoint_save(&checkpoint, 1, &made.items, NULL) == STATUS_MISMATCH);
  parallel_expect(test,
                  strstr(error_message(), "row 5002 of 'table.moment' is held by no rank") != NULL);
  if (test->world->size > 1) {
    if (test->world->rank == 1) made.list[0].name = "another";
    parallel_expect(test, checkpoint_save(&checkpoint, 1, &made.items, NULL) == STATUS_INTERNAL);
  }
  checkpoint_case_free(&made);
}

static void old_steps_are_removed(struct parallel_test *test) {
  const struct checkpoint checkpoint = at(test->world, "keep");
  struct checkpoint_steps steps = {0};
  int64_t latest = -1, step = 0;
  clear(test, "keep");
  if (test->world->rank == 0) file_make_folder("keep/step-9.part.dead");
  for (int64_t s = 1; s <= 5; s++) parallel_expect(test, save_as(&checkpoint, 0, s) == STATUS_OK);
  parallel_expect(test, save_as(&checkpoint, 0, 5) == STATUS_OK); /* is there: nothing to do */
  if (test->world->rank == 0) {
    parallel_expect(test, checkpoint_folder_list(&steps, "keep") == STATUS_OK);
    parallel_expect(test, steps.count == 3 && steps.items[0].step == 5 && steps.items[2].step == 3);
    parallel_expect(test, checkpoint_folder_latest("keep", &latest) == STATUS_OK && latest == 5);
    checkpoint_folder_free(&steps);
  }
  parallel_expect(test, load_as(test, &checkpoint, 0, &step) == STATUS_OK && step == 5);
  parallel_expect(test, !file_exists("keep/step-9.part.dead"));
}

static void asked_for_steps_stay(struct parallel_test *test) {
  struct checkpoint checkpoint = at(test->world, "kept");
  checkpoint.keep = (struct checkpoint_retention){.newest = 1, .every = 4, .best = 3};
  const int64_t expected[] = {10, 9, 4, 3};
  struct checkpoint_steps steps = {0};
  clear(test, "kept");
  for (int64_t s = 1; s <= 10; s++) {
    parallel_expect(test, save_as(&checkpoint, 0, s) == STATUS_OK);
    if (s == 8 && test->world->rank == 0) checkpoint_folder_mark("kept", 8, "for this test");
  }
  if (test->world->rank == 0) {
    parallel_expect(test, checkpoint_folder_list(&steps, "kept") == STATUS_OK && steps.count == 4);
    for (int64_t i = 0; i < steps.count && i < 4; i++)
      parallel_expect(test, steps.items[i].step == expected[i]);
    checkpoint_folder_free(&steps);
  }
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-ELA-1 R-ELA-2 any layout loads into any layout", any_layout_to_any_layout},
      {"R-ELA-1 files are the same bytes for any ranks", files_do_not_depend_on_ranks},
      {"R-CKP-2 damage is named and the step before is taken", damage_falls_back},
      {"R-ORD-3 other data or configuration is refused", other_jobs_are_refused},
      {"other tensors are refused, a part is enough", other_tensors_are_refused},
      {"rows that nobody holds are found", missing_rows_are_found},
      {"R-CKP-1 steps are published once and kept in number", old_steps_are_removed},
      {"R-CKP-6 each k-th and the best stay too, never fewer than two", asked_for_steps_stay},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
