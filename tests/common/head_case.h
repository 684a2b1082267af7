/* A vocabulary head of any kernel table with its numbers also in double, for tests that compare it
 * with the whole softmax. */
#ifndef TESTS_COMMON_HEAD_CASE_H
#define TESTS_COMMON_HEAD_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/layers/head.h"

/* Hidden states: the student's and those of two teachers. */
enum { HEAD_CASE_STATES = 3 };

struct head_case {
  const char *name; /* of the kernels */
  enum dtype element;
  int64_t N, C, V, D; /* tokens, width, vocabulary, width of `table` */
  int64_t slices;
  /* Made by head_case_open: */
  struct kernels kernels;
  struct arena declarations, arena, records;
  struct params params;
  struct vocab vocab;
  struct tape tape;
  struct param *w, *b, *table;          /* [V, C], [V, 1], [V, D] */
  struct value *x[HEAD_CASE_STATES];    /* [N, C]; the first needs a gradient */
  double *w_wide, *b_wide, *table_wide; /* as stored */
  double *x_wide[HEAD_CASE_STATES];
};

/* Makes what the first members ask for, with gradients of all parameters. Fails the running test
 * when it cannot. The struct refers to itself: it must not be moved. */
void head_case_open(struct head_case *made);
void head_case_close(struct head_case *made);

/* A head on w, and on b where `biased`. */
struct head head_case_head(struct head_case *made, bool biased);

/* wide[count] = numbers of a type. */
void head_case_widen(const struct head_case *made, double *wide, const void *data, int64_t count,
                     enum dtype dtype);

/* out[V] = the logits of a row of states number `which` in double; returns their log-sum-exp. */
double head_case_logits(const struct head_case *made, double *out, int which, int64_t row,
                        bool biased);

/* Fails the running test unless |found - expected| <= bound * (1 + |expected|). */
void head_case_close_to(const struct head_case *made, double found, double expected, double bound,
                        const char *what, int64_t i);

#endif
