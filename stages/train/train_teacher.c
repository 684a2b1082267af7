#include "stages/train/train_teacher.h"

#include <string.h>

bool train_teacher_is_kept(const struct train *train) {
  return train->flow.distill && train->flow.distill->elf_teacher == ELF_TEACHER_PREVIOUS;
}

bool train_teacher_follows(const struct train *train) {
  return train_teacher_is_kept(train) ||
         (train->flow.distill && train->flow.distill->distill_teacher == TEACHER_EMA);
}

/* A kept teacher changes where a round ends and another begins. */
static bool moves(const struct train *train, int64_t steps) {
  if (!train_teacher_follows(train)) return false;
  if (!train_teacher_is_kept(train)) return true;
  const struct options *distill = train->flow.distill;
  return steps > 0 && steps < distill->steps && steps % (distill->steps / distill->elf_rounds) == 0;
}

int64_t train_teacher_place(const struct train *train, int64_t trained) {
  const char *name = train->trained[trained]->name;
  for (int64_t i = 0; i < train->teacher.count; i++)
    if (strcmp(train->teacher.items[i]->name, name) == 0) return i;
  return -1;
}

static void copy(const struct train *train, const struct param *to, const float *average) {
  const int64_t count = to->row_count * to->cols;
  if (param_dtype(to, train->kernels.element) == DTYPE_F32)
    memcpy(to->data, average, (size_t)count * sizeof *average);
  else
    train->kernels.convert_from_float(to->data, average, count);
}

enum status train_teacher_follow(struct train *train, int64_t steps) {
  if (!moves(train, steps)) return STATUS_OK;
  for (int64_t i = 0; i < train->trained_count; i++) {
    const struct optimizer_tensor *student = &train->optimizer.tensors[i];
    const int64_t at = train_teacher_place(train, i);
    if (at < 0) continue;
    const struct param *to = train->teacher.items[at];
    const size_t each = dtype_bytes(param_dtype(to, train->kernels.element));
    if (student->owned) copy(train, to, student->average);
    if (to->place == PARAM_EVERYWHERE)
      TRY(zero_share(&train->zero, i, to->data, to->row_count * to->cols * (int64_t)each));
  }
  return STATUS_OK;
}
