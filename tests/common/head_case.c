#include "tests/common/head_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/tap.h"

enum { ROOM = 96 << 20 };

static double *doubles(int64_t count) {
  double *made = malloc((size_t)count * sizeof *made);
  assert_non_null(made);
  return made;
}

void head_case_widen(const struct head_case *made, double *wide, const void *data, int64_t count,
                     enum dtype dtype) {
  if (dtype == DTYPE_F64) {
    memcpy(wide, data, (size_t)count * sizeof *wide);
    return;
  }
  float *narrow = malloc((size_t)count * sizeof *narrow);
  assert_non_null(narrow);
  if (dtype == DTYPE_F32)
    memcpy(narrow, data, (size_t)count * sizeof *narrow);
  else
    made->kernels.convert_to_float(narrow, data, count);
  for (int64_t i = 0; i < count; i++) wide[i] = (double)narrow[i];
  free(narrow);
}

static double *widened(const struct head_case *made, const void *data, int64_t count,
                       enum dtype dtype) {
  double *wide = doubles(count);
  head_case_widen(made, wide, data, count, dtype);
  return wide;
}

static void declare(struct head_case *made) {
  made->w = params_add_table(&made->params, made->V, made->C, PARAM_NORMAL, 0.7, "w");
  made->b = params_add_table(&made->params, made->V, 1, PARAM_NORMAL, 1, "b");
  made->b->kind = PARAM_VECTOR;
  made->table = params_add_table(&made->params, made->V, made->D, PARAM_NORMAL, 1, "table");
}

static void bind(struct head_case *made) {
  struct arena measure;
  arena_measure(&measure, "head");
  params_bind(&made->params, &measure, made->element, true);
  assert_ok(arena_init(&made->arena, "head", measure.peak + ROOM));
  params_bind(&made->params, &made->arena, made->element, true);
  params_initialise(&made->params, made->element, 3);
  made->w_wide = widened(made, made->w->data, made->V * made->C, made->element);
  made->b_wide = widened(made, made->b->data, made->V, made->kernels.sum);
  made->table_wide = widened(made, made->table->data, made->V * made->D, made->element);
}

static void make_states(struct head_case *made, int which) {
  const int64_t count = made->N * made->C;
  float *source = malloc((size_t)count * sizeof *source);
  assert_non_null(source);
  random_fill_normal(source, count, random_open(5, "states", (uint64_t)which, 0), 0);
  made->x[which] = tape_input(&made->tape, source, made->N, made->C);
  made->x[which]->needs_gradient = which == 0;
  made->x_wide[which] = widened(made, made->x[which]->data, count, made->element);
  free(source);
}

void head_case_open(struct head_case *made) {
  assert_ok(kernels_open(&made->kernels, made->name, made->element));
  assert_ok(arena_init(&made->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&made->records, "records", 1 << 20));
  assert_ok(vocab_init(&made->vocab, NULL, made->V, made->slices));
  params_init(&made->params, &made->declarations);
  declare(made);
  bind(made);
  tape_init(&made->tape, &made->kernels, &made->arena, &made->records);
  for (int which = 0; which < HEAD_CASE_STATES; which++) make_states(made, which);
}

void head_case_close(struct head_case *made) {
  for (int which = 0; which < HEAD_CASE_STATES; which++) free(made->x_wide[which]);
  free(made->w_wide);
  free(made->b_wide);
  free(made->table_wide);
  arena_free(&made->arena);
  arena_free(&made->records);
  arena_free(&made->declarations);
}

struct head head_case_head(struct head_case *made, bool biased) {
  return (struct head){.vocab = &made->vocab, .w = made->w, .b = biased ? made->b : NULL};
}

double head_case_logits(const struct head_case *made, double *out, int which, int64_t row,
                        bool biased) {
  double top = -INFINITY, sum = 0;
  for (int64_t v = 0; v < made->V; v++) {
    out[v] = biased ? made->b_wide[v] : 0;
    for (int64_t c = 0; c < made->C; c++)
      out[v] += made->x_wide[which][row * made->C + c] * made->w_wide[v * made->C + c];
    top = fmax(top, out[v]);
  }
  for (int64_t v = 0; v < made->V; v++) sum += exp(out[v] - top);
  return top + log(sum);
}

void head_case_close_to(const struct head_case *made, double found, double expected, double bound,
                        const char *what, int64_t i) {
  if (!(fabs(found - expected) <= bound * (1 + fabs(expected))))
    fail_msg("%s of %s %s, number %d: %.9g, expected %.9g", what, made->name,
             dtype_name(made->element), (int)i, found, expected);
}
