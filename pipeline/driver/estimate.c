#define _XOPEN_SOURCE 700
#include "pipeline/driver/estimate.h"

#include <ftw.h>
#include <sys/stat.h>

#include "pipeline/artefact/run_folder.h"
#include "pipeline/driver/embed_plan.h"
#include "pipeline/driver/memory_plan.h"

enum {
  OPEN_FOLDERS = 16,
  TEXT_BYTES_PER_TOKEN = 4 /* English under a vocabulary of some thousand pieces */
};

static _Thread_local uint64_t walked_bytes; /* nftw has no argument for its visitor */

static int add_file(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)path, (void)where;
  if (kind == FTW_F) walked_bytes += (uint64_t)info->st_size;
  return 0;
}

/* Bytes of a file, or of all files below a folder; 0 when nothing is there. */
static uint64_t bytes_of(const char *path) {
  walked_bytes = 0;
  (void)nftw(path, add_file, OPEN_FOLDERS, FTW_PHYS);
  return walked_bytes;
}

/* Weights and state of the optimizer. */
static uint64_t checkpoint_bytes(const struct training_layout *layout) {
  struct training_layout alone = *layout;
  alone.ranks = alone.group = 1;
  const struct memory_plan plan = memory_plan_of(&alone);
  return (uint64_t)(plan.bytes[MEMORY_weights] + plan.bytes[MEMORY_masters] +
                    plan.bytes[MEMORY_moments] + plan.bytes[MEMORY_averages]);
}

/* At most, with the one that is being written. */
static uint64_t checkpoints_kept(const struct options *options) {
  const int64_t every = options->keep_every;
  return (uint64_t)(options->keep_checkpoints + 1 + options->keep_best + options->save_reserve +
                    (every > 0 ? options->steps / every : 0));
}

static enum status estimate_training(struct estimate *estimate, const struct run *run,
                                     const struct recipe_node *node) {
  struct training_layout layout;
  TRY(training_layout_find(&layout, &run->recipe, node));
  estimate->parameters = (uint64_t)network_size_all(&layout.size);
  estimate->disk_bytes = checkpoint_bytes(&layout) * checkpoints_kept(&node->options);
  return STATUS_OK;
}

static enum status estimate_embed(struct estimate *estimate, const struct run *run,
                                  const struct recipe_node *node) {
  struct embed_rows rows;
  TRY(embed_plan_rows(&rows, run, node, estimate->input_bytes));
  const double bytes = (rows.train + rows.held_out) * rows.bytes;
  estimate->disk_bytes = node->options.embed == EMBED_ONLINE ? 0 : (uint64_t)bytes;
  return STATUS_OK;
}

enum status estimate_node(struct estimate *all, const struct run *run, size_t index) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  struct estimate *estimate = &all[index];
  struct run_folder folder;
  *estimate = (struct estimate){0};
  if (node->kind == KIND_TOKENIZE)
    for (size_t i = 0; i < node->options.input.count; i++)
      estimate->input_bytes += bytes_of(node->options.input.values[i]);
  for (size_t i = 0; i < node->input_count && node->kind != KIND_TOKENIZE; i++)
    if (node->kind != KIND_EMBED || run->recipe.nodes[node->inputs[i]].kind == KIND_TOKENIZE)
      estimate->input_bytes += all[node->inputs[i]].disk_bytes;
  TRY(run_folder_locate(&folder, run->folder, node->name));
  if (node->kind == KIND_TOKENIZE)
    estimate->disk_bytes = estimate->input_bytes / TEXT_BYTES_PER_TOKEN *
                           (uint64_t)training_layout_token_bytes(&run->recipe, node);
  if (node->kind == KIND_EMBED) TRY(estimate_embed(estimate, run, node));
  if (training_layout_applies(node)) TRY(estimate_training(estimate, run, node));
  if (run_folder_is_finished(&folder)) estimate->disk_bytes = bytes_of(folder.path);
  return STATUS_OK;
}
