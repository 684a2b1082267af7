/* What ELF's denoising output means (arXiv 2605.10938, appendix C.1; the three targets and their
 * common loss on velocities as in arXiv 2511.13720, table 1). Whatever the network predicts is
 * turned into latents x first, so that objective and samplers are the same for all three.
 */
#include "stages/flow/elf_state.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/modulate.h"

/* Shares of z and of the velocity that the output implies are bounded near the noise as well. */
static double bounded(double time) {
  return time > ELF_SMALLEST_GAP ? time : ELF_SMALLEST_GAP;
}

/* gate[count, E]: what the output, or z - sigma output, is times in x = z + gate * it. */
static struct value *gates(const struct flow *flow, struct tape *tape, const double *time,
                           int64_t count) {
  const bool noise = flow->options->elf_prediction == PREDICTION_EPS;
  const int64_t E = flow->embedding_width;
  float *gate = tape_save(tape, (size_t)(count * E) * sizeof *gate);
  for (int64_t i = 0; gate && i < count * E; i++) {
    const double t = time[i / E];
    gate[i] = (float)(elf_gap(t) / (noise ? bounded(t) : 1));
  }
  return tape_input(tape, gate, count, E);
}

struct value *elf_predict(const struct flow *flow, struct tape *tape,
                          const struct elf_backbone *net, struct value *hidden, struct value *z,
                          const double *time, int64_t count) {
  struct value *output = elf_backbone_denoise(tape, net, hidden);
  const enum prediction_choice prediction = flow->options->elf_prediction;
  if (prediction == PREDICTION_X) return output;
  if (prediction == PREDICTION_EPS)
    output = combine_add(tape, z, combine_scale(tape, output, -flow->options->elf_noise_scale));
  return modulate_gate(tape, z, output, gates(flow, tape, time, count), z->rows / count);
}
