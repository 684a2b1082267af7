/* Branches, times, guidance and noise of ELF: every draw is keyed by the global sample. */
#include <math.h>

#include "stages/flow/elf_state.h"

/* Draws of one row, each at its own position of one stream. */
enum row_draw { DRAW_BRANCH, DRAW_TIME, DRAW_DRAFT, DRAW_GUIDANCE, DRAW_DROP };

static struct random_stream stream_of(const struct flow *flow, const struct flow_batch *batch,
                                      int64_t row, const char *training, const char *validation) {
  return random_open(flow->seed, batch->validation ? validation : training,
                     (uint64_t)batch->samples[row], batch->step);
}

/* By bisection: some 60 halvings of [-9, 9], far from being felt once a row. */
static double normal_quantile(double u) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; i++) {
    const double middle = 0.5 * (low + high);
    if (0.5 * erfc(-middle * sqrt(0.5)) < u)
      low = middle;
    else
      high = middle;
  }
  return 0.5 * (low + high);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

double elf_time(const struct options *options, double u) {
  return sigmoid(options->elf_time_mean + options->elf_time_deviation * normal_quantile(u));
}

/* Log-uniform in 1 + w. */
static double draw_guidance(const struct options *options, double u) {
  const double least = 1 + options->elf_guidance_min, most = 1 + options->elf_guidance_max;
  return least * pow(most / least, u) - 1;
}

/* A step of the student's length that begins where the law says, as far as there is room. */
static void place_step(struct elf_row *drawn, double span) {
  drawn->time *= 1 - span;
  drawn->until = drawn->time + span;
}

struct elf_row elf_draw_row(const struct flow *flow, const struct flow_batch *batch, int64_t row) {
  const struct options *options = flow->options;
  const struct random_stream stream = stream_of(flow, batch, row, "elf.row", "elf.validation.row");
  struct elf_row drawn = {.decode =
                              random_uniform(stream, DRAW_BRANCH) < options->elf_decode_share};
  const double within = random_uniform(stream, DRAW_TIME);
  const double u = ((double)batch->strata[row] + within) / (double)batch->stratum_count;
  drawn.time = drawn.decode ? 1 : elf_time(options, u);
  if (flow->distill && !drawn.decode) place_step(&drawn, elf_distill_span(flow));
  drawn.draft = !drawn.decode && random_uniform(stream, DRAW_DRAFT) < options->elf_self_condition;
  drawn.guidance = draw_guidance(options, random_uniform(stream, DRAW_GUIDANCE));
  drawn.dropped = batch->alone && !batch->validation &&
                  random_uniform(stream, DRAW_DROP) < options->elf_source_drop;
  return drawn;
}

/* row = t x + (1 - t) sigma eps, or p_i x_i + (1 - p_i) s eps_i at each position; `row` holds eps.
 */
static void mix(float *row, const float *x, const struct options *options,
                const struct elf_row *drawn, struct random_stream tokens, int64_t positions,
                int64_t width) {
  for (int64_t i = 0; i < positions; i++) {
    const double share =
        drawn->decode
            ? sigmoid(options->elf_corruption_mean +
                      options->elf_corruption_deviation * random_normal(tokens, (uint64_t)i))
            : drawn->time;
    const double scale = drawn->decode ? options->elf_corruption_scale : options->elf_noise_scale;
    const double noise = (1 - share) * scale;
    for (int64_t c = i * width; c < (i + 1) * width; c++)
      row[c] = (float)(share * (double)x[c] + noise * (double)row[c]);
  }
}

static void put(const struct tape *tape, struct value *value, int64_t first, const float *row,
                int64_t count) {
  unsigned char *target = value->data;
  tape->kernels->convert_from_float(target + (size_t)first * dtype_bytes(tape->kernels->element),
                                    row, count);
}

struct value *elf_noisy(const struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                        const struct elf_row *rows) {
  const int64_t T = batch->positions, E = flow->embedding_width, size = T * E;
  struct value *z = tape_constant(tape, batch->count * T, E);
  const size_t mark = arena_mark(tape->arena);
  float *row = tape_save(tape, (size_t)size * sizeof *row);
  for (int64_t b = 0; row && b < batch->count; b++) {
    random_fill_normal(row, size, stream_of(flow, batch, b, "elf.noise", "elf.validation.noise"),
                       0);
    mix(row, elf_row_latents(flow, batch, rows, b), flow->options, &rows[b],
        stream_of(flow, batch, b, "elf.token", "elf.validation.token"), T, E);
    elf_show_source(row, flow, batch, rows, b);
    put(tape, z, b * size, row, size);
  }
  arena_reset(tape->arena, mark);
  return z;
}
