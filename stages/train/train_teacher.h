/* The teacher of a distillation that follows its student: always (distill_teacher: ema), or from
 * round to round (elf_teacher: previous). */
#ifndef STAGES_TRAIN_TRAIN_TEACHER_H
#define STAGES_TRAIN_TRAIN_TEACHER_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/train/train.h"

/* Whether the options ask for it, and whether its weights are of an earlier step, so that they
 * belong to checkpoints. Local. */
bool train_teacher_follows(const struct train *train);
bool train_teacher_is_kept(const struct train *train);

/* The place among the teacher's parameters of trained parameter number `trained`; -1 when the
 * teacher has none of that name. Local. */
int64_t train_teacher_place(const struct train *train, int64_t trained);

/* Copies the student's averages into the weights of a teacher that follows it. Called after weights
 * were set (unless they came with the teacher's) and after every step, the `steps`-th of the
 * training. Collective over world. */
enum status train_teacher_follow(struct train *train, int64_t steps);

#endif
