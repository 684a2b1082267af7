/* The objective of ELF (arXiv 2605.10938).
 *
 * The first pass of self-conditioning runs only over the rows that use it. Guidance needs no pass
 * of its own: where a row has a draft, the guided target moves from the data along the difference
 * between this pass (gradient stopped) and the draft; elsewhere it is the data.
 */
#include "stages/flow/elf_state.h"
#include "stages/flow/penalties.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/head.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/mse.h"

/* Some rows of a batch. */
struct selection {
  int64_t count;
  int64_t *rows;  /* [count] */
  int64_t *index; /* [count * T] their positions in the batch */
};

/* What the parts of the objective share. */
struct work {
  struct flow *flow;
  struct tape *tape;
  const struct flow_batch *batch;
  struct elf_row *rows;
  struct selection denoised; /* never empty */
  struct value *latents, *z, *draft, *hidden;
  struct value *taught; /* of a distillation, the latents to predict in denoised rows */
  double denominator;   /* tokens of the global batch, of both branches */
};

typedef bool row_predicate(const struct elf_row *row);

static bool is_decoded(const struct elf_row *row) {
  return row->decode;
}

static bool is_denoised(const struct elf_row *row) {
  return !row->decode;
}

static bool has_draft(const struct elf_row *row) {
  return row->draft;
}

static void add_row(struct selection *selection, int64_t row, int64_t positions) {
  const int64_t j = selection->count++;
  selection->rows[j] = row;
  for (int64_t i = 0; i < positions; i++) selection->index[j * positions + i] = row * positions + i;
}

/* A measuring tape takes every row, so that what it finds is enough for any draw. */
static struct selection select_rows(const struct work *work, row_predicate *wanted) {
  const int64_t count = work->batch->count, T = work->batch->positions;
  struct arena *records = work->tape->records;
  struct selection selection = {
      .rows = arena_take(records, (size_t)count * sizeof *selection.rows),
      .index = arena_take(records, (size_t)(count * T) * sizeof *selection.index)};
  for (int64_t row = 0; row < count; row++)
    if (wanted(&work->rows[row]) || arena_is_measuring(work->tape->arena))
      add_row(&selection, row, T);
  return selection;
}

/* As select_rows, but never empty: the first row then stands in with weight 0, so that every
 * parameter is used in every micro-shard and ranks exchange gradients in one order. */
static struct selection select_some(const struct work *work, row_predicate *wanted) {
  struct selection selection = select_rows(work, wanted);
  if (selection.count == 0) add_row(&selection, 0, work->batch->positions);
  return selection;
}

/* Runs the network over the selected rows (NULL: all of them). */
static struct value *call_network(const struct work *work, const struct selection *selection,
                                  struct value *z, struct value *draft) {
  const struct elf *elf = work->flow->state;
  const int64_t count = selection ? selection->count : work->batch->count;
  struct arena *records = work->tape->records;
  double *time = arena_take(records, (size_t)count * sizeof *time);
  double *guidance = arena_take(records, (size_t)count * sizeof *guidance);
  float *decode = arena_take(records, (size_t)count * sizeof *decode);
  for (int64_t j = 0; j < count; j++) {
    const struct elf_row *row = &work->rows[selection ? selection->rows[j] : j];
    time[j] = row->time;
    guidance[j] = row->guidance;
    decode[j] = row->decode ? 1 : 0;
  }
  const struct elf_backbone_input input = {.batch = count,
                                           .positions = work->batch->positions,
                                           .z = z,
                                           .draft = draft,
                                           .time = time,
                                           .guidance = guidance,
                                           .decode = decode};
  return elf_backbone_forward(work->tape, &elf->network, &input);
}

static struct value *pick(const struct work *work, const struct selection *selection,
                          struct value *from) {
  return combine_pick_rows(work->tape, from, selection->index,
                           selection->count * work->batch->positions);
}

/* The predicted latents of the selected rows from their residual stream. */
static struct value *predict(const struct work *work, const struct selection *selection,
                             struct value *hidden) {
  double *time = arena_take(work->tape->records, (size_t)selection->count * sizeof *time);
  for (int64_t j = 0; j < selection->count; j++) time[j] = work->rows[selection->rows[j]].time;
  const bool was_recording = tape_pause(work->tape);
  struct value *z = pick(work, selection, work->z);
  tape_resume(work->tape, was_recording);
  const struct elf *elf = work->flow->state;
  return elf_predict(work->flow, work->tape, &elf->network, hidden, z, time, selection->count);
}

/* Copies the selected rows' predictions to their places in `draft`, but for sources. */
static void put_rows(const struct work *work, struct value *draft, const struct value *x,
                     const struct selection *selection) {
  const int64_t size = work->batch->positions * x->cols;
  const size_t bytes = dtype_bytes(work->tape->kernels->element);
  unsigned char *to = draft->data;
  const unsigned char *from = x->data;
  for (int64_t j = 0; to && j < selection->count; j++) {
    const int64_t row = selection->rows[j];
    const int64_t first = work->batch->sources ? work->batch->sources[row] * x->cols : 0;
    work->tape->kernels->copy(to + (size_t)(row * size + first) * bytes,
                              from + (size_t)(j * size + first) * bytes, size - first);
  }
}

/* The first predictions: of the network without a draft, gradient stopped; none in other rows.
 * Only its result stays in memory. */
static struct value *make_draft(const struct work *work) {
  struct tape *tape = work->tape;
  struct value *draft = elf_no_draft(work->flow, tape, work->batch, work->rows);
  const bool was_recording = tape_pause(tape);
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  struct selection selection = select_rows(work, has_draft);
  const bool none = selection.count == 0;
  if (none && tape_fetches(tape)) add_row(&selection, 0, work->batch->positions);
  if (selection.count > 0) {
    struct value *z = pick(work, &selection, work->z);
    struct value *hidden = call_network(work, &selection, z, pick(work, &selection, draft));
    struct value *x = predict(work, &selection, hidden);
    if (!none) put_rows(work, draft, x, &selection);
  }
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
  tape_resume(tape, was_recording);
  return draft;
}

/* 1 - 1 / w for rows with a draft; validation looks at the plain target. */
static double push(const struct work *work, const struct elf_row *row) {
  return row->draft && !work->batch->validation ? 1 - 1 / row->guidance : 0;
}

/* x + (1 - 1 / w) (prediction - draft): the guided velocity target in terms of latents, since both
 * velocities have the same denominator. */
static struct value *guided_target(const struct work *work, const struct selection *selection,
                                   const struct value *prediction) {
  struct tape *tape = work->tape;
  const int64_t T = work->batch->positions, E = prediction->cols;
  const bool was_recording = tape_pause(tape);
  float *pushes = tape_save(tape, (size_t)(selection->count * E) * sizeof *pushes);
  for (int64_t i = 0; pushes && i < selection->count * E; i++)
    pushes[i] = (float)push(work, &work->rows[selection->rows[i / E]]);
  struct value *data = pick(work, selection, work->latents);
  struct value *draft = pick(work, selection, work->draft);
  struct value *way =
      combine_add(tape, tape_detach(tape, prediction), combine_scale(tape, draft, -1));
  struct value *gate = tape_input(tape, pushes, selection->count, E);
  struct value *target = modulate_gate(tape, data, way, gate, T);
  tape_resume(tape, was_recording);
  return target;
}

/* Whether the loss covers position i of the selection for this branch. */
static bool covers(const struct work *work, const struct selection *selection, int64_t i,
                   row_predicate *wanted) {
  const int64_t T = work->batch->positions, row = selection->rows[i / T];
  const struct split covered = elf_covered(work->flow, work->batch, row);
  return wanted(&work->rows[row]) && i % T >= covered.begin && i % T < covered.end;
}

/* Before the pass that is recorded, so that both need not be in memory. */
static struct value *teach(const struct work *work) {
  const struct selection *selection = &work->denoised;
  if (!work->flow->distill) return NULL;
  const bool was_recording = tape_pause(work->tape);
  const struct elf_lesson lesson = {.count = selection->count,
                                    .rows = selection->rows,
                                    .z = pick(work, selection, work->z),
                                    .draft = pick(work, selection, work->draft)};
  struct value *taught =
      elf_distill_target(work->flow, work->tape, work->batch, work->rows, &lesson);
  tape_resume(work->tape, was_recording);
  return taught;
}

/* What a squared error of latents counts: that of velocities, or of a distillation the plain one.
 */
static double scale_of(const struct work *work, int64_t row) {
  const double distance = elf_gap(work->rows[row].time);
  return work->flow->distill ? 1 : 1 / (distance * distance);
}

static void denoise_loss(const struct work *work, struct flow_losses *losses) {
  struct tape *tape = work->tape;
  const struct selection selection = work->denoised;
  const int64_t T = work->batch->positions, n = selection.count * T;
  struct value *x = predict(work, &selection, pick(work, &selection, work->hidden));
  struct value *target = work->taught ? work->taught : guided_target(work, &selection, x);
  float *weight = arena_take_zeroed(tape->records, (size_t)n * sizeof *weight);
  double *loss = arena_take_zeroed(tape->records, (size_t)n * sizeof *loss);
  for (int64_t i = 0; i < n; i++) {
    const double scale = scale_of(work, selection.rows[i / T]);
    if (covers(work, &selection, i, is_denoised)) weight[i] = (float)(scale / work->denominator);
  }
  mse_forward(tape, loss, x, target, weight);
  for (int64_t i = 0; i < n; i++) {
    if (!covers(work, &selection, i, is_denoised)) continue;
    losses->sum[ELF_MSE] += loss[i] * scale_of(work, selection.rows[i / T]);
    losses->weight[ELF_MSE] += 1;
  }
}

static void decode_loss(const struct work *work, struct flow_losses *losses) {
  const struct elf *elf = work->flow->state;
  struct tape *tape = work->tape;
  const struct selection selection = select_some(work, is_decoded);
  const int64_t n = selection.count * work->batch->positions;
  struct value *x = elf_backbone_decode(tape, &elf->network, pick(work, &selection, work->hidden));
  float *weight = arena_take_zeroed(tape->records, (size_t)n * sizeof *weight);
  int32_t *targets = arena_take(tape->records, (size_t)n * sizeof *targets);
  struct head_result result = {.loss =
                                   arena_take_zeroed(tape->records, (size_t)n * sizeof(double))};
  for (int64_t i = 0; i < n; i++) {
    const bool covered = covers(work, &selection, i, is_decoded);
    targets[i] = covered ? work->batch->tokens[selection.index[i]] : -1;
    weight[i] = covered ? (float)(1 / work->denominator) : 0;
  }
  struct head head = {.vocab = work->flow->vocab,
                      .w = elf->network.unembed,
                      .b = elf->network.unembed_bias,
                      .targets = targets,
                      .weight = weight};
  penalties_open(work->flow, work->batch, tape, n, &head, &result);
  head_forward(tape, &result, x, &head);
  for (int64_t i = 0; i < n; i++) {
    if (weight[i] <= 0) continue;
    losses->sum[ELF_CE] += result.loss[i];
    losses->weight[ELF_CE] += 1;
    penalties_add(&head, &result, i, losses, ELF_PENALTIES);
  }
}

enum status elf_loss(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                     const double *total, struct flow_losses *losses) {
  struct work work = {.flow = flow, .tape = tape, .batch = batch};
  *losses = (struct flow_losses){0};
  work.denominator = total[ELF_MSE] + total[ELF_CE];
  if (work.denominator <= 0) work.denominator = 1; /* nothing is covered */
  work.rows = arena_take(tape->records, (size_t)batch->count * sizeof *work.rows);
  for (int64_t b = 0; b < batch->count; b++) work.rows[b] = elf_draw_row(flow, batch, b);
  work.latents = elf_latents(flow, tape, batch, work.rows);
  work.z = elf_noisy(flow, tape, batch, work.rows);
  work.draft = make_draft(&work);
  work.denoised = select_some(&work, is_denoised);
  work.taught = teach(&work);
  work.hidden = call_network(&work, NULL, work.z, work.draft);
  denoise_loss(&work, losses);
  decode_loss(&work, losses);
  return tape->status;
}
