/* Embedded Language Flows: continuous flow over the latents of a frozen encoder, decoded to tokens
 * by the same network (arXiv 2605.10938).
 *
 * Objective: of each row either the squared error of the velocity that the predicted latents imply,
 * or the cross-entropy of its tokens at t = 1; both are sums over the same count of tokens, so that
 * the share of rows is their weight.
 */
#include "stages/flow/elf_state.h"
#include "stages/flow/penalties.h"
#include "stages/model/networks/weights_file.h"

static const char *const parts[] = {"mse", "ce", PENALTIES_NAMES, NULL};

static void cut(struct param *param, const struct vocab *vocab) {
  param_slice(param, vocab->rows.begin, split_count(vocab->rows));
}

static void declare(const struct flow *flow, struct elf_backbone *net, struct params *params) {
  const struct options *options = flow->options;
  elf_backbone_declare(net, params,
                       &(struct elf_backbone_config){.depth = options->depth,
                                                     .width = options->width,
                                                     .heads = options->heads,
                                                     .feedforward = options->feedforward,
                                                     .bottleneck = options->elf_bottleneck,
                                                     .latent_width = flow->embedding_width,
                                                     .vocabulary = flow->vocab->size,
                                                     .recompute = options->recompute});
  cut(net->unembed, flow->vocab);
  cut(net->unembed_bias, flow->vocab);
}

static enum status init(struct flow *flow, struct arena *arena) {
  struct elf *elf = arena_take_zeroed(arena, sizeof *elf);
  flow->state = elf;
  declare(flow, &elf->network, flow->params);
  if (flow->distill) declare(flow, &elf->teacher, flow->teacher);
  return STATUS_OK;
}

static enum status read_file(struct flow *flow, const char *path) {
  return weights_file_read(flow->params, flow->kernels->element, path);
}

static enum status write_file(const struct flow *flow, const char *path) {
  return weights_file_write(flow->params, flow->kernels->element, path);
}

static void weights(const struct flow *flow, const struct flow_batch *batch, double *weight) {
  weight[ELF_MSE] = weight[ELF_CE] = 0;
  for (int64_t row = 0; row < batch->count; row++) {
    const struct elf_row drawn = elf_draw_row(flow, batch, row);
    weight[drawn.decode ? ELF_CE : ELF_MSE] += (double)split_count(elf_covered(flow, batch, row));
  }
  penalties_weights(flow, batch, weight[ELF_CE], weight + ELF_PENALTIES);
}

static double objective(const double *sum, const double *total) {
  const double tokens = total[ELF_MSE] + total[ELF_CE];
  double all = 0;
  for (int part = 0; parts[part]; part++) all += sum[part];
  return tokens > 0 ? all / tokens : 0;
}

const struct flow_kind flow_elf = {.name = "elf",
                                   .parts = parts,
                                   .needs_embeddings = true,
                                   .has_nfe = true,
                                   .init = init,
                                   .read_file = read_file,
                                   .write_file = write_file,
                                   .weights = weights,
                                   .loss = elf_loss,
                                   .objective = objective,
                                   .sample = elf_sample};
