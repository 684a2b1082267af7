/* Who holds what: arithmetic on ranges of items and parts. No communication.
 *
 * A range [begin, end) of items is cut into parts 0 .. parts - 1, in order and without gaps. Parts
 * may be uneven and may be empty.
 */
#ifndef SHARDING_SPLIT_H
#define SHARDING_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

struct split {
  int64_t begin, end;
};

static inline int64_t split_count(struct split split) {
  return split.end - split.begin;
}

static inline bool split_holds(struct split split, int64_t index) {
  return split.begin <= index && index < split.end;
}

/* Part `part` of `parts` of `items` items: sizes differ by at most one, the larger parts come
 * first. Local. */
struct split split_even(int64_t items, int64_t parts, int64_t part);

/* The part of split_even that holds item `index`. Local. */
int64_t split_even_owner(int64_t items, int64_t parts, int64_t index);

/* As split_even over blocks of `block` items: inner borders are multiples of `block`. Local. */
struct split split_blocks(int64_t items, int64_t block, int64_t parts, int64_t part);

/* The part that holds item `index` where part p is [borders[p], borders[p + 1]). `index` is in
 * [borders[0], borders[parts]). Local. */
int64_t split_owner(const int64_t *borders, int64_t parts, int64_t index);

/* The overlap of two ranges; empty (begin == end) when there is none. Local. */
struct split split_overlap(struct split a, struct split b);

/* Whether `count` is 1, 2, 4, 8, ... Local. */
bool split_power_of_two(int64_t count);

/* Whether canonical sums over `items` items give the same bits on `ranks` ranks as on one: `ranks`
 * is a power of two that divides `items`. Local. */
bool split_admissible(int64_t ranks, int64_t items);

/* Returns OK when `ranks` is admissible for `items`; otherwise MISMATCH, naming `what` (an option
 * such as "micro_shards") and listing the admissible rank counts. Local. */
enum status split_check_admissible(const char *what, int64_t ranks, int64_t items);

/* Appends the admissible rank counts for `items`: "1, 2, 4". Local. */
enum status split_list_admissible(struct text *list, int64_t items);

#endif
