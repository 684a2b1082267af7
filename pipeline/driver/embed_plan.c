#include "pipeline/driver/embed_plan.h"

#include <stdio.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/run_folder.h"
#include "pipeline/driver/training_layout.h"

static double least(double a, double b) {
  return a < b ? a : b;
}

static enum status find_folder(struct run_folder *folder, bool *finished, const struct run *run,
                               const struct recipe_node *node) {
  TRY(run_folder_locate(folder, run->folder, node->name));
  *finished = run_folder_is_finished(folder);
  return STATUS_OK;
}

static enum status take_rows(struct embed_rows *rows, const struct scalars *facts) {
  int64_t train, held_out;
  TRY(scalars_get_integer(facts, "train_rows", &train));
  TRY(scalars_get_integer(facts, "held_out_rows", &held_out));
  rows->train = (double)train;
  rows->held_out = (double)held_out;
  return STATUS_OK;
}

static enum status read_rows(struct embed_rows *rows, const char *folder) {
  struct manifest manifest = {0};
  TRY(manifest_read(&manifest, folder));
  const enum status status = take_rows(rows, &manifest.facts);
  manifest_free(&manifest);
  return status;
}

static void guess_rows(struct embed_rows *rows, const struct recipe *recipe,
                       const struct recipe_node *tokens, uint64_t bytes) {
  const struct options *o = &tokens->options;
  const int64_t row_bytes = training_layout_token_bytes(recipe, tokens) * o->sequence_length;
  const double all = (double)bytes / (double)row_bytes;
  rows->train = all * (1 - o->held_out);
  rows->held_out = all * o->held_out;
}

enum status embed_plan_rows(struct embed_rows *rows, const struct run *run,
                            const struct recipe_node *embed, uint64_t token_bytes) {
  const struct recipe_node *tokens;
  struct run_folder folder;
  bool finished = false;
  TRY(recipe_upstream(&tokens, &run->recipe, embed, IN_TOKENIZE));
  CHECK(tokens, STATUS_MISMATCH, "%s: '%s' has no tokenize node upstream", embed->where,
        embed->name);
  TRY(find_folder(&folder, &finished, run, tokens));
  if (finished)
    TRY(read_rows(rows, folder.path));
  else
    guess_rows(rows, &run->recipe, tokens, token_bytes);
  const double most = (double)embed->options.embed_rows;
  if (most > 0) rows->train = least(rows->train, most);
  if (most > 0) rows->held_out = least(rows->held_out, most);
  const int64_t positions = tokens->options.sequence_length;
  const struct encoder_size size =
      encoder_size_of(&run->recipe, embed, training_layout_vocabulary(&run->recipe, tokens));
  const double passes = tokens->options.packing == PACKING_PAIRS ? 2 : 1;
  rows->bytes = passes * (double)positions * (double)size.width * sizeof(uint16_t);
  rows->flop = passes * (double)positions * encoder_size_flop(&size, positions);
  return STATUS_OK;
}

/* Operations a second of all ranks of a node. */
static double speed_of(const struct embed_plan_request *request, const struct recipe_node *node) {
  const int64_t ranks = node->options.ranks > 0 ? node->options.ranks : 1;
  const int64_t cores = ranks * launch_threads(request->site, node);
  return (double)cores * request->rates->product * request->rates->share;
}

enum status embed_plan_of(struct embed_plan *plan, const struct embed_plan_request *request) {
  const struct options *o = &request->node->options;
  const struct recipe_node *embed;
  struct run_folder folder;
  struct embed_rows rows;
  bool made = false;
  TRY(recipe_upstream(&embed, &request->run->recipe, request->node, IN_EMBED));
  CHECK(embed, STATUS_INTERNAL, "'%s' reads no embeddings", request->node->name);
  TRY(embed_plan_rows(&rows, request->run, embed, request->token_bytes));
  TRY(find_folder(&folder, &made, request->run, embed));
  made = made && embed->options.embed == EMBED_SHARDS;
  const double all = rows.train + rows.held_out, taken = (double)o->steps * (double)o->batch;
  const double storage = request->rates->storage;
  *plan =
      (struct embed_plan){.shard_bytes = all * rows.bytes,
                          .epochs = rows.train > 0 ? taken / rows.train : 0,
                          .step_flop = (double)o->batch * rows.flop,
                          .encode_seconds = made ? 0 : all * rows.flop / speed_of(request, embed),
                          .write_seconds = made ? 0 : all * rows.bytes / storage,
                          .read_seconds = taken * rows.bytes / storage,
                          .online_seconds = taken * rows.flop / speed_of(request, request->node)};
  return STATUS_OK;
}

static void print_verdict(const struct embed_plan *plan, const struct recipe_node *embed,
                          const struct embed_plan_request *request) {
  const double shards = plan->encode_seconds + plan->write_seconds + plan->read_seconds;
  const bool made = plan->write_seconds <= 0;
  const bool fit = made || !request->free_bytes || plan->shard_bytes < (double)request->free_bytes;
  const bool online = !fit || plan->online_seconds < shards;
  const bool taken = (embed->options.embed == EMBED_ONLINE) == online;
  char have[24];
  printf("  embeddings: %s cheaper, %.3g s against %.3g s", online ? "online is" : "shards are",
         online ? plan->online_seconds : shards, online ? shards : plan->online_seconds);
  if (!fit) printf("; shards do not fit the %s free", text_size(have, request->free_bytes));
  if (taken)
    printf("; the recipe takes %s\n", online ? "it" : "them");
  else
    printf("; --set %s.embed=%s\n", embed->name, online ? "online" : "shards");
}

enum status embed_plan_print(const struct embed_plan_request *request) {
  const struct recipe_node *embed;
  struct embed_plan plan;
  char all[24], rate[24];
  TRY(recipe_upstream(&embed, &request->run->recipe, request->node, IN_EMBED));
  if (!embed) return STATUS_OK;
  TRY(embed_plan_of(&plan, request));
  printf("  embeddings in shards: %s before compression; %.3g s to encode once, %.3g s to write, "
         "%.3g s to read in %.3g epochs, at %s/s of storage\n",
         text_size(all, (uint64_t)plan.shard_bytes), plan.encode_seconds, plan.write_seconds,
         plan.read_seconds, plan.epochs, text_size(rate, (uint64_t)request->rates->storage));
  printf("  embeddings online: %.4g GFLOP a step, %.3g s over %lld steps\n", plan.step_flop / 1e9,
         plan.online_seconds, (long long)request->node->options.steps);
  print_verdict(&plan, embed, request);
  return STATUS_OK;
}
