#include "stages/model/networks/sequence.h"

#include "stages/model/layers/attention_mask.h"

/* NULL on a measuring tape, where no layer reads places. */
static const int32_t *places(struct tape *tape, int64_t batch, int64_t control, int64_t positions) {
  int32_t *out = tape_save(tape, (size_t)(batch * positions) * sizeof *out);
  for (int64_t row = 0; out && row < batch * positions; row++) {
    const int64_t place = row % positions - control;
    out[row] = place < 0 ? -1 : (int32_t)place;
  }
  return out;
}

struct sequence sequence_full(struct tape *tape, int64_t batch, int64_t control,
                              int64_t positions) {
  return (struct sequence){
      .batch = batch, .positions = positions, .places = places(tape, batch, control, positions)};
}

struct sequence sequence_causal(struct tape *tape, int64_t batch, int64_t positions) {
  struct sequence sequence = sequence_full(tape, batch, 0, positions);
  struct attention_range *ranges = tape_save(tape, (size_t)positions * sizeof *ranges);
  if (ranges) attention_mask_causal(ranges, positions, positions);
  sequence.ranges = ranges;
  sequence.shared_ranges = true;
  return sequence;
}
