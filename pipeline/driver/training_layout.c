#include "pipeline/driver/training_layout.h"

enum {
  VOCABULARY_SLICES = 16, /* of every vocabulary (sharding/vocab.h) */
  BYTE_VOCABULARY = 258,
  TEXT8_VOCABULARY = 35,
  GPT2_VOCABULARY = 50257,
  CL100K_VOCABULARY = 100277,
  O200K_VOCABULARY = 200019,
  MODEL_VOCABULARY = 32100, /* T5's */
  ADDED_SENTINELS = 100     /* stages/flow/t5.h */
};

bool training_layout_applies(const struct recipe_node *node) {
  return (IN_TRAINING & (1u << node->kind)) != 0;
}

/* `auto` is bf16 where the processor multiplies it, as in stages/model/kernels. */
bool training_layout_narrow(const struct recipe_node *node) {
  if (node->options.precision != PRECISION_AUTO) return node->options.precision == PRECISION_BF16;
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16");
}

int64_t training_layout_vocabulary(const struct recipe *recipe, const struct recipe_node *tokens) {
  const struct options *options = &recipe_tokenizer(recipe, tokens)->options;
  switch (options->tokenizer) {
  case TOKENIZER_BYTE:
    return BYTE_VOCABULARY;
  case TOKENIZER_TEXT8:
    return TEXT8_VOCABULARY;
  case TOKENIZER_GPT2:
    return GPT2_VOCABULARY;
  case TOKENIZER_CL100K:
    return CL100K_VOCABULARY;
  case TOKENIZER_O200K:
    return O200K_VOCABULARY;
  case TOKENIZER_SENTENCEPIECE:
  case TOKENIZER_T5:
  case TOKENIZER_HUGGINGFACE:
    return MODEL_VOCABULARY;
  case TOKENIZER_TRAIN:
  case TOKENIZER_SAME:
    break;
  }
  return options->vocabulary_size;
}

int64_t training_layout_token_bytes(const struct recipe *recipe, const struct recipe_node *tokens) {
  return training_layout_vocabulary(recipe, tokens) > UINT16_MAX + 1 ? 4 : 2;
}

/* Where the tokenizer has no sentinels, T5's are added. */
static int64_t added_ids(const struct recipe_node *node, const struct recipe_node *tokens) {
  const bool needs = node->kind == KIND_PRETRAIN && node->options.method == METHOD_T5;
  return needs && tokens->options.tokenizer != TOKENIZER_T5 ? ADDED_SENTINELS : 0;
}

static enum status find_facts(struct training_layout *layout, const struct recipe *recipe) {
  const struct recipe_node *node = layout->node, *tokens, *embed;
  TRY(recipe_upstream(&tokens, recipe, node, IN_TOKENIZE));
  TRY(recipe_upstream(&embed, recipe, node, IN_EMBED));
  CHECK(tokens, STATUS_MISMATCH, "%s: '%s' has no tokenize node upstream", node->where, node->name);
  layout->positions = tokens->options.sequence_length;
  layout->facts.positions = layout->positions;
  layout->facts.vocabulary = training_layout_vocabulary(recipe, tokens) + added_ids(layout->shape, recipe_tokenizer(recipe, tokens));
  layout->pairs = tokens->options.packing == PACKING_PAIRS;
  if (!embed) return STATUS_OK;
  layout->encoder = encoder_size_of(recipe, embed, layout->facts.vocabulary);
  layout->facts.latent_width = layout->encoder.width;
  if (embed->options.embed == EMBED_ONLINE) layout->online = embed;
  return STATUS_OK;
}

enum status training_layout_find(struct training_layout *layout, const struct recipe *recipe,
                                 const struct recipe_node *node) {
  *layout = (struct training_layout){.node = node,
                                     .shape = node,
                                     .ranks = node->options.ranks > 0 ? node->options.ranks : 1,
                                     .group = node->options.vocabulary_group,
                                     .narrow = training_layout_narrow(node)};
  if (node->kind == KIND_DISTILL) TRY(recipe_upstream(&layout->shape, recipe, node, IN_PRETRAIN));
  CHECK(layout->shape, STATUS_MISMATCH, "%s: '%s' has no pretrain node upstream", node->where,
        node->name);
  TRY(find_facts(layout, recipe));
  layout->size = network_size_of(layout->shape, &layout->facts);
  return STATUS_OK;
}

int64_t training_layout_tokens(const struct training_layout *layout) {
  const struct options *o = &layout->node->options;
  return o->batch / o->micro_shards * layout->positions;
}

int64_t training_layout_steps(const struct training_layout *layout) {
  const int64_t steps = layout->node->options.micro_shards / layout->ranks;
  return steps > 1 ? steps : 1;
}

int64_t training_layout_slices(const struct training_layout *layout) {
  return VOCABULARY_SLICES > layout->group ? VOCABULARY_SLICES / layout->group : 1;
}
