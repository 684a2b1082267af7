/* Opening and closing a training. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitoring/log.h"
#include "stages/flow/model_weights.h"
#include "stages/train/train.h"
#include "stages/train/train_exchange.h"
#include "stages/train/train_fetch.h"
#include "stages/train/train_inputs.h"
#include "stages/train/train_saved.h"
#include "stages/train/train_teacher.h"

enum { DECLARATION_BYTES = 1 << 30 }; /* reserved, hardly touched */

static const double FLOP_PER_BYTE =
    20; /* of the optimizer: Muon's products against Adam's traffic */

static enum status name_run(struct train *train) {
  if (train->stage->comm->rank == 0) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(train->run_id, sizeof train->run_id, "%llx-%lx-%lx", (long long)now.tv_sec,
             now.tv_nsec, (long)getpid());
  }
  return comm_broadcast(train->stage->comm, train->run_id, sizeof train->run_id, 0);
}

/* `auto` goes on in the type that the newest checkpoint has. */
static enum status open_kernels(struct train *train, enum dtype saved) {
  enum precision_choice precision = train->options->precision;
  if (precision == PRECISION_AUTO && saved == DTYPE_BF16) precision = PRECISION_BF16;
  if (precision == PRECISION_AUTO && saved == DTYPE_F32) precision = PRECISION_FP32;
  return model_open_kernels(&train->kernels, train->options->kernels, precision);
}

static enum status open_grid(struct train *train) {
  const struct options *options = train->options;
  return grid_init(
      &train->grid, train->stage->comm,
      &(struct grid_options){.group_size = options->vocabulary_group,
                             .micro_shards = options->micro_shards,
                             .slices = MODEL_VOCABULARY_SLICES,
                             .canonical = options->reductions == REDUCTIONS_CANONICAL});
}

static enum status declare(struct train *train) {
  struct arena *arena = &train->declarations;
  const bool distils = train->stage->node->kind == KIND_DISTILL;
  TRY(vocab_init(&train->vocab, &train->grid.group, train->facts.vocabulary,
                 MODEL_VOCABULARY_SLICES));
  params_init(&train->params, arena);
  params_init(&train->teacher, arena);
  train->flow = (struct flow){.kind = model_kind(train->shape),
                              .options = &train->shape->options,
                              .distill = distils ? train->options : NULL,
                              .jumps = distils,
                              .vocab = &train->vocab,
                              .kernels = &train->kernels,
                              .params = &train->params,
                              .teacher = distils ? &train->teacher : NULL,
                              .positions = train->facts.positions,
                              .embedding_width = train->facts.embedding_width,
                              .seed = (uint64_t)train->facts.seed,
                              .pad = (int32_t)train->facts.pad,
                              .bos = (int32_t)train->facts.bos,
                              .eos = (int32_t)train->facts.eos};
  return train->flow.kind->init(&train->flow, arena);
}

/* Lists what has a gradient, and makes room for what is said about each. */
static void list_trained(struct train *train) {
  struct arena *arena = &train->declarations;
  const size_t most = (size_t)train->params.count;
  const size_t members = (size_t)train->grid.group.size;
  train->trained = arena_take(arena, most * sizeof(*train->trained));
  for (int64_t i = 0; i < train->params.count; i++) {
    struct param *param = train->params.items[i];
    if (param->frozen) continue;
    train->trained[train->trained_count++] = param;
    if (param->sliced && members > 1)
      param->member_gradients = arena_take_zeroed(arena, members * sizeof(void *));
  }
  train->complete = arena_take_zeroed(arena, most * sizeof(*train->complete));
  train->opened = arena_take_zeroed(arena, most * sizeof(*train->opened));
  train->derived = arena_take_zeroed(arena, most * sizeof(*train->derived));
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->trained[i]->derived)
      train->derived[i] = arena_take(arena, (size_t)param_count(train->trained[i]) * sizeof(float));
  train->squares = arena_take_zeroed(arena, most * sizeof(*train->squares));
  train->scalars = arena_take_zeroed(arena, (size_t)grid_micro_steps(&train->grid) * FLOW_PARTS *
                                                sizeof(*train->scalars));
}

/* Operations of Muon's products, in units of its cubes. */
static double muon_work(const struct train *train, const struct param *param) {
  const double side = (double)(param->rows < param->cols ? param->rows : param->cols);
  return optimizer_takes_muon(train->options, param) ? (double)param_count(param) * side : 0;
}

/* Matrices that all ranks work on together: a rank that owned one of them alone would have more
 * than its share of the work. Sums of PBLAS depend on the grid, so only `fast` may (options.def).
 */
static void choose_together(struct train *train) {
  const struct options *options = train->options;
  double all = 0;
  train->together = arena_take_zeroed(&train->declarations,
                                      (size_t)train->trained_count * sizeof(*train->together));
  if (train->polar_grid.comm == NULL) return;
  for (int64_t i = 0; i < train->trained_count; i++) all += muon_work(train, train->trained[i]);
  for (int64_t i = 0; i < train->trained_count; i++) {
    const struct param *param = train->trained[i];
    const double work = muon_work(train, param), share = all / train->grid.world->size;
    const bool wanted = options->muon_grid == MUON_GRID_ALL || work > share;
    train->together[i] = work > 0 && wanted && !param->sliced && !param->derived;
  }
}

static enum status open_polar_grid(struct train *train) {
  const struct options *options = train->options;
  const bool may = options->optimizer == OPTIMIZER_MUON && options->reductions == REDUCTIONS_FAST &&
                   options->muon_grid != MUON_GRID_NONE && train->grid.world->size > 1;
  return may ? dense_grid_init(&train->polar_grid, train->grid.world) : STATUS_OK;
}

static double cost_of(const struct train *train, int64_t tensor) {
  const struct param *param = train->trained[tensor];
  if (param->derived) return 0;
  const double count = (double)param_count(param);
  const double bytes = (double)optimizer_state_bytes(train->options, param, train->kernels.element);
  const double flop = train->together[tensor] ? 0 : 20 * muon_work(train, param);
  return (count * bytes + flop / FLOP_PER_BYTE) / (param->sliced ? train->grid.group.size : 1);
}

static enum status divide_state(struct train *train) {
  struct arena *arena = &train->declarations;
  const size_t count = (size_t)train->trained_count;
  struct zero_tensor *tensors = arena_take_zeroed(arena, count * sizeof(*tensors));
  for (int64_t i = 0; i < train->trained_count; i++)
    tensors[i] =
        (struct zero_tensor){.cost = cost_of(train, i), .sliced = train->trained[i]->sliced};
  return zero_init(&train->zero, &train->grid, tensors, train->trained_count, arena);
}

static enum status bind_weights(struct train *train) {
  const enum dtype element = train->kernels.element;
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&train->params, &measuring, element, false);
  params_bind(&train->teacher, &measuring, element, false);
  TRY(arena_init(&train->weights, "weights", measuring.peak));
  params_bind(&train->params, &train->weights, element, false);
  params_bind(&train->teacher, &train->weights, element, false);
  return STATUS_OK;
}

static enum status take_gradients(struct train *train) {
  struct arena *arena = &train->declarations;
  struct gradients_tensor *tensors =
      arena_take_zeroed(arena, (size_t)train->trained_count * sizeof(*tensors));
  for (int64_t i = 0; i < train->trained_count; i++) {
    const struct param *param = train->trained[i];
    tensors[i] = (struct gradients_tensor){.count = param->row_count * param->cols,
                                           .vocab = param->sliced ? &train->vocab : NULL,
                                           .everywhere = param->derived};
  }
  const bool narrow = train->options->gradients == GRADIENTS_BF16;
  const struct gradients_setup setup = {.grid = &train->grid,
                                        .zero = &train->zero,
                                        .tensors = tensors,
                                        .count = train->trained_count,
                                        .dtype = narrow ? DTYPE_BF16 : DTYPE_F32,
                                        .keeps = train_exchange_keeps(train)};
  struct arena measuring;
  arena_measure(&measuring, "gradients");
  TRY(gradients_init(&train->gradients, &setup, &measuring));
  TRY(arena_init(&train->sums, "gradients", measuring.peak));
  TRY(gradients_init(&train->gradients, &setup, &train->sums));
  train_exchange_connect(train);
  return STATUS_OK;
}

static enum status take_state(struct train *train) {
  const struct optimizer_setup setup = {.options = train->options,
                                        .vocab = &train->vocab,
                                        .zero = &train->zero,
                                        .together = train->together,
                                        .grid = &train->polar_grid,
                                        .params = train->trained,
                                        .count = train->trained_count,
                                        .element = train->kernels.element,
                                        .kernels = train->kernels.name};
  struct arena measuring;
  arena_measure(&measuring, "optimizer");
  TRY(optimizer_init(&train->optimizer, &setup, &measuring));
  TRY(arena_init(&train->state, "optimizer", measuring.peak));
  return optimizer_init(&train->optimizer, &setup, &train->state);
}

/* Everything that no rank needs another one for. */
static enum status open_local(struct train *train) {
  TRY(train_inputs_open(train));
  TRY(declare(train));
  list_trained(train);
  choose_together(train);
  TRY(divide_state(train));
  train_fetch_plan(train);
  TRY(bind_weights(train));
  TRY(train_fetch_open(train));
  TRY(take_state(train));
  return workspace_init(&train->workspace, &train->kernels, "activations");
}

static enum status first_weights(struct train *train) {
  const enum dtype element = train->kernels.element;
  params_initialise(&train->params, element, train->flow.seed);
  const char *file = train->shape->options.first_weights;
  if (!train->base_folder[0])
    return *file ? train->flow.kind->read_file(&train->flow, file) : STATUS_OK;
  struct model_weights weights;
  TRY(model_weights_open(&weights, train->base_folder, 0));
  enum status status = model_weights_read(&weights, &train->params, element, false);
  if (status == STATUS_OK) status = model_weights_read(&weights, &train->teacher, element, false);
  model_weights_close(&weights);
  return status;
}

static enum status set_weights(struct train *train) {
  bool resumed = false;
  TRY(comm_agree(train->grid.world, first_weights(train)));
  optimizer_start(&train->optimizer);
  TRY(train_saved_read(train, &resumed));
  if (resumed) log_line(train->stage->log, "resumes after step %" PRId64, train->counts.step);
  if (!train_teacher_is_kept(train)) TRY(train_teacher_follow(train, train->counts.step));
  return train->flow.kind->prepare ? train->flow.kind->prepare(&train->flow) : STATUS_OK;
}

static enum status open_metrics(struct train *train) {
  char path[STAGE_PATH_BYTES];
  const bool writes = train->grid.world->rank == 0;
  CHECK(snprintf(path, sizeof path, "%s/" METRIC_FILE_NAME, train->stage->folder) <
            STAGE_PATH_BYTES,
        STATUS_MISMATCH, "%s: the path is too long", train->stage->folder);
  return metric_file_open(&train->metrics, writes ? path : NULL,
                          train->counts.step > 0 ? train->counts.step : -1);
}

enum status train_open(struct train *train, struct stage *stage) {
  *train = (struct train){
      .stage = stage, .options = stage->options, .best = {.step = -1, .validated = -1}};
  train->metrics.descriptor = -1;
  enum dtype saved;
  TRY(name_run(train));
  TRY(train_saved_element(&saved, stage));
  TRY(comm_agree(stage->comm, arena_init(&train->declarations, "declarations", DECLARATION_BYTES)));
  TRY(comm_agree(stage->comm, train_inputs_find(train)));
  TRY(comm_agree(stage->comm, open_kernels(train, saved)));
  TRY(open_grid(train));
  TRY(open_polar_grid(train));
  TRY(comm_agree(stage->comm, open_local(train)));
  TRY(take_gradients(train));
  TRY(set_weights(train));
  TRY(train_saved_preflight(train));
  return comm_agree(stage->comm, open_metrics(train));
}

void train_close(struct train *train) {
  metric_file_close(&train->metrics);
  train_fetch_close(train);
  workspace_free(&train->workspace);
  gradients_free(train->gradients);
  optimizer_free(&train->optimizer);
  train_data_close(&train->held_out);
  train_data_close(&train->data);
  latents_close(&train->online);
  arena_free(&train->state);
  arena_free(&train->sums);
  arena_free(&train->weights);
  dense_grid_free(&train->polar_grid);
  grid_free(&train->grid);
  arena_free(&train->declarations);
}
