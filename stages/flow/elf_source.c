/* Pairs in the training of ELF (arXiv 2605.10938, section 3.4 and the released code): the latents
 * of the source stand before those of the target, clean and as their own draft; the loss covers the
 * target. Some rows hide the source, so that guidance can compare.
 */
#include <string.h>

#include "stages/flow/elf_state.h"

static int64_t source_of(const struct flow_batch *batch, int64_t row) {
  return batch->sources ? batch->sources[row] : 0;
}

struct split elf_covered(const struct flow *flow, const struct flow_batch *batch, int64_t row) {
  const int64_t length = batch->lengths[row], pads = flow->options->elf_pads;
  if (!batch->sources || length == 0) return (struct split){0, length};
  const bool all = pads < 0 || length + pads > batch->positions;
  return (struct split){batch->sources[row], all ? batch->positions : length + pads};
}

const float *elf_row_latents(const struct flow *flow, const struct flow_batch *batch,
                             const struct elf_row *rows, int64_t row) {
  const float *from = rows[row].dropped ? batch->alone : batch->embeddings;
  return from + row * batch->positions * flow->embedding_width;
}

/* Fills a constant row by row; `fill` writes [T, E]. */
typedef void fill_row(float *values, const struct flow *flow, const struct flow_batch *batch,
                      const struct elf_row *rows, int64_t row);

static struct value *make_rows(const struct flow *flow, struct tape *tape,
                               const struct flow_batch *batch, const struct elf_row *rows,
                               fill_row *fill) {
  const int64_t size = batch->positions * flow->embedding_width, E = flow->embedding_width;
  float *values = tape_save(tape, (size_t)(batch->count * size) * sizeof *values);
  for (int64_t b = 0; values && b < batch->count; b++)
    fill(values + b * size, flow, batch, rows, b);
  return tape_input(tape, values, batch->count * batch->positions, E);
}

static void fill_latents(float *values, const struct flow *flow, const struct flow_batch *batch,
                         const struct elf_row *rows, int64_t row) {
  const int64_t size = batch->positions * flow->embedding_width;
  memcpy(values, elf_row_latents(flow, batch, rows, row), (size_t)size * sizeof *values);
}

struct value *elf_latents(const struct flow *flow, struct tape *tape,
                          const struct flow_batch *batch, const struct elf_row *rows) {
  const int64_t n = batch->count * batch->positions;
  if (!batch->alone) return tape_input(tape, batch->embeddings, n, flow->embedding_width);
  return make_rows(flow, tape, batch, rows, fill_latents);
}

void elf_show_source(float *values, const struct flow *flow, const struct flow_batch *batch,
                     const struct elf_row *rows, int64_t row) {
  const size_t count = (size_t)(source_of(batch, row) * flow->embedding_width);
  const struct elf_row *drawn = &rows[row];
  if (drawn->decode && !drawn->dropped && !flow->options->elf_clean_source) return;
  if (drawn->dropped)
    memset(values, 0, count * sizeof *values);
  else if (count)
    memcpy(values, elf_row_latents(flow, batch, rows, row), count * sizeof *values);
}

static void fill_no_draft(float *values, const struct flow *flow, const struct flow_batch *batch,
                          const struct elf_row *rows, int64_t row) {
  memset(values, 0, (size_t)(batch->positions * flow->embedding_width) * sizeof *values);
  if (!rows[row].decode) elf_show_source(values, flow, batch, rows, row);
}

static struct value *zeros(struct tape *tape, int64_t rows, int64_t cols) {
  struct value *value = tape_constant(tape, rows, cols);
  tape->kernels->fill_zero(value->data, rows * cols);
  return value;
}

struct value *elf_no_draft(const struct flow *flow, struct tape *tape,
                           const struct flow_batch *batch, const struct elf_row *rows) {
  if (!batch->sources) return zeros(tape, batch->count * batch->positions, flow->embedding_width);
  return make_rows(flow, tape, batch, rows, fill_no_draft);
}
