/* Letters: n rows, H heads, D head width. */
#include "stages/model/networks/self_attention.h"

#include "stages/model/layers/attention.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/rope.h"

static const double rotary_base = 10000;

void self_attention_declare(struct self_attention *attention, struct params *params,
                            const struct self_attention_options *options, const char *prefix) {
  const int64_t width = options->width, head_dim = width / options->heads;
  *attention = (struct self_attention){.options = *options};
  attention->qkv =
      params_add_matrix(params, 3 * width, width, PARAM_XAVIER_UNIFORM, 1, "%s.qkv.weight", prefix);
  if (options->bias)
    attention->qkv_bias =
        params_add_vector(params, 3 * width, PARAM_ZERO, 0, "%s.qkv.bias", prefix);
  if (!options->plain) {
    attention->q_norm =
        params_add_vector(params, head_dim, PARAM_ONE, 0, "%s.q_norm.weight", prefix);
    attention->k_norm =
        params_add_vector(params, head_dim, PARAM_ONE, 0, "%s.k_norm.weight", prefix);
  }
  attention->proj =
      params_add_matrix(params, width, width, PARAM_XAVIER_UNIFORM, 1, "%s.proj.weight", prefix);
  if (options->bias)
    attention->proj_bias = params_add_vector(params, width, PARAM_ZERO, 0, "%s.proj.bias", prefix);
}

static struct value *normalise_and_rotate(struct tape *tape, const struct self_attention *attention,
                                          struct value *x, struct param *gain,
                                          const struct sequence *sequence) {
  const struct self_attention_options *options = &attention->options;
  const struct rope rope = {.heads = options->heads,
                            .theta = rotary_base,
                            .interleaved = options->interleaved,
                            .positions = sequence->places};
  if (!options->plain) x = rmsnorm_forward(tape, x, gain, options->heads, options->epsilon);
  return rope_forward(tape, x, &rope);
}

struct value *self_attention_forward(struct tape *tape, const struct self_attention *attention,
                                     struct value *x, const struct sequence *sequence) {
  const int64_t width = attention->options.width, heads = attention->options.heads;
  struct value *qkv = linear_forward(tape, x, attention->qkv, attention->qkv_bias);
  struct value *q = normalise_and_rotate(tape, attention, tape_columns(tape, qkv, 0, width),
                                         attention->q_norm, sequence);
  struct value *k = normalise_and_rotate(tape, attention, tape_columns(tape, qkv, width, width),
                                         attention->k_norm, sequence);
  struct value *v = tape_columns(tape, qkv, 2 * width, width);
  const struct attention shape = {.batch = sequence->batch,
                                  .queries = sequence->positions,
                                  .keys = sequence->positions,
                                  .heads = heads,
                                  .head_dim = width / heads,
                                  .ranges = sequence->ranges,
                                  .shared_ranges = sequence->shared_ranges};
  struct value *mixed = attention_forward(tape, q, k, v, &shape);
  return linear_forward(tape, mixed, attention->proj, attention->proj_bias);
}
