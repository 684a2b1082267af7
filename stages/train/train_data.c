#include "stages/train/train_data.h"

#include <inttypes.h>
#include <string.h>

#include "stages/train/train_mix.h"

/* Fields of the loader; those that a node lacks are left out. */
enum { TOKENS, SOURCES, EMBEDDINGS, ALONE, FIELDS };

static bool validates(const struct train_data *data) {
  return data->request.row_limit > 0;
}

static int64_t slot_count(const struct train_data *data) {
  return split_count(data->request.shards) * data->request.rows_each;
}

static enum status open_tokens(struct train_data *data) {
  const struct train_data_request *request = &data->request;
  TRY(store_open(&data->tokens, request->tokens_folder, request->side));
  TRY(store_find(&data->tokens, &data->token_column, "tokens"));
  CHECK(data->tokens.rows > 0, STATUS_MISMATCH,
        "%s: the %s side has no rows; give the tokenize node more text", request->tokens_folder,
        request->side);
  return STATUS_OK;
}

/* Rows of pairs come with the length of their source. */
static enum status open_sources(struct train_data *data) {
  const char *packing = store_value(&data->tokens, "packing");
  data->pairs = packing && strcmp(packing, "pairs") == 0;
  return data->pairs ? store_find(&data->tokens, &data->source_column, "source_length") : STATUS_OK;
}

static enum status open_shards(struct train_data *data) {
  const struct train_data_request *request = &data->request;
  TRY(store_open(&data->embeddings, request->embeddings_folder, request->side));
  TRY(store_find(&data->embeddings, &data->embedding_column, "embeddings"));
  if (data->pairs) TRY(store_find(&data->embeddings, &data->alone_column, "embeddings_alone"));
  const struct store_column *column = &data->embedding_column;
  data->width = column->shape[column->dimensions - 1];
  data->embedded_rows = data->embeddings.rows;
  return STATUS_OK;
}

static enum status open_embeddings(struct train_data *data) {
  const struct train_data_request *request = &data->request;
  data->embedded_rows = data->tokens.rows;
  if (request->embeddings_folder) TRY(open_shards(data));
  if (request->online) {
    data->width = request->online->width;
    data->embedded_rows = request->online_rows;
  }
  CHECK(data->embedded_rows <= data->tokens.rows, STATUS_MISMATCH,
        "%" PRId64 " %s rows are embedded, %s has %" PRId64 "; run the embed node again",
        data->embedded_rows, request->side, request->tokens_folder, data->tokens.rows);
  return STATUS_OK;
}

static struct order make_order(const struct train_data *data) {
  const struct train_data_request *request = &data->request;
  const bool once = validates(data);
  const int64_t rows = data->embedded_rows;
  return (struct order){.seed = request->seed,
                        .rows = once && request->row_limit < rows ? request->row_limit : rows,
                        .batch = request->batch,
                        .sequential = once,
                        .single_pass = once};
}

static enum status open_loader(struct train_data *data) {
  const struct train_data_request *request = &data->request;
  const bool shards = data->request.embeddings_folder != NULL, both = data->pairs && shards;
  const struct loader_field fields[FIELDS] = {
      [TOKENS] = {&data->token_column, DTYPE_I32, request->positions,
                  data->pairs ? request->end : request->pad},
      [SOURCES] = {data->pairs ? &data->source_column : NULL, DTYPE_I32, 1, 0},
      [EMBEDDINGS] = {shards ? &data->embedding_column : NULL, DTYPE_F32,
                      request->positions * data->width, 0},
      [ALONE] = {both ? &data->alone_column : NULL, DTYPE_F32, request->positions * data->width,
                 0}};
  const struct loader_options options = {.order = data->order,
                                         .first_slot = request->shards.begin * request->rows_each,
                                         .slots = slot_count(data),
                                         .fields = fields,
                                         .field_count = FIELDS,
                                         .depth = validates(data) ? 0 : -1};
  return loader_open(&data->loader, &options);
}

static enum status open_all(struct train_data *data, struct arena *arena) {
  TRY(open_tokens(data));
  TRY(open_sources(data));
  TRY(open_embeddings(data));
  data->order = make_order(data);
  if (!validates(data))
    TRY(train_mix_make(&data->order.mix, data->request.tokens_folder, data->request.mix,
                       data->order.rows));
  const size_t slots = (size_t)slot_count(data);
  data->lengths = arena_take_zeroed(arena, slots * sizeof(*data->lengths));
  data->sources = arena_take_zeroed(arena, slots * sizeof(*data->sources));
  data->samples = arena_take_zeroed(arena, slots * sizeof(*data->samples));
  data->strata = arena_take_zeroed(arena, slots * sizeof(*data->strata));
  return open_loader(data);
}

enum status train_data_open(struct train_data *data, const struct train_data_request *request,
                            struct arena *arena) {
  *data = (struct train_data){.request = *request};
  const enum status status = open_all(data, arena);
  if (status != STATUS_OK) train_data_close(data);
  return status;
}

void train_data_close(struct train_data *data) {
  if (data->loader) loader_close(data->loader);
  store_close(&data->embeddings);
  store_close(&data->tokens);
  *data = (struct train_data){0};
}

/* A source is within its row, and leaves a target there. */
static enum status take_source(struct train_data *data, int64_t slot) {
  if (!data->pairs || !data->lengths[slot]) return STATUS_OK;
  const int32_t source = ((const int32_t *)data->batch->fields[SOURCES])[slot];
  CHECK(source > 0 && source < data->lengths[slot], STATUS_DAMAGED,
        "'%s', side %s, row %" PRId64 ": a source of %d tokens in a row of %d", data->tokens.folder,
        data->request.side, data->batch->samples[slot].row, source, data->lengths[slot]);
  data->sources[slot] = source;
  return STATUS_OK;
}

enum status train_data_load(struct train_data *data, int64_t step) {
  TRY(loader_get(data->loader, step, &data->batch));
  const int64_t first = data->request.shards.begin * data->request.rows_each;
  for (int64_t i = 0; i < slot_count(data); i++) {
    const struct order_sample sample = data->batch->samples[i];
    const int64_t length = sample.row < 0 ? 0 : data->batch->lengths[TOKENS][i];
    data->lengths[i] =
        (int32_t)(length < data->request.positions ? length : data->request.positions);
    data->sources[i] = 0;
    TRY(take_source(data, i));
    data->samples[i] = sample.index;
    data->strata[i] = validates(data) ? sample.index : first + i;
  }
  return STATUS_OK;
}

/* Slots without a row come last. */
static int64_t count_rows(const struct train_data *data, int64_t first) {
  int64_t count = 0;
  while (count < data->request.rows_each && data->batch->samples[first + count].row >= 0) count++;
  return count;
}

static void clear_rows(float *values, int64_t from, int64_t to, int64_t size) {
  if (values && from < to)
    memset(values + from * size, 0, (size_t)((to - from) * size) * sizeof *values);
}

enum status train_data_embed(const struct train_data *data, int64_t j) {
  struct latents *online = data->request.online;
  const int64_t first = j * data->request.rows_each, positions = data->request.positions;
  if (!online) return STATUS_OK;
  const int64_t count = count_rows(data, first), size = positions * data->width;
  const struct latents_rows rows = {.count = count,
                                    .tokens = (const int32_t *)data->batch->fields[TOKENS] +
                                              first * positions,
                                    .lengths = data->lengths + first,
                                    .sources = data->sources + first};
  TRY(latents_embed(online, &rows));
  clear_rows(online->values, count, data->request.rows_each, size);
  clear_rows(online->alone, count, data->request.rows_each, size);
  return STATUS_OK;
}

/* Of the micro-shard that begins at slot `first`: a field of the loader, or computed. */
static const float *embeddings_at(const struct train_data *data, int field, int64_t first) {
  const struct latents *online = data->request.online;
  const float *loaded = data->batch->fields[field];
  if (online) return field == ALONE ? online->alone : online->values;
  return loaded ? loaded + first * data->request.positions * data->width : NULL;
}

struct flow_batch train_data_micro(const struct train_data *data, int64_t j) {
  const int64_t first = j * data->request.rows_each, positions = data->request.positions;
  return (struct flow_batch){
      .count = data->request.rows_each,
      .positions = positions,
      .tokens = (const int32_t *)data->batch->fields[TOKENS] + first * positions,
      .lengths = data->lengths + first,
      .sources = data->pairs ? data->sources + first : NULL,
      .embeddings = embeddings_at(data, EMBEDDINGS, first),
      .alone = embeddings_at(data, ALONE, first),
      .samples = data->samples + first,
      .strata = data->strata + first,
      .stratum_count = validates(data) ? data->order.rows : data->request.batch,
      .step = validates(data) ? 0 : (uint32_t)data->batch->step,
      .validation = validates(data)};
}

int64_t train_data_tokens(const struct train_data *data) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < slot_count(data); i++) tokens += data->lengths[i];
  return tokens;
}
