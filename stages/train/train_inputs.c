#include "stages/train/train_inputs.h"

#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/text.h"
#include "stages/flow/model_weights.h"
#include "stages/flow/t5.h"
#include "stages/tokenize/tokenizer.h"

static enum status find_tokens(struct train *train) {
  const struct recipe_node *node;
  struct tokenizer *tokenizer;
  TRY(stage_input(train->tokens_folder, &node, train->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&tokenizer, train->tokens_folder));
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  const bool adds = model_kind(train->shape)->adds_sentinels && facts->sentinels == 0;
  train->facts =
      (struct model_facts){.vocabulary = facts->vocabulary_size + (adds ? T5_ADDED_SENTINELS : 0),
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
  TRY(model_weights_open(&weights, train->base_folder, 0));
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
  if (kind->needs_embeddings)
    TRY(stage_input(train->embeddings_folder, &train->embed, stage, IN_EMBED));
  return hash_options(train);
}

static bool is_online(const struct train *train) {
  return train->embed && train->embed->options.embed == EMBED_ONLINE;
}

static struct train_data_request describe(struct train *train) {
  const struct options *options = train->options;
  return (struct train_data_request){
      .tokens_folder = train->tokens_folder,
      .embeddings_folder = train->embed && !is_online(train) ? train->embeddings_folder : NULL,
      .online = is_online(train) ? &train->online : NULL,
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

/* Embeddings that are computed follow from the encoder, its precision, the scale and the tokens. */
static enum status fingerprint(struct train *train) {
  char both[2 * HASH_HEX_BYTES] = {0}, online[HASH_HEX_BYTES];
  strncat(both, train->data.tokens.hash, HASH_HEX_BYTES);
  if (is_online(train)) TRY(latents_hash(online, &train->online, train->data.tokens.hash));
  if (train->embed)
    strncat(both, is_online(train) ? online : train->data.embeddings.hash, HASH_HEX_BYTES);
  order_fingerprint(train->fingerprint, &train->data.order,
                    &(struct order_fingerprint){.data_hash = both,
                                                .tokenizer_hash = train->tokenizer_hash,
                                                .row_length = train->facts.positions});
  return STATUS_OK;
}

static enum status check_tokens(const struct train *train, const char *tokens) {
  CHECK(tokens && strcmp(tokens, train->data.tokens.hash) == 0, STATUS_MISMATCH,
        "'%s' embeds tokens %s, but '%s' holds %s; run the embed node again",
        train->embeddings_folder, tokens ? tokens : "that it does not name", train->tokens_folder,
        train->data.tokens.hash);
  return STATUS_OK;
}

/* What the embed node decided for those who compute its embeddings. */
struct decided {
  char tokens[HASH_HEX_BYTES];
  int64_t train_rows, held_out_rows;
};

static enum status take_decided(struct decided *decided, const struct scalars *facts) {
  const char *tokens;
  TRY(scalars_get_text(facts, "tokens", &tokens));
  strncpy(decided->tokens, tokens, sizeof decided->tokens - 1);
  TRY(scalars_get_integer(facts, "train_rows", &decided->train_rows));
  return scalars_get_integer(facts, "held_out_rows", &decided->held_out_rows);
}

static enum status read_decided(struct decided *decided, const char *folder) {
  struct manifest manifest = {0};
  TRY(manifest_read(&manifest, folder));
  const enum status status = take_decided(decided, &manifest.facts);
  manifest_free(&manifest);
  return status;
}

static enum status open_online(struct train *train, struct decided *decided) {
  const struct recipe_node *tokens;
  char folder[STAGE_PATH_BYTES];
  const struct options *options = train->options;
  if (!is_online(train)) return STATUS_OK;
  TRY(read_decided(decided, train->embeddings_folder));
  TRY(stage_input(folder, &tokens, train->stage, IN_TOKENIZE));
  TRY(latents_open(&train->online,
                   &(struct latents_request){.encoder = {.stage = train->stage,
                                                         .node = train->embed,
                                                         .vocabulary = train->facts.vocabulary,
                                                         .tokenizer = train->tokenizer_hash},
                                             .positions = train->facts.positions,
                                             .most = options->batch / options->micro_shards,
                                             .pairs = tokens->options.packing == PACKING_PAIRS}));
  return latents_take_scale(&train->online, train->embeddings_folder);
}

enum status train_inputs_open(struct train *train) {
  struct decided decided = {0};
  TRY(open_online(train, &decided));
  struct train_data_request request = describe(train);
  request.online_rows = decided.train_rows;
  TRY(train_data_open(&train->data, &request, &train->declarations));
  if (train->embed)
    TRY(check_tokens(train, is_online(train) ? decided.tokens
                                             : store_value(&train->data.embeddings, "tokens")));
  request.side = "held_out";
  request.row_limit = train->options->validate_rows;
  request.online_rows = decided.held_out_rows;
  TRY(train_data_open(&train->held_out, &request, &train->declarations));
  train->facts.embedding_width = train->data.width;
  return fingerprint(train);
}
