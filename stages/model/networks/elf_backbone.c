/* Letters: n rows of latents, E latent width, D width, P control tokens of a kind. */
#include "stages/model/networks/elf_backbone.h"

#include "stages/model/layers/combine.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/rmsnorm.h"

enum { CONTROL = 3 * ELF_CONTROL_TOKENS };
static const double epsilon = 1e-6;

static void declare_input(struct elf_backbone *net, struct params *params) {
  const struct elf_backbone_config *config = &net->config;
  const int64_t latent = config->latent_width;
  net->self_cond_proj = params_add_matrix(params, latent, 2 * latent, PARAM_XAVIER_UNIFORM, 1,
                                          "self_cond_proj.weight");
  net->self_cond_proj_bias =
      params_add_vector(params, latent, PARAM_ZERO, 0, "self_cond_proj.bias");
  net->proj1 = params_add_matrix(params, config->bottleneck, latent, PARAM_XAVIER_UNIFORM, 1,
                                 "text_proj.proj1.weight");
  net->proj2 = params_add_matrix(params, config->width, config->bottleneck, PARAM_XAVIER_UNIFORM, 1,
                                 "text_proj.proj2.weight");
  net->proj2_bias = params_add_vector(params, config->width, PARAM_ZERO, 0, "text_proj.proj2.bias");
}

static void declare_control(struct elf_backbone *net, struct params *params) {
  const int64_t width = net->config.width, count = ELF_CONTROL_TOKENS;
  scalar_embedder_declare(&net->time, params, width, "t_embedder");
  net->time_tokens = params_add_tokens(params, count, width, PARAM_NORMAL, 0.02, "t_emb_tokens");
  scalar_embedder_declare(&net->guidance, params, width, "self_cond_cfg_embedder");
  net->guidance_tokens =
      params_add_tokens(params, count, width, PARAM_NORMAL, 0.02, "self_cond_cfg_tokens");
  net->mode_tokens = params_add_tokens(params, count, width, PARAM_NORMAL, 0.02, "mode_tokens");
}

static void declare_stack(struct elf_backbone *net, struct params *params) {
  const struct elf_backbone_config *config = &net->config;
  prenorm_stack_declare(&net->stack, params,
                        &(struct prenorm_stack_config){.depth = config->depth,
                                                       .feedforward = config->feedforward,
                                                       .recompute = config->recompute,
                                                       .attention = {.width = config->width,
                                                                     .heads = config->heads,
                                                                     .bias = true,
                                                                     .interleaved = true,
                                                                     .epsilon = epsilon}});
}

/* The column of biases is cut by rows with its table. */
static struct param *add_vocabulary_bias(struct params *params, int64_t vocabulary,
                                         const char *name) {
  struct param *bias = params_add_table(params, vocabulary, 1, PARAM_ZERO, 0, "%s", name);
  bias->kind = PARAM_VECTOR;
  bias->dimensions = 1;
  return bias;
}

static void declare_outputs(struct elf_backbone *net, struct params *params) {
  const struct elf_backbone_config *config = &net->config;
  const int64_t latent = config->latent_width, width = config->width;
  net->proj = params_add_matrix(params, latent, width, PARAM_XAVIER_UNIFORM, 1, "proj_kernel");
  net->proj_bias = params_add_vector(params, latent, PARAM_ZERO, 0, "proj_bias");
  net->unembed = params_add_table(params, config->vocabulary, latent, PARAM_XAVIER_UNIFORM, 1,
                                  "unembed_kernel");
  net->unembed->kind = PARAM_MATRIX; /* the released code orthogonalises every matrix */
  net->unembed_bias = add_vocabulary_bias(params, config->vocabulary, "unembed_bias");
  net->final_norm = params_add_vector(params, width, PARAM_ONE, 0, "final_layer.norm_final.weight");
  net->final = params_add_matrix(params, latent, width, PARAM_ZERO, 0, "final_layer.linear.weight");
  net->final_bias = params_add_vector(params, latent, PARAM_ZERO, 0, "final_layer.linear.bias");
}

void elf_backbone_declare(struct elf_backbone *net, struct params *params,
                          const struct elf_backbone_config *config) {
  *net = (struct elf_backbone){.config = *config};
  declare_input(net, params);
  declare_control(net, params);
  declare_stack(net, params);
  declare_outputs(net, params);
}

static struct value *control_tokens(struct tape *tape, const struct elf_backbone *net,
                                    const struct elf_backbone_input *input) {
  const int64_t batch = input->batch;
  struct value *time = scalar_embedder_forward(tape, &net->time, input->time, batch);
  struct value *guidance = scalar_embedder_forward(tape, &net->guidance, input->guidance, batch);
  time = combine_tokens(tape, net->time_tokens, NULL, time, batch);
  guidance = combine_tokens(tape, net->guidance_tokens, NULL, guidance, batch);
  struct value *mode = combine_tokens(tape, net->mode_tokens, input->decode, NULL, batch);
  return combine_rows(tape, combine_rows(tape, time, guidance, batch), mode, batch);
}

static struct value *embed_latents(struct tape *tape, const struct elf_backbone *net,
                                   const struct elf_backbone_input *input) {
  struct value *x = combine_columns(tape, input->z, input->draft);
  x = linear_forward(tape, x, net->self_cond_proj, net->self_cond_proj_bias);
  x = linear_forward(tape, x, net->proj1, NULL);
  return linear_forward(tape, x, net->proj2, net->proj2_bias);
}

struct value *elf_backbone_forward(struct tape *tape, const struct elf_backbone *net,
                                   const struct elf_backbone_input *input) {
  const int64_t batch = input->batch, positions = input->positions;
  struct value *h =
      combine_rows(tape, control_tokens(tape, net, input), embed_latents(tape, net, input), batch);
  const struct sequence sequence = sequence_full(tape, batch, CONTROL, CONTROL + positions);
  h = prenorm_stack_forward(tape, &net->stack, h, &sequence);
  return combine_cut_rows(tape, h, batch, CONTROL, positions);
}

struct value *elf_backbone_denoise(struct tape *tape, const struct elf_backbone *net,
                                   struct value *hidden) {
  struct value *normed = rmsnorm_forward(tape, hidden, net->final_norm, 1, epsilon);
  return linear_forward(tape, normed, net->final, net->final_bias);
}

struct value *elf_backbone_decode(struct tape *tape, const struct elf_backbone *net,
                                  struct value *hidden) {
  struct value *x = linear_forward(tape, hidden, net->proj, net->proj_bias);
  return feedforward_activation(tape, x, ACTIVATION_GELU);
}
