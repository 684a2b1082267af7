/* Copies, sums, tables, pointwise functions and losses of every table against the reference. */
#include "tests/common/kernel_case.h"
#include "tests/common/tap.h"

/* n rows of c columns, both odd, and once enough of them to take the threaded path. */
static const int64_t SIZES[][6] = {{1, 1, 1},   {2, 3, 1},   {3, 17, 0},   {5, 15, 0},
                                   {4, 63, 2},  {7, 64, 0},  {129, 65, 1}, {300, 130, 0},
                                   {33, 33, 3}, {16, 31, 1}, {2, 1000, 0}};

static void check(const char *name, kernel_case *run) {
  for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
    kernel_case_check(name, run, SIZES[i], DTYPE_F32);
    kernel_case_check(name, run, SIZES[i], DTYPE_BF16);
  }
}

/* The third size chooses a variant. */
struct call {
  const struct kernels *k;
  int64_t n, c, variant;
};

static struct call open_call(const struct kernel_run *run) {
  return (struct call){run->kernels, run->sizes[0], run->sizes[1], run->sizes[2]};
}

static void case_copies(struct kernel_run *run) {
  const struct call s = open_call(run);
  const int64_t count = s.n * s.c;
  void *x = kernel_case_elements(run, count), *y = kernel_case_elements(run, count);
  void *z = kernel_case_elements(run, count), *sums = kernel_case_sums(run, count);
  s.k->copy(y, x, count);
  s.k->scale(z, x, 0.75, count, s.variant & 1);
  s.k->convert_from_sum(y, sums, count, true);
  s.k->convert_to_sum(kernel_case_sums(run, count), z, count);
  s.k->add(kernel_case_elements(run, count), y, z, count);
  s.k->add_sum(sums, kernel_case_sums(run, count), count);
  s.k->fill_zero(kernel_case_elements(run, count), count);
  s.k->convert_from_float(kernel_case_elements(run, count), sums, count);
  s.k->convert_to_float(kernel_case_sums(run, count), x, count);
  s.k->scale_rows_sum(sums, kernel_case_sums(run, s.n), s.n, s.c);
}

static void case_rows(struct kernel_run *run) {
  const struct call s = open_call(run);
  void *x = kernel_case_elements(run, s.n * (s.c + 3));
  s.k->copy_rows(kernel_case_elements(run, s.n * (s.c + 2)), x, s.n, s.c, s.c + 2, s.c + 3,
                 s.variant & 1);
  void *weight = kernel_case_sums(run, s.n);
  s.k->sum_rows(kernel_case_sums(run, s.c), x, s.variant & 1 ? weight : NULL, s.n, s.c, s.c + 3);
  s.k->linear_backward_bias(kernel_case_sums(run, s.c), x, s.n, s.c, s.c + 3);
}

static void case_tables(struct kernel_run *run) {
  const struct call s = open_call(run);
  const int32_t *ids = kernel_case_integers(run, s.n, 0, 20);
  void *table = kernel_case_elements(run, 11 * s.c), *y = kernel_case_elements(run, s.n * s.c);
  s.k->embedding_forward(y, ids, table, s.n, s.c, 5, 11);
  s.k->embedding_backward(kernel_case_sums(run, 11 * s.c), table, ids, s.n < 11 ? s.n : 11, s.c, 5,
                          11);
}

static void case_activations(struct kernel_run *run) {
  const struct call s = open_call(run);
  const int64_t count = s.n * s.c;
  const enum activation kind = (enum activation)(s.variant % 3);
  void *x = kernel_case_elements(run, 2 * count), *dy = kernel_case_elements(run, count);
  s.k->activation_forward(kernel_case_elements(run, 2 * count), x, kind, 2 * count);
  s.k->activation_backward(kernel_case_elements(run, count), dy, x, kind, count, s.variant & 1);
  s.k->gated_forward(kernel_case_elements(run, count), x, kind, s.n, s.c);
  s.k->gated_jvp(kernel_case_elements(run, count), kernel_case_elements(run, 2 * count), x, kind, s.n,
                 s.c);
  s.k->gated_backward(kernel_case_elements(run, 2 * count), dy, x, kind, s.n, s.c, s.variant & 1);
}

static void case_dropout(struct kernel_run *run) {
  const struct call s = open_call(run);
  const struct random_stream streams[] = {random_open(1, "a", 5, 2), random_open(1, "a", 6, 2)};
  const int64_t T = (s.n + 1) / 2;
  void *x = kernel_case_elements(run, s.n * s.c);
  s.k->dropout_forward(kernel_case_elements(run, s.n * s.c), x, streams, 0.3, s.n, s.c, T,
                       s.variant & 1);
}

static void case_errors(struct kernel_run *run) {
  const struct call s = open_call(run);
  void *x = kernel_case_elements(run, s.n * s.c), *target = kernel_case_elements(run, s.n * s.c);
  s.k->mse_forward(kernel_case_sums(run, s.n), x, target, s.n, s.c);
  s.k->mse_backward(kernel_case_elements(run, s.n * s.c), x, target, kernel_case_sums(run, s.n),
                    s.n, s.c, s.variant & 1);
}

static void copies(void **state) {
  (void)state;
  check("copies", case_copies);
}

static void rows(void **state) {
  (void)state;
  check("rows", case_rows);
}

static void tables(void **state) {
  (void)state;
  check("tables", case_tables);
}

static void activations(void **state) {
  (void)state;
  check("activations", case_activations);
}

static void dropout(void **state) {
  (void)state;
  check("dropout", case_dropout);
}

static void errors(void **state) {
  (void)state;
  check("errors", case_errors);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies),      cmocka_unit_test(rows),    cmocka_unit_test(tables),
      cmocka_unit_test(activations), cmocka_unit_test(dropout), cmocka_unit_test(errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
