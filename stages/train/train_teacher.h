/* The teacher of a distillation that follows its student (distill_teacher: ema). */
#ifndef STAGES_TRAIN_TRAIN_TEACHER_H
#define STAGES_TRAIN_TRAIN_TEACHER_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/train/train.h"

/* Whether the options ask for it. Local. */
bool train_teacher_follows(const struct train *train);

/* The place among the teacher's parameters of trained parameter number `trained`; -1 when the
 * teacher has none of that name. Local. */
int64_t train_teacher_place(const struct train *train, int64_t trained);

/* Copies the student's averages into the weights of a teacher that follows it. Called after weights
 * were set and after every update. Collective over world. */
enum status train_teacher_follow(struct train *train);

#endif
