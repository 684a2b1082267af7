#include "stages/embed/embed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/log.h"
#include "monitoring/progress.h"
#include "pipeline/artefact/manifest.h"
#include "sharding/comm.h"
#include "sharding/store.h"
#include "sharding/store_writer.h"
#include "stages/embed/encoder.h"
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
  struct store store;
  struct store_column column;
  struct source_cache cache;
  int64_t rows, shards, rows_of_shard;
};

struct embedder {
  struct stage *stage;
  struct encoder encoder;
  struct side sides[SIDES];
  int64_t positions, width;
  int32_t pad;
  int64_t vocabulary;
  double scale;
  char tag[TAG_DIGITS + 1];  /* of the encoder, its precision, the scale and the tokens */
  int32_t *tokens, *lengths; /* [batch, positions], [batch] */
  float *values;             /* [batch, positions, width] */
  bf16 *row;                 /* [positions, width] */
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static enum status open_side(struct side *side, const char *folder, const char *name,
                             int64_t limit) {
  side->name = name;
  TRY(store_open(&side->store, folder, name));
  side->rows = limit > 0 ? least(limit, side->store.rows) : side->store.rows;
  return store_find(&side->store, &side->column, "tokens");
}

static enum status open_tokens(struct embedder *embedder) {
  char folder[STAGE_PATH_BYTES];
  struct tokenizer *tokenizer;
  const struct recipe_node *node;
  TRY(stage_input(folder, &node, embedder->stage, IN_TOKENIZE));
  TRY(tokenizer_open(&tokenizer, folder));
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  embedder->pad = facts->pad >= 0 ? facts->pad : 0;
  embedder->vocabulary = facts->vocabulary_size;
  tokenizer_close(tokenizer);
  embedder->positions = node->options.sequence_length;
  const int64_t limit = embedder->stage->options->embed_rows;
  for (int i = 0; i < SIDES; i++) TRY(open_side(&embedder->sides[i], folder, side_names[i], limit));
  return STATUS_OK;
}

static enum status take_buffers(struct embedder *embedder) {
  const size_t batch = (size_t)embedder->stage->options->batch, T = (size_t)embedder->positions;
  const size_t width = (size_t)embedder->width;
  embedder->tokens = calloc(batch * T, sizeof *embedder->tokens);
  embedder->lengths = calloc(batch, sizeof *embedder->lengths);
  embedder->values = malloc(batch * T * width * sizeof *embedder->values);
  embedder->row = malloc(T * width * sizeof *embedder->row);
  CHECK(embedder->tokens && embedder->lengths && embedder->values && embedder->row,
        STATUS_ENVIRONMENT, "out of memory: a batch of %zu rows of embeddings", batch);
  return STATUS_OK;
}

/* Shards of about SHARD_BYTES, but enough of them to keep some ranks busy. */
static void cut_side(struct side *side, int64_t row_bytes) {
  const int64_t most = SHARD_BYTES > row_bytes ? SHARD_BYTES / row_bytes : 1;
  const int64_t fair = (side->rows + SHARDS_OF_SIDE - 1) / SHARDS_OF_SIDE;
  side->rows_of_shard = least(most, fair > SHARD_ROWS ? fair : SHARD_ROWS);
  side->shards = (side->rows + side->rows_of_shard - 1) / side->rows_of_shard;
}

static enum status open_all(struct embedder *embedder) {
  TRY(open_tokens(embedder));
  TRY(encoder_open(&embedder->encoder,
                   &(struct encoder_request){.options = embedder->stage->options,
                                             .vocabulary = embedder->vocabulary,
                                             .positions = embedder->positions}));
  embedder->width = embedder->encoder.net.config.width;
  for (int i = 0; i < SIDES; i++)
    cut_side(&embedder->sides[i], embedder->positions * embedder->width * (int64_t)sizeof(bf16));
  return take_buffers(embedder);
}

static void close_all(struct embedder *embedder) {
  for (int i = 0; i < SIDES; i++) {
    source_cache_free(&embedder->sides[i].cache);
    store_close(&embedder->sides[i].store);
  }
  encoder_close(&embedder->encoder);
  free(embedder->tokens);
  free(embedder->lengths);
  free(embedder->values);
  free(embedder->row);
}

/* Fills values with rows [first, first + count) of a side. */
static enum status encode(struct embedder *embedder, struct side *side, int64_t first,
                          int64_t count) {
  const int64_t T = embedder->positions;
  for (int64_t i = 0; i < count; i++) {
    int64_t length;
    int32_t *tokens = embedder->tokens + i * T;
    for (int64_t j = 0; j < T; j++) tokens[j] = embedder->pad;
    TRY(store_read_int32(&side->column, &side->cache, first + i, tokens, &length));
    embedder->lengths[i] = (int32_t)length;
    for (int64_t j = 0; j < length; j++)
      CHECK(tokens[j] >= 0 && tokens[j] < embedder->vocabulary, STATUS_DAMAGED,
            "'%s', side %s, row %lld: token %d, the vocabulary has %lld", side->store.folder,
            side->name, (long long)(first + i), tokens[j], (long long)embedder->vocabulary);
  }
  return encoder_run(&embedder->encoder, embedder->values, embedder->tokens, embedder->lengths,
                     count);
}

/* Root mean square over the valid positions of the first training rows. */
static enum status measure_scale(struct embedder *embedder, double *scale) {
  struct side *side = &embedder->sides[0];
  const int64_t T = embedder->positions, width = embedder->width;
  const int64_t rows = least(SCALE_ROWS, side->rows);
  double sum = 0, count = 0;
  for (int64_t first = 0; first < rows; first += embedder->stage->options->batch) {
    const int64_t batch = least(embedder->stage->options->batch, rows - first);
    TRY(encode(embedder, side, first, batch));
    for (int64_t i = 0; i < batch * T; i++) {
      if (i % T >= embedder->lengths[i / T]) continue;
      const float *values = embedder->values + i * width;
      for (int64_t c = 0; c < width; c++) sum += (double)values[c] * (double)values[c];
      count += (double)width;
    }
  }
  CHECK(sum > 0 && isfinite(sum), STATUS_MISMATCH,
        "the encoder's outputs have no usable size (sum of squares %g); are its weights right?",
        sum);
  *scale = sqrt(sum / count);
  return STATUS_OK;
}

/* The scale is decided by one rank, so that it is the same on all machines. */
static enum status set_scale(struct embedder *embedder) {
  struct comm *comm = embedder->stage->comm;
  enum status status = STATUS_OK;
  embedder->scale = embedder->stage->options->embed_scale;
  if (comm->rank == 0 && embedder->scale <= 0) status = measure_scale(embedder, &embedder->scale);
  TRY(comm_agree(comm, status));
  return comm_broadcast(comm, &embedder->scale, sizeof embedder->scale, 0);
}

static enum status set_tag(struct embedder *embedder) {
  struct text rules = {0};
  char hex[HASH_HEX_BYTES];
  TRY(text_format(&rules, "%s %s %s %.17g %s", embedder->encoder.hash,
                  embedder->encoder.kernels.name, dtype_name(embedder->encoder.kernels.element),
                  embedder->scale, embedder->sides[0].store.hash));
  hash_to_hex(hex, hash_bytes128(rules.bytes, rules.length));
  text_free(&rules);
  snprintf(embedder->tag, sizeof embedder->tag, "%.*s", TAG_DIGITS, hex);
  return STATUS_OK;
}

static enum status add_rows(struct embedder *embedder, struct store_writer *writer, int64_t count) {
  const int64_t size = embedder->positions * embedder->width;
  const float factor = (float)(1 / embedder->scale);
  for (int64_t i = 0; i < count; i++) {
    const float *values = embedder->values + i * size;
    for (int64_t c = 0; c < size; c++) embedder->row[c] = bf16_from_float(factor * values[c]);
    TRY(store_writer_add(writer, 0, embedder->row, size));
  }
  return STATUS_OK;
}

static enum status write_rows(struct embedder *embedder, struct side *side,
                              struct store_writer *writer, int64_t shard) {
  const int64_t first = shard * side->rows_of_shard;
  const int64_t end = least(first + side->rows_of_shard, side->rows);
  for (int64_t row = first; row < end; row += embedder->stage->options->batch) {
    const int64_t count = least(embedder->stage->options->batch, end - row);
    TRY(encode(embedder, side, row, count));
    TRY(add_rows(embedder, writer, count));
  }
  return store_writer_close(writer);
}

static enum status embed_shard(struct embedder *embedder, struct side *side, int64_t shard) {
  char scale[32];
  snprintf(scale, sizeof scale, "%.17g", embedder->scale);
  const struct store_writer_column column = {.name = "embeddings",
                                             .dtype = DTYPE_BF16,
                                             .dimensions = 2,
                                             .shape = {embedder->positions, embedder->width},
                                             .planes = true};
  const struct safetensors_pair pairs[] = {{"encoder_hash", embedder->encoder.hash},
                                           {"scale", scale},
                                           {"tokens", embedder->sides[0].store.hash}};
  const struct store_writer_options options = {.folder = embedder->stage->folder,
                                               .name = side->name,
                                               .tag = embedder->tag,
                                               .index = shard,
                                               .columns = &column,
                                               .column_count = 1,
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
  struct manifest *manifest = embedder->stage->manifest;
  struct scalars *facts = &manifest->facts;
  TRY(scalars_set_text(facts, "encoder", options_choice(embedder->stage->options, OPTION_encoder)));
  TRY(scalars_set_text(facts, "encoder_hash", embedder->encoder.hash));
  TRY(scalars_set_integer(facts, "width", embedder->width));
  TRY(scalars_set_integer(facts, "positions", embedder->positions));
  TRY(scalars_set_real(facts, "scale", embedder->scale));
  TRY(scalars_set_integer(facts, "train_rows", embedder->sides[0].rows));
  TRY(scalars_set_integer(facts, "held_out_rows", embedder->sides[1].rows));
  return manifest_collect(manifest, embedder->stage->folder);
}

static enum status embed_all(struct embedder *embedder) {
  const struct stage *stage = embedder->stage;
  TRY(set_scale(embedder));
  TRY(set_tag(embedder));
  log_line(stage->log, "encoder %s (%s%s), width %lld, outputs divided by %.4g",
           options_choice(stage->options, OPTION_encoder), embedder->encoder.hash,
           stage->options->encoder == ENCODER_RANDOM ? ", random weights" : "",
           (long long)embedder->width, embedder->scale);
  for (int i = 0; i < SIDES; i++) TRY(embed_side(embedder, &embedder->sides[i]));
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
