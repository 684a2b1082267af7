/* Progressive distillation of ELF (arXiv 2605.10938 v2, appendix B, and the released code): one
 * step of the student does what several of a teacher do. Rounds double the length of the student's
 * step, up to the whole way from noise to data.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/flow/elf_state.h"

/* Steps of the teacher over one of the student, in the first round. */
enum { STEPS_OF_BASE = 4, STEPS_OF_PREVIOUS = 2 };

int64_t elf_distill_round(const struct flow *flow) {
  const struct options *distill = flow->distill;
  const int64_t each = distill->steps / distill->elf_rounds, last = distill->elf_rounds - 1;
  const int64_t round = each > 0 ? flow->trained / each : last;
  return round < last ? round : last;
}

double elf_distill_span(const struct flow *flow) {
  return ldexp(1, (int)(elf_distill_round(flow) - flow->distill->elf_rounds + 1));
}

static bool follows(const struct flow *flow) {
  return flow->distill->elf_teacher == ELF_TEACHER_PREVIOUS;
}

/* The base keeps the length of its steps, so that it makes twice as many in every round. */
static int64_t steps_of_teacher(const struct flow *flow) {
  const int64_t asked = flow->distill->elf_teacher_steps;
  if (follows(flow)) return asked ? asked : STEPS_OF_PREVIOUS;
  return (asked ? asked : STEPS_OF_BASE) << elf_distill_round(flow);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void elf_distill_grid(double *times, int64_t steps, const struct flow *flow,
                      const struct flow_batch *batch, int64_t row, const struct elf_row *drawn) {
  const struct random_stream stream =
      random_open(flow->seed, batch->validation ? "elf.validation.teacher" : "elf.teacher",
                  (uint64_t)batch->samples[row], batch->step);
  for (int64_t k = 1; k < steps; k++) {
    const double u = elf_time(flow->options, random_uniform(stream, (uint64_t)k));
    times[k] = drawn->time + u * (drawn->until - drawn->time);
  }
  times[0] = drawn->time;
  times[steps] = drawn->until;
  qsort(times, (size_t)steps + 1, sizeof *times, compare);
}

/* The teacher on its way, over the rows of a lesson. */
struct walk {
  const struct flow *flow;
  struct tape *tape;
  const struct flow_batch *batch;
  const struct elf_row *rows;
  const struct elf_lesson *lesson;
  int64_t steps, size;          /* size = T * E */
  float *start, *z, *draft, *x; /* [count, T, E]; NULL on a measuring tape */
  double *times;                /* [count, steps + 1] */
  double *time, *guidance;      /* [count] of the present step */
  float *decode;                /* [count] zeros */
};

static struct walk open_walk(const struct flow *flow, struct tape *tape,
                             const struct flow_batch *batch, const struct elf_row *rows,
                             const struct elf_lesson *lesson) {
  struct walk walk = {.flow = flow,
                      .tape = tape,
                      .batch = batch,
                      .rows = rows,
                      .lesson = lesson,
                      .steps = steps_of_teacher(flow),
                      .size = batch->positions * flow->embedding_width};
  const size_t count = (size_t)lesson->count, bytes = count * (size_t)walk.size * sizeof(float);
  struct arena *records = tape->records;
  walk.start = tape_save(tape, bytes);
  walk.z = tape_save(tape, bytes);
  walk.draft = tape_save(tape, bytes);
  walk.x = tape_save(tape, bytes);
  walk.times = arena_take(records, count * (size_t)(walk.steps + 1) * sizeof(double));
  walk.time = arena_take(records, count * sizeof(double));
  walk.guidance = arena_take(records, count * sizeof(double));
  walk.decode = arena_take_zeroed(records, count * sizeof(float));
  for (int64_t j = 0; j < lesson->count; j++) {
    const int64_t row = lesson->rows[j];
    elf_distill_grid(walk.times + j * (walk.steps + 1), walk.steps, flow, batch, row, &rows[row]);
    walk.guidance[j] = rows[row].guidance;
  }
  tape_output(tape, walk.start, lesson->z);
  tape_output(tape, walk.draft, lesson->draft);
  if (walk.z) memcpy(walk.z, walk.start, bytes);
  return walk;
}

/* x = what the teacher sees behind z; its memory is given back. */
static void predict(struct walk *walk, int64_t k) {
  const struct elf *elf = walk->flow->state;
  struct tape *tape = walk->tape;
  const int64_t count = walk->lesson->count, E = walk->flow->embedding_width;
  const int64_t n = count * walk->batch->positions;
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  for (int64_t j = 0; j < count; j++) walk->time[j] = walk->times[j * (walk->steps + 1) + k];
  struct value *z = tape_input(tape, walk->z, n, E);
  struct value *hidden = elf_backbone_forward(
      tape, &elf->teacher,
      &(struct elf_backbone_input){.batch = count,
                                   .positions = walk->batch->positions,
                                   .z = z,
                                   .draft = tape_input(tape, walk->draft, n, E),
                                   .time = walk->time,
                                   .guidance = walk->guidance,
                                   .decode = walk->decode});
  tape_output(tape, walk->x,
              elf_predict(walk->flow, tape, &elf->teacher, hidden, z, walk->time, count));
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
}

/* One step of Euler, of all but sources; the next has this prediction as its draft. */
static void advance(struct walk *walk, int64_t k) {
  const int64_t E = walk->flow->embedding_width;
  for (int64_t j = 0; walk->z && j < walk->lesson->count; j++) {
    const double *times = walk->times + j * (walk->steps + 1) + k;
    const int64_t row = walk->lesson->rows[j];
    const int64_t source = walk->batch->sources ? walk->batch->sources[row] * E : 0;
    const int64_t first = j * walk->size + source, count = walk->size - source;
    elf_step(walk->z + first, walk->x + first, count, times[0], times[1]);
    memcpy(walk->draft + first, walk->x + first, (size_t)count * sizeof *walk->draft);
  }
}

/* The prediction that takes a single step from the start to where the teacher is. */
static void turn_back(struct walk *walk) {
  for (int64_t j = 0; walk->z && j < walk->lesson->count; j++) {
    const struct elf_row *row = &walk->rows[walk->lesson->rows[j]];
    const double share = (row->until - row->time) / elf_gap(row->time);
    for (int64_t c = j * walk->size; c < (j + 1) * walk->size; c++) {
      const double start = (double)walk->start[c];
      walk->x[c] = (float)(start + ((double)walk->z[c] - start) / share);
    }
  }
}

struct value *elf_distill_target(const struct flow *flow, struct tape *tape,
                                 const struct flow_batch *batch, const struct elf_row *rows,
                                 const struct elf_lesson *lesson) {
  const int64_t n = lesson->count * batch->positions;
  const bool was_recording = tape_pause(tape);
  struct value *target = tape_constant(tape, n, flow->embedding_width);
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  struct walk walk = open_walk(flow, tape, batch, rows, lesson);
  for (int64_t k = 0; k < walk.steps; k++) {
    predict(&walk, k);
    advance(&walk, k);
  }
  turn_back(&walk);
  tape->kernels->convert_from_float(target->data, walk.x, n * flow->embedding_width);
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
  tape_resume(tape, was_recording);
  return target;
}
