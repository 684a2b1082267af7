/* Rates of this machine, by `make bench`, or stated ones (bench_rates.c). */
#ifndef PIPELINE_DRIVER_BENCH_RATES_H
#define PIPELINE_DRIVER_BENCH_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

struct bench_rates {
  double product;  /* FLOP/s of matrix products on one core */
  double share;    /* of that rate which whole training steps reach */
  double memory;   /* bytes/s that the optimizer of a rank reads and writes */
  double exchange; /* bytes/s of sums over ranks */
  double storage;  /* bytes/s of the shared storage, stated: --storage-rate */
  bool measured;   /* `product` and `share` at least */
};

/* Reads the tables (name,value,unit,ratio,...) that `make bench` left in `folder`; `cores` is the
 * number they were measured with. What is not there stays as stated. Local. ENVIRONMENT for a table
 * that cannot be read. */
enum status bench_rates_read(struct bench_rates *rates, const char *folder, int64_t cores);

#endif
