#include "stages/embed/embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/log.h"
#include "monitoring/progress.h"
#include "pipeline/artefact/manifest.h"
#include "sharding/comm.h"
#include "sharding/store_writer.h"
#include "stages/embed/embed_measure.h"
#include "stages/flow/latents.h"
#include "stages/flow/token_rows.h"
#include "stages/tokenize/tokenizer.h"

enum {
  SHARD_BYTES = 32 << 20,
  SHARDS_OF_SIDE = 16,
  SHARD_ROWS = 64,
  SCALE_ROWS = 64,
  TAG_DIGITS = 12,
  SIDES = 2
};

static const char *const side_names[SIDES] = {"train", "held_out"};

/* One side of the tokens. */
struct side {
  const char *name;
  struct token_rows tokens;
  int64_t rows, shards, rows_of_shard;
};

struct embedder {
  struct stage *stage;
  struct latents latents;
  struct side sides[SIDES];
  int64_t positions, vocabulary;
  char tokenizer[HASH_HEX_BYTES];
  char tag[TAG_DIGITS + 1]; /* of the encoder, its precision, the scale and the tokens */
  bf16 *row;                /* [positions, width] */
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static enum status open_side(struct embedder *embedder, int i, const char *folder,
                             const struct tokenizer_facts *facts) {
  struct side *side = &embedder->sides[i];
  const struct options *options = embedder->stage->options;
  side->name = side_names[i];
  TRY(token_rows_open(&side->tokens,
                      &(struct token_rows_request){.folder = folder,
                                                   .side = side->name,
                                                   .vocabulary = facts->vocabulary_size,
                                                   .pad = facts->pad,
                                                   .end = facts->eos,
                                                   .positions = embedder->positions,
                                                   .most = options->batch}));
  const int64_t rows = side->tokens.store.rows;
  side->rows = options->embed_rows > 0 ? least(options->embed_rows, rows) : rows;
  return STATUS_OK;
}

static enum status open_tokens(struct embedder *embedder) {
  char folder[STAGE_PATH_BYTES];
  struct tokenizer *tokenizer;
  const struct recipe_node *node;
  enum status status = STATUS_OK;
  TRY(stage_input(folder, &node, embedder->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&tokenizer, folder));
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  embedder->vocabulary = facts->vocabulary_size;
  hash_to_hex(embedder->tokenizer, facts->hash);
  embedder->positions = node->options.sequence_length;
  for (int i = 0; i < SIDES && status == STATUS_OK; i++)
    status = open_side(embedder, i, folder, facts);
  tokenizer_close(tokenizer);
  return status;
}

/* Shards of about SHARD_BYTES, but enough of them to keep some ranks busy. */
static void cut_side(struct side *side, int64_t row_bytes) {
  const int64_t most = SHARD_BYTES > row_bytes ? SHARD_BYTES / row_bytes : 1;
  const int64_t fair = (side->rows + SHARDS_OF_SIDE - 1) / SHARDS_OF_SIDE;
  side->rows_of_shard = least(most, fair > SHARD_ROWS ? fair : SHARD_ROWS);
  side->shards = (side->rows + side->rows_of_shard - 1) / side->rows_of_shard;
}

static enum status open_all(struct embedder *embedder) {
  const struct options *options = embedder->stage->options;
  struct latents *latents = &embedder->latents;
  TRY(open_tokens(embedder));
  TRY(latents_open(latents,
                   &(struct latents_request){.encoder = {.stage = embedder->stage,
                                                         .node = embedder->stage->node,
                                                         .vocabulary = embedder->vocabulary,
                                                         .tokenizer = embedder->tokenizer},
                                             .positions = embedder->positions,
                                             .most = options->batch,
                                             .pairs = embedder->sides[0].tokens.pairs}));
  const size_t row_bytes = (size_t)(embedder->positions * latents->width) * sizeof(bf16);
  for (int i = 0; i < SIDES; i++) cut_side(&embedder->sides[i], (int64_t)row_bytes);
  embedder->row = malloc(row_bytes);
  CHECK(embedder->row, STATUS_ENVIRONMENT, "out of memory: a row of embeddings, %zu bytes",
        row_bytes);
  return STATUS_OK;
}

static void close_all(struct embedder *embedder) {
  for (int i = 0; i < SIDES; i++) token_rows_close(&embedder->sides[i].tokens);
  latents_close(&embedder->latents);
  free(embedder->row);
}

static struct latents_rows rows_of(const struct side *side, int64_t count) {
  const struct token_rows *rows = &side->tokens;
  return (struct latents_rows){
      .count = count, .tokens = rows->tokens, .lengths = rows->lengths, .sources = rows->sources};
}

/* The scale is decided by one rank, so that it is the same on all machines. */
static enum status set_scale(struct embedder *embedder) {
  struct comm *comm = embedder->stage->comm;
  struct latents *latents = &embedder->latents;
  const struct options *options = embedder->stage->options;
  struct side *side = &embedder->sides[0];
  const bool channels = options->embed_normalise == NORMALISE_CHANNELS;
  const int64_t bytes = latents->width * (int64_t)sizeof(float);
  enum status status = STATUS_OK;
  if (!channels && options->embed_scale > 0)
    latents_set_scale(latents, options->embed_scale);
  else if (comm->rank == 0)
    status = embed_measure(latents, &side->tokens, least(SCALE_ROWS, side->rows), channels);
  TRY(comm_agree(comm, status));
  latents->channels = channels;
  TRY(comm_broadcast(comm, &latents->scale, sizeof latents->scale, 0));
  TRY(comm_broadcast(comm, latents->shift, bytes, 0));
  return comm_broadcast(comm, latents->factor, bytes, 0);
}

static enum status set_tag(struct embedder *embedder) {
  char hash[HASH_HEX_BYTES];
  TRY(latents_hash(hash, &embedder->latents, embedder->sides[0].tokens.store.hash));
  snprintf(embedder->tag, sizeof embedder->tag, "%.*s", TAG_DIGITS, hash);
  return STATUS_OK;
}

/* Values were rounded before: this changes none. */
static enum status add_row(struct embedder *embedder, struct store_writer *writer, int64_t column,
                           const float *values) {
  const int64_t size = embedder->positions * embedder->latents.width;
  for (int64_t c = 0; c < size; c++) embedder->row[c] = bf16_from_float(values[c]);
  return store_writer_add(writer, column, embedder->row, size);
}

static enum status add_rows(struct embedder *embedder, struct store_writer *writer, int64_t count) {
  const struct latents *latents = &embedder->latents;
  const int64_t size = embedder->positions * latents->width;
  for (int64_t i = 0; i < count; i++) {
    TRY(add_row(embedder, writer, 0, latents->values + i * size));
    if (latents->alone) TRY(add_row(embedder, writer, 1, latents->alone + i * size));
  }
  return STATUS_OK;
}

static enum status write_rows(struct embedder *embedder, struct side *side,
                              struct store_writer *writer, int64_t shard) {
  const int64_t first = shard * side->rows_of_shard;
  const int64_t end = least(first + side->rows_of_shard, side->rows);
  for (int64_t row = first; row < end; row += embedder->stage->options->batch) {
    const int64_t count = least(embedder->stage->options->batch, end - row);
    const struct latents_rows rows = rows_of(side, count);
    TRY(token_rows_read(&side->tokens, row, count));
    TRY(latents_embed(&embedder->latents, &rows));
    TRY(add_rows(embedder, writer, count));
  }
  return store_writer_close(writer);
}

static struct store_writer_column column_of(const struct embedder *embedder, const char *name) {
  return (struct store_writer_column){.name = name,
                                      .dtype = DTYPE_BF16,
                                      .dimensions = 2,
                                      .shape = {embedder->positions, embedder->latents.width},
                                      .planes = true};
}

static enum status embed_shard(struct embedder *embedder, struct side *side, int64_t shard) {
  char scale[32];
  snprintf(scale, sizeof scale, "%.17g", embedder->latents.scale);
  const struct store_writer_column columns[] = {column_of(embedder, "embeddings"),
                                                column_of(embedder, "embeddings_alone")};
  const struct safetensors_pair pairs[] = {{"encoder_hash", embedder->latents.encoder.hash},
                                           {"scale", scale},
                                           {"tokens", embedder->sides[0].tokens.store.hash}};
  const struct store_writer_options options = {.folder = embedder->stage->folder,
                                               .name = side->name,
                                               .tag = embedder->tag,
                                               .index = shard,
                                               .columns = columns,
                                               .column_count = embedder->latents.alone ? 2 : 1,
                                               .pairs = pairs,
                                               .pair_count = sizeof pairs / sizeof *pairs};
  struct store_writer writer;
  if (store_writer_is_done(&options)) return STATUS_OK;
  TRY(store_writer_open(&writer, &options));
  const enum status status = write_rows(embedder, side, &writer, shard);
  store_writer_abandon(&writer);
  TRY(status);
  return STATUS_OK;
}

/* One round: a shard for every rank that has one left. All ranks leave together. */
static enum status embed_round(struct embedder *embedder, struct side *side, int64_t round) {
  struct comm *comm = embedder->stage->comm;
  const int64_t shard = round * comm->size + comm->rank;
  enum status status = STATUS_OK;
  if (shard < side->shards) status = embed_shard(embedder, side, shard);
  if (status == STATUS_OK && stage_stop_requested())
    status = error_raise(STATUS_STOPPED, __FILE__, __LINE__, __func__,
                         "stopped on request after shard %lld of %s", (long long)shard, side->name);
  return comm_agree(comm, status);
}

static enum status embed_side(struct embedder *embedder, struct side *side) {
  const struct stage *stage = embedder->stage;
  const int64_t rounds = (side->shards + stage->comm->size - 1) / stage->comm->size;
  struct progress progress;
  char left[PROGRESS_TIME_BYTES];
  progress_start(&progress, 0, rounds);
  for (int64_t round = 0; round < rounds; round++) {
    TRY(embed_round(embedder, side, round));
    log_line(stage->log, "%s: round %lld of %lld (%lld rows), %s left", side->name,
             (long long)round + 1, (long long)rounds, (long long)side->rows,
             progress_time(left, progress_left(&progress, round + 1)));
  }
  return STATUS_OK;
}

static enum status note_facts(const struct embedder *embedder) {
  const struct latents *latents = &embedder->latents;
  const struct options *options = embedder->stage->options;
  struct manifest *manifest = embedder->stage->manifest;
  struct scalars *facts = &manifest->facts;
  TRY(scalars_set_text(facts, "embed", options_choice(options, OPTION_embed)));
  TRY(scalars_set_text(facts, "encoder", options_choice(options, OPTION_encoder)));
  TRY(scalars_set_text(facts, "encoder_hash", latents->encoder.hash));
  TRY(scalars_set_text(facts, "tokens", embedder->sides[0].tokens.store.hash));
  TRY(scalars_set_integer(facts, "width", latents->width));
  TRY(scalars_set_integer(facts, "positions", embedder->positions));
  TRY(scalars_set_real(facts, "scale", latents->scale));
  if (latents->channels) TRY(latents_write_channels(latents, embedder->stage->folder));
  TRY(scalars_set_integer(facts, "train_rows", embedder->sides[0].rows));
  TRY(scalars_set_integer(facts, "held_out_rows", embedder->sides[1].rows));
  return manifest_collect(manifest, embedder->stage->folder);
}

static enum status embed_sides(struct embedder *embedder) {
  if (embedder->stage->options->embed == EMBED_ONLINE) {
    log_line(embedder->stage->log, "no shards: who trains on these embeddings computes them");
    return STATUS_OK;
  }
  for (int i = 0; i < SIDES; i++) TRY(embed_side(embedder, &embedder->sides[i]));
  return STATUS_OK;
}

static enum status embed_all(struct embedder *embedder) {
  const struct stage *stage = embedder->stage;
  const struct latents *latents = &embedder->latents;
  TRY(set_scale(embedder));
  TRY(set_tag(embedder));
  log_line(stage->log, "encoder %s (%s%s), width %lld, outputs divided by %.4g%s",
           options_choice(stage->options, OPTION_encoder), latents->encoder.hash,
           stage->options->encoder == ENCODER_RANDOM ? ", random weights" : "",
           (long long)latents->width, latents->scale,
           latents->channels ? " in the mean; each channel by its own" : "");
  TRY(embed_sides(embedder));
  return comm_agree(stage->comm, stage->comm->rank == 0 ? note_facts(embedder) : STATUS_OK);
}

enum status embed_stage(struct stage *stage) {
  struct embedder embedder = {.stage = stage};
  enum status status = comm_agree(stage->comm, open_all(&embedder));
  if (status == STATUS_OK) status = embed_all(&embedder);
  close_all(&embedder);
  if (status != STATUS_OK) return error_pass(status, __FILE__, __LINE__, __func__);
  return STATUS_OK;
}
