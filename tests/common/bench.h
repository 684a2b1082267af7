/* Timing and the rows that benches print: name,value,unit,ratio,against. */
#ifndef TESTS_COMMON_BENCH_H
#define TESTS_COMMON_BENCH_H

typedef void bench_work(void *context);

/* The best seconds of one run in `rounds` rounds, after one round that is not counted. A round
 * repeats the work until it has lasted 20 ms. Local. */
double bench_seconds(bench_work *work, void *context, int rounds);

/* Prints the head of the table. Local. */
void bench_head(void);

/* Prints one row; `against` names what the ratio compares with ("" and 0 for nothing). Local. */
void bench_row(const char *name, double value, const char *unit, double ratio, const char *against);

#endif
