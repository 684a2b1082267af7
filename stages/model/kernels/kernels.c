#include "stages/model/kernels/kernels.h"

#include <string.h>

#include "stages/model/kernels/cpu.h"
#include "stages/model/kernels/measure.h"
#include "stages/model/kernels/processor.h"
#include "stages/model/kernels/reference.h"

static void open_reference(struct kernels *kernels) {
  if (kernels->element == DTYPE_F64) reference_f64(kernels);
  if (kernels->element == DTYPE_F32) reference_f32(kernels);
  if (kernels->element == DTYPE_BF16) reference_bf16(kernels);
}

enum status kernels_open(struct kernels *kernels, const char *name, enum dtype element) {
  CHECK(element == DTYPE_F64 || element == DTYPE_F32 || element == DTYPE_BF16, STATUS_MISMATCH,
        "kernels have element types F64, F32 and BF16, not %s", dtype_name(element));
  *kernels = (struct kernels){
      .name = "reference", .element = element, .sum = element == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32};
  if (strcmp(name, "measure") == 0) {
    kernels->name = "measure";
    measure_open(kernels);
    return STATUS_OK;
  }
  const bool cpu = strcmp(name, "cpu") == 0;
  CHECK(cpu || strcmp(name, "reference") == 0, STATUS_MISMATCH,
        "there are kernels \"reference\", \"cpu\" and \"measure\", but not \"%s\"", name);
  CHECK(!cpu || element != DTYPE_F64, STATUS_MISMATCH,
        "the kernels \"cpu\" have element types F32 and BF16, not F64; use \"reference\"");
  open_reference(kernels);
  if (!cpu) return STATUS_OK;
  kernels->name = "cpu";
  TRY(cpu_open(kernels));
  return STATUS_OK;
}

enum dtype kernels_best_element(void) {
  return processor_level() == PROCESSOR_AVX512BF16 ? DTYPE_BF16 : DTYPE_F32;
}
