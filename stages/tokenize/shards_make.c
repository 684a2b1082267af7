#include <math.h>
#include <stdlib.h>

#include "sharding/store_writer.h"
#include "stages/tokenize/shards.h"

/* Makes the rows [first, first + count) of a side. */
struct maker {
  const struct shards *shards;
  const struct shards_side *side;
  enum corpus_side which;
  struct packer packer;
  int64_t skip; /* rows to leave out before the first that is taken */
  int64_t left; /* rows to take */
  bool writes;  /* else the shard is there already */
  struct store_writer writer;
  struct shards_counts *counts;
  int64_t *seen;    /* [vocabulary], zero between rows */
  double *c_log_c;  /* [length + 1] */
  uint16_t *narrow; /* [length] */
  struct corpus_piece piece;
};

/* Entropy of the row's own distribution of tokens, nats: log n - (sum of c log c) / n over its
 * different tokens; adds them to the histogram. */
static double count_row(struct maker *maker, const int32_t *ids, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) {
    maker->seen[ids[i]]++;
    maker->counts->histogram[ids[i]]++;
  }
  for (int64_t i = 0; i < count; i++) {
    sum += maker->c_log_c[maker->seen[ids[i]]];
    maker->seen[ids[i]] = 0;
  }
  return log((double)count) - sum / (double)count;
}

static enum status write_row(struct maker *maker, const int32_t *ids, int64_t count) {
  const int32_t source = (int32_t)maker->packer.source;
  if (maker->packer.packing == PACKING_PAIRS) TRY(store_writer_add(&maker->writer, 1, &source, 1));
  if (store_writer_token_type(maker->shards->facts->vocabulary_size) != DTYPE_U16)
    return store_writer_add(&maker->writer, 0, ids, count);
  for (int64_t i = 0; i < count; i++) maker->narrow[i] = (uint16_t)ids[i];
  return store_writer_add(&maker->writer, 0, maker->narrow, count);
}

static enum status take_row(void *state, const int32_t *ids, int64_t count) {
  struct maker *maker = state;
  if (maker->skip > 0) {
    maker->skip--;
    return STATUS_OK;
  }
  if (!maker->left) return STATUS_OK;
  maker->left--;
  maker->counts->rows++;
  maker->counts->tokens += count;
  maker->counts->entropy += count_row(maker, ids, count);
  return maker->writes ? write_row(maker, ids, count) : STATUS_OK;
}

static enum status pack_part(struct maker *maker, int64_t index) {
  const struct corpus *corpus = maker->shards->corpus;
  struct corpus_document document;
  TRY(corpus_load(corpus, &maker->piece, index, true));
  for (int64_t i = 0; maker->left && i < part_count(&maker->piece.part); i++)
    if (corpus_document(&document, corpus, &maker->piece, i) && document.side == maker->which &&
        document.about->tokens)
      TRY(shards_pack(&maker->packer, &document));
  return packer_break(&maker->packer);
}

/* The part in which row `first` begins; the packer starts at a part's begin, the rows between are
 * skipped. A stream that starts inside a row is aligned by pretending that its begin is filled. */
static int64_t find_part(struct maker *maker, int64_t first) {
  const bool wrapped = maker->packer.packing == PACKING_WRAPPED;
  const int64_t length = maker->packer.length, *before = maker->side->before;
  const int64_t target = wrapped ? first * length : first;
  int64_t part = 0;
  while (before[part + 1] <= target) part++;
  maker->packer.filled = wrapped ? before[part] % length : 0;
  maker->skip = first - (wrapped ? before[part] / length : before[part]);
  return part;
}

static enum status pack(struct maker *maker, int64_t first) {
  for (int64_t part = find_part(maker, first); maker->left; part++) {
    CHECK(part < maker->shards->corpus->part_count, STATUS_INTERNAL,
          "the parts of %s end %lld rows too early", maker->side->name, (long long)maker->left);
    TRY(pack_part(maker, part));
  }
  return STATUS_OK;
}

static enum status write_shard(struct maker *maker, const struct store_writer_options *options,
                               int64_t first) {
  maker->writes = !store_writer_is_done(options);
  if (maker->writes) TRY(store_writer_open(&maker->writer, options));
  enum status status = pack(maker, first);
  if (maker->writes && status == STATUS_OK) status = store_writer_close(&maker->writer);
  if (maker->writes) store_writer_abandon(&maker->writer);
  TRY(status);
  return STATUS_OK;
}

static enum status make(struct maker *maker, int64_t index) {
  const struct shards *shards = maker->shards;
  const bool wrapped = maker->packer.packing == PACKING_WRAPPED;
  const bool paired = maker->packer.packing == PACKING_PAIRS;
  const struct store_writer_column columns[] = {
      {.name = "tokens",
       .dtype = store_writer_token_type(shards->facts->vocabulary_size),
       .dimensions = 1,
       .shape = {shards->options->sequence_length},
       .ragged = !wrapped},
      {.name = "source_length", .dtype = DTYPE_I32}};
  const struct safetensors_pair pairs[] = {
      {"tokenizer", (char *)(uintptr_t)shards->tokenizer},
      {"tokenizer_kind", (char *)(uintptr_t)shards->facts->kind},
      {"packing", (char *)(uintptr_t)options_choice(shards->options, OPTION_packing)},
      {"length", (char *)(uintptr_t)shards->length}};
  const struct store_writer_options options = {.folder = shards->folder,
                                               .name = maker->side->name,
                                               .tag = shards->tag,
                                               .index = index,
                                               .columns = columns,
                                               .column_count = paired ? 2 : 1,
                                               .pairs = pairs,
                                               .pair_count = sizeof pairs / sizeof *pairs};
  const int64_t first = index * maker->side->rows_of_shard;
  const int64_t rows = maker->side->rows - first;
  maker->left = rows < maker->side->rows_of_shard ? rows : maker->side->rows_of_shard;
  return write_shard(maker, &options, first);
}

enum status shards_make(const struct shards *shards, enum corpus_side side, int64_t index,
                        struct shards_counts *counts) {
  const size_t length = (size_t)shards->options->sequence_length;
  struct maker maker = {
      .shards = shards, .side = &shards->sides[side], .which = side, .counts = counts};
  maker.packer = packer_for(shards->options, shards->facts);
  maker.packer.row = calloc(length, sizeof(int32_t));
  maker.packer.take = take_row;
  maker.packer.state = &maker;
  maker.seen = calloc((size_t)shards->facts->vocabulary_size, sizeof *maker.seen);
  maker.narrow = calloc(length, sizeof *maker.narrow);
  maker.c_log_c = calloc(length + 1, sizeof *maker.c_log_c);
  for (size_t c = 1; maker.c_log_c && c <= length; c++)
    maker.c_log_c[c] = (double)c * log((double)c);
  enum status status;
  if (maker.packer.row && maker.seen && maker.narrow && maker.c_log_c)
    status = make(&maker, index);
  else
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: a row of %zu tokens", length);
  free(maker.packer.row);
  free(maker.seen);
  free(maker.narrow);
  free(maker.c_log_c);
  corpus_piece_free(&maker.piece);
  TRY(status);
  return STATUS_OK;
}
