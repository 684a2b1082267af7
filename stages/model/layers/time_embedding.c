#include "stages/model/layers/time_embedding.h"

#include <assert.h>
#include <math.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

/* What is written for one time and one frequency: cosine and sine, or their slopes times a rate. */
struct wave {
  double even, odd;
};

static struct wave wave_of(double time, double frequency) {
  return (struct wave){cos(time * frequency), sin(time * frequency)};
}

static struct wave slope_of(double time, double frequency, double rate) {
  const struct wave wave = wave_of(time, frequency);
  return (struct wave){-rate * frequency * wave.odd, rate * frequency * wave.even};
}

/* Rows of waves, of slopes where there are rates, as elements. */
static void write(struct tape *tape, void *to, const struct value *y, const double *times,
                  const double *rates, double max_period) {
  const int64_t dim = y->cols, half = dim / 2, count = y->rows * dim;
  const size_t mark = arena_mark(tape->arena);
  double *rows = tape_save(tape, (size_t)count * sizeof *rows);
  void *sums = array_sums(tape, count);
  for (int64_t i = 0; rows && i < y->rows * half; i++) {
    const int64_t row = i / half, k = i % half;
    const double frequency = pow(max_period, -(double)k / (double)half);
    const struct wave wave =
        rates ? slope_of(times[row], frequency, rates[row]) : wave_of(times[row], frequency);
    rows[row * dim + k] = wave.even;
    rows[row * dim + half + k] = wave.odd;
  }
  array_put_sums(tape, sums, rows, count);
  tape->kernels->convert_from_sum(to, sums, count, false);
  arena_reset(tape->arena, mark);
}

struct value *time_embedding_forward(struct tape *tape, const double *times, int64_t n, int64_t dim,
                                     double max_period) {
  assert(dim > 0 && dim % 2 == 0);
  struct value *y = tape_constant(tape, n, dim);
  write(tape, y->data, y, times, NULL, max_period);
  return y;
}

void time_embedding_move(struct tape *tape, struct value *y, const double *times,
                         const double *rates, double max_period) {
  write(tape, tangent_open(tape, y), y, times, rates, max_period);
}
