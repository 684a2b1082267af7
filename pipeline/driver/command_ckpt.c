/* millrace ckpt list|verify|diff|repair-pointer: checkpoints without MPI (R-CKP-8). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_compare.h"
#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/base/file.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/commands.h"

static uint64_t bytes_of(const struct manifest *manifest) {
  uint64_t bytes = 0;
  for (int64_t i = 0; i < manifest->output_count; i++)
    bytes += manifest->outputs[i].blocks.file_bytes;
  return bytes;
}

static void print_step(const struct manifest *manifest, const char *mark) {
  char size[24];
  int64_t parent = -1;
  const char *run_id = "?";
  if (scalars_get_integer(&manifest->facts, "parent_step", &parent) != STATUS_OK) parent = -1;
  if (scalars_get_text(&manifest->facts, "run_id", &run_id) != STATUS_OK) run_id = "?";
  printf("  %s, %" PRId64 " ranks, build %s, run %s, after step %" PRId64 "%s\n",
         text_size(size, bytes_of(manifest)), manifest->world, manifest->build, run_id, parent,
         mark);
}

static enum status list_step(const char *folder, const struct checkpoint_step *step,
                             int64_t latest) {
  char path[PATH_MAX];
  struct manifest manifest = {0};
  TRY(checkpoint_folder_step(path, folder, step->step));
  printf("step-%" PRId64, step->step);
  const enum status status = manifest_read(&manifest, path);
  if (status != STATUS_OK) {
    printf("  %s\n", error_message());
    return STATUS_OK;
  }
  print_step(&manifest, step->damaged          ? ", marked damaged"
                        : step->step == latest ? ", latest"
                                               : "");
  manifest_free(&manifest);
  return STATUS_OK;
}

/* Calls `visit` for each step, newest first. */
static enum status each_step(const char *folder, int64_t *count, void *context,
                             enum status visit(const char *folder,
                                               const struct checkpoint_step *step, void *context)) {
  struct checkpoint_steps steps;
  enum status status = STATUS_OK;
  TRY(checkpoint_folder_list(&steps, folder));
  *count = steps.count;
  for (int64_t i = 0; i < steps.count && status == STATUS_OK; i++)
    status = visit(folder, &steps.items[i], context);
  checkpoint_folder_free(&steps);
  TRY(status);
  CHECK(*count, STATUS_MISMATCH, "there are no checkpoints (step-N) in '%s'", folder);
  return STATUS_OK;
}

/* What is said of the steps of a folder. */
struct listing {
  int64_t latest; /* that the pointer names; -1: none */
  int64_t best; /* that had the least held-out loss, as `latest` knows (keep_best); -1: not kept */
  double loss;  /* its */
  bool damaged; /* whether it is marked so */
};

static enum status visit_list(const char *folder, const struct checkpoint_step *step,
                              void *context) {
  struct listing *listing = context;
  if (step->step == listing->best) listing->damaged = step->damaged;
  return list_step(folder, step, listing->latest);
}

static void find_best(struct listing *listing, const char *folder) {
  char path[PATH_MAX];
  struct manifest manifest = {0};
  if (checkpoint_folder_step(path, folder, listing->latest) != STATUS_OK ||
      manifest_read(&manifest, path) != STATUS_OK)
    return;
  if (!scalars_find(&manifest.state, "best_step") ||
      scalars_get_integer(&manifest.state, "best_step", &listing->best) != STATUS_OK ||
      scalars_get_real(&manifest.state, "best_loss", &listing->loss) != STATUS_OK)
    listing->best = -1;
  manifest_free(&manifest);
}

static enum status list(const char *folder) {
  int64_t count = 0;
  struct listing listing = {.best = -1};
  if (checkpoint_folder_latest(folder, &listing.latest) != STATUS_OK) listing.latest = -1;
  find_best(&listing, folder);
  TRY(each_step(folder, &count, &listing, visit_list));
  if (listing.best >= 0)
    printf("best: step-%" PRId64 ", held-out loss %.4f%s\n", listing.best, listing.loss,
           listing.damaged ? ", marked damaged" : "");
  return STATUS_OK;
}

/* Reads all: sizes, headers, the cover of each tensor, and every block. */
static enum status verify_step(const char *path) {
  struct checkpoint_reader reader;
  TRY(checkpoint_reader_open(&reader, path));
  const enum status status = manifest_verify(&reader.manifest, path, true);
  checkpoint_reader_close(&reader);
  return status;
}

static enum status visit_verify(const char *folder, const struct checkpoint_step *step,
                                void *context) {
  char path[PATH_MAX];
  int64_t *damaged = context;
  TRY(checkpoint_folder_step(path, folder, step->step));
  const enum status status = verify_step(path);
  if (status == STATUS_ENVIRONMENT) return status;
  *damaged += status != STATUS_OK;
  printf("step-%" PRId64 ": %s\n", step->step, status == STATUS_OK ? "sound" : error_message());
  return STATUS_OK;
}

static bool is_step(const char *path) {
  char inside[PATH_MAX];
  return manifest_join(inside, path, MANIFEST_NAME) == STATUS_OK && file_exists(inside);
}

static enum status verify(const char *path) {
  int64_t damaged = 0, count = 0;
  if (is_step(path)) {
    TRY(verify_step(path));
    printf("%s: sound\n", path);
    return STATUS_OK;
  }
  TRY(each_step(path, &count, &damaged, visit_verify));
  CHECK(!damaged, STATUS_DAMAGED, "%" PRId64 " of %" PRId64 " checkpoints in '%s' are damaged",
        damaged, count, path);
  return STATUS_OK;
}

static enum status compare(const struct checkpoint_reader *a, const struct checkpoint_reader *b) {
  struct checkpoint_comparison comparison;
  TRY(checkpoint_compare(&comparison, a, b));
  printf("%s%" PRId64 " of %" PRId64 " tensors differ\n", comparison.details.bytes,
         comparison.different, comparison.tensors);
  text_free(&comparison.details);
  CHECK(!comparison.different, STATUS_MISMATCH, "'%s' and '%s' hold different tensors", a->folder,
        b->folder);
  return STATUS_OK;
}

static enum status diff(const char *first, const char *second) {
  struct checkpoint_reader a, b;
  TRY(checkpoint_reader_open(&a, first));
  enum status status = checkpoint_reader_open(&b, second);
  if (status == STATUS_OK) {
    status = compare(&a, &b);
    checkpoint_reader_close(&b);
  }
  checkpoint_reader_close(&a);
  return status;
}

/* The newest step that verifies. */
static enum status visit_newest(const char *folder, const struct checkpoint_step *step,
                                void *context) {
  char path[PATH_MAX];
  int64_t *newest = context;
  TRY(checkpoint_folder_step(path, folder, step->step));
  if (*newest < 0 && !step->damaged && verify_step(path) == STATUS_OK) *newest = step->step;
  return STATUS_OK;
}

static enum status repair_pointer(const char *folder) {
  int64_t newest = -1, count = 0;
  TRY(each_step(folder, &count, &newest, visit_newest));
  CHECK(newest >= 0, STATUS_DAMAGED, "none of the %" PRId64 " checkpoints in '%s' is sound", count,
        folder);
  TRY(checkpoint_folder_point(folder, newest));
  printf("latest is step-%" PRId64 "\n", newest);
  return STATUS_OK;
}

static const char USE[] = "expected: millrace ckpt list FOLDER | verify FOLDER | diff STEP STEP | "
                          "repair-pointer FOLDER, a STEP being a folder step-N";

enum status command_ckpt(int argc, char **argv) {
  struct arguments arguments;
  TRY(arguments_parse(&arguments, argv[0], argc - 1, argv + 1));
  const struct argument_list *operands = &arguments.operands;
  CHECK(operands->count == 2 || operands->count == 3, STATUS_USAGE, "%s", USE);
  const char *verb = operands->items[0], *path = operands->items[1];
  if (!strcmp(verb, "diff") && operands->count == 3) return diff(path, operands->items[2]);
  if (!strcmp(verb, "list") && operands->count == 2) return list(path);
  if (!strcmp(verb, "verify") && operands->count == 2) return verify(path);
  if (!strcmp(verb, "repair-pointer") && operands->count == 2) return repair_pointer(path);
  FAIL(STATUS_USAGE, "%s", USE);
}
