#include "stages/model/networks/gpt.h"

#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/vocab_embedding.h"

static const double epsilon = 1e-6;

void gpt_declare(struct gpt *net, struct params *params, const struct gpt_config *config) {
  *net = (struct gpt){.config = *config};
  net->table = params_add_table(params, config->vocabulary, config->width, PARAM_NORMAL, 0.02,
                                "embed.weight");
  prenorm_stack_declare(&net->stack, params,
                        &(struct prenorm_stack_config){.depth = config->depth,
                                                       .feedforward = config->feedforward,
                                                       .recompute = config->recompute,
                                                       .attention = {.width = config->width,
                                                                     .heads = config->heads,
                                                                     .epsilon = epsilon}});
  net->final_norm = params_add_vector(params, config->width, PARAM_ONE, 0, "final_norm.weight");
}

struct value *gpt_forward(struct tape *tape, const struct gpt *net, struct vocab *vocab,
                          const int32_t *tokens, int64_t batch, int64_t positions) {
  struct value *h = vocab_embedding_forward(tape, vocab, tokens, batch * positions, net->table);
  const struct sequence sequence = sequence_causal(tape, batch, positions);
  h = prenorm_stack_forward(tape, &net->stack, h, &sequence);
  return rmsnorm_forward(tape, h, net->final_norm, 1, epsilon);
}
