#include "stages/train/train_inputs.h"

#include <string.h>

#include "pipeline/base/text.h"
#include "stages/flow/model_weights.h"
#include "stages/tokenize/tokenizer.h"

static enum status find_tokens(struct train *train) {
  const struct recipe_node *node;
  struct tokenizer *tokenizer;
  TRY(stage_input(train->tokens_folder, &node, train->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&tokenizer, train->tokens_folder));
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  train->facts = (struct model_facts){.vocabulary = facts->vocabulary_size,
                                      .positions = node->options.sequence_length,
                                      .pad = facts->pad,
                                      .bos = facts->bos,
                                      .eos = facts->eos,
                                      .seed = train->options->seed};
  hash_to_hex(train->tokenizer_hash, facts->hash);
  tokenizer_close(tokenizer);
  return STATUS_OK;
}

/* A student goes on with the ids that its teacher knows (R-TOK-5). */
static enum status take_base(struct train *train, const struct scalars *state) {
  const char *hash, *tokenizer;
  TRY(scalars_get_text(state, "weights_hash", &hash));
  TRY(scalars_get_text(state, "tokenizer_hash", &tokenizer));
  CHECK(strcmp(tokenizer, train->tokenizer_hash) == 0, STATUS_MISMATCH,
        "'%s' was trained with tokenizer %s, but '%s' holds %s; distil it on its own tokens",
        train->base_folder, tokenizer, train->tokens_folder, train->tokenizer_hash);
  strncpy(train->base_hash, hash, sizeof train->base_hash - 1);
  return STATUS_OK;
}

static enum status find_base(struct train *train) {
  struct model_weights weights;
  if (train->stage->node->kind != KIND_DISTILL) return STATUS_OK;
  TRY(stage_input(train->base_folder, NULL, train->stage, IN_PRETRAIN | IN_DISTILL));
  TRY(model_weights_open(&weights, train->base_folder));
  const enum status status = take_base(train, &weights.reader.manifest.state);
  model_weights_close(&weights);
  return status;
}

/* Adds every option of a node that can change what it makes. */
static enum status add_options(struct text *text, const struct recipe_node *node) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option_row *row = options_row((enum option)i);
    if (!row->changes_result || !(row->kinds & (1u << node->kind))) continue;
    TRY(text_format(text, "%s=", row->key));
    TRY(options_format(text, &node->options, (enum option)i));
    TRY(text_add(text, "\n"));
  }
  return STATUS_OK;
}

static enum status hash_options(struct train *train) {
  struct text text = {0};
  enum status status = add_options(&text, train->stage->node);
  if (status == STATUS_OK) status = add_options(&text, train->shape);
  if (status == STATUS_OK) hash_to_hex(train->config_hash, hash_bytes128(text.bytes, text.length));
  text_free(&text);
  return status;
}

enum status train_inputs_find(struct train *train) {
  struct stage *stage = train->stage;
  TRY(model_shape(&train->shape, stage->recipe, stage->node));
  TRY(find_tokens(train));
  TRY(find_base(train));
  const struct flow_kind *kind = model_kind(train->shape);
  if (kind->needs_embeddings) TRY(stage_input(train->embeddings_folder, NULL, stage, IN_EMBED));
  return hash_options(train);
}

static struct train_data_request describe(const struct train *train) {
  const struct options *options = train->options;
  return (struct train_data_request){
      .tokens_folder = train->tokens_folder,
      .embeddings_folder = train->embeddings_folder[0] ? train->embeddings_folder : NULL,
      .side = "train",
      .positions = train->facts.positions,
      .pad = (int32_t)(train->facts.pad >= 0 ? train->facts.pad : 0),
      .end = (int32_t)(train->facts.eos >= 0 ? train->facts.eos : 0),
      .seed = (uint64_t)options->seed,
      .batch = options->batch,
      .rows_each = options->batch / options->micro_shards,
      .mix = &options->mix,
      .shards = train->grid.shards};
}

static enum status fingerprint(struct train *train) {
  char both[2 * HASH_HEX_BYTES] = {0};
  strncat(both, train->data.tokens.hash, HASH_HEX_BYTES);
  if (train->data.width > 0) strncat(both, train->data.embeddings.hash, HASH_HEX_BYTES);
  order_fingerprint(train->fingerprint, &train->data.order,
                    &(struct order_fingerprint){.data_hash = both,
                                                .tokenizer_hash = train->tokenizer_hash,
                                                .row_length = train->facts.positions});
  return STATUS_OK;
}

static enum status check_embeddings(const struct train *train) {
  if (train->data.width == 0) return STATUS_OK;
  const char *tokens = store_value(&train->data.embeddings, "tokens");
  CHECK(tokens && strcmp(tokens, train->data.tokens.hash) == 0, STATUS_MISMATCH,
        "'%s' embeds tokens %s, but '%s' holds %s; run the embed node again",
        train->embeddings_folder, tokens ? tokens : "that it does not name", train->tokens_folder,
        train->data.tokens.hash);
  return STATUS_OK;
}

enum status train_inputs_open(struct train *train) {
  struct train_data_request request = describe(train);
  TRY(train_data_open(&train->data, &request, &train->declarations));
  TRY(check_embeddings(train));
  request.side = "held_out";
  request.row_limit = train->options->validate_rows;
  TRY(train_data_open(&train->held_out, &request, &train->declarations));
  train->facts.embedding_width = train->data.width;
  return fingerprint(train);
}
