#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sharding/store_writer.h"
#include "stages/tokenize/shards.h"

/* Of the first rows of a side all are counted, and of those beyond one in so many; the entropy of a
 * row, which takes longer, is measured of fewer. */
enum { FEW_ROWS = 8192, COUNTED_OF_MANY = 8, MEASURED_OF_FEW = 8, MEASURED_OF_MANY = 128 };

/* Makes the rows [first, first + count) of a side. */
struct shards_maker {
  const struct shards *shards;
  const struct shards_side *side;
  enum corpus_side which;
  struct packer packer;
  int64_t skip;      /* rows to leave out before the first that is taken */
  int64_t left;      /* rows to take */
  int64_t row_index; /* of the next row, in the side */
  bool writes;       /* else the shard is there already */
  struct store_writer writer;
  struct shards_counts *counts;
  void *row;       /* [length], owned: the packer's */
  int32_t *ids;    /* [length], owned: the row's tokens */
  int32_t *seen;   /* [vocabulary], owned: zero between rows */
  uint32_t *times; /* [2, vocabulary], owned: of this shard, tokens at even and at odd places */
  double *c_log_c; /* [length + 1], owned */
  struct corpus_piece piece;
};

static const int32_t *widen(struct shards_maker *maker, const void *row, int64_t count) {
  const uint16_t *narrow = row;
  if (maker->packer.width == sizeof *maker->ids) return row;
  for (int64_t i = 0; i < count; i++) maker->ids[i] = narrow[i];
  return maker->ids;
}

/* Entropy of the row's own distribution of tokens, nats: log n - (sum of c log c) / n over its
 * different tokens. */
static double entropy_of(struct shards_maker *maker, const int32_t *ids, int64_t count) {
  int32_t *const seen = maker->seen;
  double sum = 0;
  for (int64_t i = 0; i < count; i++) seen[ids[i]]++;
  for (int64_t i = 0; i < count; i++) {
    const int32_t times = seen[ids[i]]; /* 0 when counted before: branches would cost more */
    sum += maker->c_log_c[times];
    seen[ids[i]] = 0;
  }
  return log((double)count) - sum / (double)count;
}

/* What is counted are figures; of the training side some rows are enough. */
static bool is_among(const struct shards_maker *maker, int64_t of_few, int64_t of_many) {
  const int64_t share = maker->row_index < FEW_ROWS ? of_few : of_many;
  return maker->which == CORPUS_HELD_OUT || maker->row_index % share == 0;
}

/* Frequent tokens follow one another: two tables do not wait for one another's last count. */
static void count_narrow(uint32_t *even, uint32_t *odd, const uint16_t *ids, int64_t count) {
  for (int64_t i = 0; i + 1 < count; i += 2) {
    even[ids[i]]++;
    odd[ids[i + 1]]++;
  }
  if (count % 2) even[ids[count - 1]]++;
}

static void count_wide(uint32_t *even, const int32_t *ids, int64_t count) {
  for (int64_t i = 0; i < count; i++) even[ids[i]]++;
}

static void count_tokens(struct shards_maker *maker, const void *row, int64_t count) {
  uint32_t *odd = maker->times + maker->shards->facts->vocabulary_size;
  if (maker->packer.width == sizeof(uint16_t))
    count_narrow(maker->times, odd, row, count);
  else
    count_wide(maker->times, row, count);
}

/* Adds what the shard has to the side. */
static void add_times(struct shards_maker *maker) {
  const int64_t vocabulary = maker->shards->facts->vocabulary_size;
  for (int64_t i = 0; i < vocabulary; i++)
    maker->counts->histogram[i] += (int64_t)maker->times[i] + maker->times[vocabulary + i];
  memset(maker->times, 0, 2 * (size_t)vocabulary * sizeof *maker->times);
}

static void count_row(struct shards_maker *maker, const void *row, int64_t count) {
  struct shards_counts *counts = maker->counts;
  const bool measured = is_among(maker, MEASURED_OF_FEW, MEASURED_OF_MANY);
  counts->rows++;
  counts->tokens += count;
  if (is_among(maker, 1, COUNTED_OF_MANY)) count_tokens(maker, row, count);
  if (measured) counts->entropy += entropy_of(maker, widen(maker, row, count), count);
  counts->measured += measured;
  maker->row_index++;
}

static enum status write_row(struct shards_maker *maker, const void *row, int64_t count) {
  const int32_t source = (int32_t)maker->packer.source;
  if (maker->packer.packing == PACKING_PAIRS) TRY(store_writer_add(&maker->writer, 1, &source, 1));
  return store_writer_add(&maker->writer, 0, row, count);
}

static enum status take_row(void *state, const void *row, int64_t count) {
  struct shards_maker *maker = state;
  if (maker->skip > 0) {
    maker->skip--;
    return STATUS_OK;
  }
  if (!maker->left) return STATUS_OK;
  maker->left--;
  count_row(maker, row, count);
  return maker->writes ? write_row(maker, row, count) : STATUS_OK;
}

static enum status pack_part(struct shards_maker *maker, int64_t index) {
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
static int64_t find_part(struct shards_maker *maker, int64_t first) {
  const bool wrapped = maker->packer.packing == PACKING_WRAPPED;
  const int64_t length = maker->packer.length, *before = maker->side->before;
  const int64_t target = wrapped ? first * length : first;
  int64_t part = 0;
  while (before[part + 1] <= target) part++;
  maker->packer.filled = wrapped ? before[part] % length : 0;
  maker->skip = first - (wrapped ? before[part] / length : before[part]);
  return part;
}

static enum status pack(struct shards_maker *maker, int64_t first) {
  for (int64_t part = find_part(maker, first); maker->left; part++) {
    CHECK(part < maker->shards->corpus->part_count, STATUS_INTERNAL,
          "the parts of %s end %lld rows too early", maker->side->name, (long long)maker->left);
    if (shards_begins_input(maker->shards, part)) maker->packer.filled = 0;
    TRY(pack_part(maker, part));
  }
  return STATUS_OK;
}

static enum status write_shard(struct shards_maker *maker,
                               const struct store_writer_options *options, int64_t first) {
  maker->writes = !store_writer_is_done(options);
  if (maker->writes) TRY(store_writer_begin(&maker->writer, options));
  maker->row_index = first;
  TRY(pack(maker, first));
  add_times(maker);
  return maker->writes ? store_writer_write(&maker->writer) : STATUS_OK;
}

static enum status make(struct shards_maker *maker, int64_t index) {
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
                                               .level = (int)shards->options->shard_level,
                                               .columns = columns,
                                               .column_count = paired ? 2 : 1,
                                               .pairs = pairs,
                                               .pair_count = sizeof pairs / sizeof *pairs};
  const int64_t first = index * maker->side->rows_of_shard;
  const int64_t rows = maker->side->rows - first;
  maker->left = rows < maker->side->rows_of_shard ? rows : maker->side->rows_of_shard;
  return write_shard(maker, &options, first);
}

enum status shards_make(struct shards_maker *maker, enum corpus_side side, int64_t index,
                        struct shards_counts *counts) {
  maker->side = &maker->shards->sides[side];
  maker->which = side;
  maker->counts = counts;
  maker->packer = packer_for(maker->shards->options, maker->shards->facts);
  maker->packer.row = maker->row;
  maker->packer.take = take_row;
  maker->packer.state = maker;
  return make(maker, index);
}

static enum status take_room(struct shards_maker *maker) {
  const size_t length = (size_t)maker->shards->options->sequence_length;
  maker->row = calloc(length, sizeof *maker->ids);
  maker->ids = calloc(length, sizeof *maker->ids);
  maker->seen = calloc((size_t)maker->shards->facts->vocabulary_size, sizeof *maker->seen);
  maker->times = calloc((size_t)maker->shards->facts->vocabulary_size, 2 * sizeof *maker->times);
  maker->c_log_c = calloc(length + 1, sizeof *maker->c_log_c);
  CHECK(maker->row && maker->ids && maker->seen && maker->times && maker->c_log_c,
        STATUS_ENVIRONMENT, "out of memory: a row of %zu tokens", length);
  for (size_t c = 1; c <= length; c++) maker->c_log_c[c] = (double)c * log((double)c);
  return STATUS_OK;
}

enum status shards_maker_open(struct shards_maker **maker, const struct shards *shards) {
  *maker = calloc(1, sizeof **maker);
  CHECK(*maker, STATUS_ENVIRONMENT, "out of memory: a maker of shards");
  (*maker)->shards = shards;
  const enum status status = take_room(*maker);
  if (status != STATUS_OK) shards_maker_close(*maker);
  if (status != STATUS_OK) *maker = NULL;
  return status;
}

void shards_maker_close(struct shards_maker *maker) {
  if (!maker) return;
  store_writer_abandon(&maker->writer);
  corpus_piece_free(&maker->piece);
  free(maker->row);
  free(maker->ids);
  free(maker->seen);
  free(maker->times);
  free(maker->c_log_c);
  free(maker);
}
