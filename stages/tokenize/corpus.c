#include "stages/tokenize/corpus.h"

#include <stdlib.h>

#include "sharding/store_writer.h"
#include "stages/tokenize/duplicates.h"

enum corpus_side corpus_side_of(struct hash128 hash, double share) {
  const double place = (double)(hash.low >> 11) * 0x1p-53; /* uniform in [0, 1) */
  return place < share ? CORPUS_HELD_OUT : CORPUS_TRAIN;
}

/* Lists the parts of all units; every rank looks at its own units. */
static enum status count_parts(int64_t *pieces, const struct encode_unit *work,
                               const struct comm *comm) {
  for (int64_t unit = comm->rank; unit < (int64_t)work->inputs->unit_count; unit += comm->size) {
    pieces[unit] = encode_unit_parts(work, unit, false);
    CHECK(pieces[unit], STATUS_INTERNAL, "unit %lld was not encoded", (long long)unit);
  }
  return STATUS_OK;
}

static enum status list_parts(struct corpus *corpus, const int64_t *pieces,
                              const struct inputs *inputs) {
  const int64_t units = (int64_t)inputs->unit_count;
  for (int64_t unit = 0; unit < units; unit++) corpus->part_count += pieces[unit];
  corpus->parts = malloc((size_t)corpus->part_count * sizeof *corpus->parts);
  CHECK(corpus->parts, STATUS_ENVIRONMENT, "out of memory: a list of parts");
  struct corpus_part *next = corpus->parts;
  for (int64_t unit = 0; unit < units; unit++)
    for (int64_t piece = 0; piece < pieces[unit]; piece++)
      *next++ = (struct corpus_part){unit, piece, inputs->files[inputs->units[unit].file].input};
  return STATUS_OK;
}

static enum status find_parts(struct corpus *corpus, const struct encode_unit *work,
                              struct comm *comm) {
  const int64_t units = (int64_t)work->inputs->unit_count;
  int64_t *pieces = calloc((size_t)units, sizeof *pieces);
  enum status status = STATUS_OK;
  if (!pieces)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: %lld units", (long long)units);
  if (status == STATUS_OK) status = count_parts(pieces, work, comm);
  status = comm_agree(comm, status);
  if (status == STATUS_OK) status = comm_allreduce(comm, pieces, units, DTYPE_I64, COMM_SUM);
  if (status == STATUS_OK) status = list_parts(corpus, pieces, work->inputs);
  free(pieces);
  return comm_agree(comm, status);
}

static enum status load_part(const struct corpus *corpus, struct part *part, int64_t index,
                             bool with_tokens) {
  part->key = corpus->key;
  part->unit = corpus->parts[index].unit;
  part->piece = corpus->parts[index].piece;
  return part_read(part, corpus->folder, with_tokens);
}

/* Adds the duplicates of one part that are in `bucket` to the list. */
static enum status list_duplicates(struct text *list, const struct corpus *corpus,
                                   struct duplicates *seen, const struct part *part,
                                   struct duplicate at, int64_t bucket) {
  for (at.place = 0; at.place < part_count(part); at.place++) {
    const struct hash128 hash = part_document(part, at.place)->hash;
    if (duplicates_bucket(hash, corpus->buckets) != bucket || !duplicates_seen(seen, hash))
      continue;
    TRY(text_add_bytes(list, &at, sizeof at));
  }
  return STATUS_OK;
}

static enum status find_duplicates(const struct corpus *corpus, int64_t bucket) {
  struct duplicates seen = {0};
  struct text list = {0};
  struct part part = {0};
  const int64_t documents = corpus->tally.documents / corpus->buckets;
  enum status status = duplicates_init(&seen, documents + documents / 3 + 1);
  for (int64_t i = 0; status == STATUS_OK && i < corpus->part_count; i++) {
    status = load_part(corpus, &part, i, false);
    if (status == STATUS_OK)
      status = list_duplicates(&list, corpus, &seen, &part, (struct duplicate){.part = i}, bucket);
  }
  if (status == STATUS_OK) status = duplicates_write(&list, corpus->folder, bucket);
  duplicates_free(&seen);
  text_free(&list);
  part_free(&part);
  TRY(status);
  return STATUS_OK;
}

/* Adds the documents of one part whose key of `band` an earlier document has, in one bucket. */
static enum status list_near(struct text *list, const struct corpus *corpus,
                             struct duplicates *seen, const struct text *keys, struct duplicate at,
                             int64_t bucket) {
  const int64_t band = bucket / corpus->buckets % corpus->bands.bands;
  const uint64_t *all = (const uint64_t *)(const void *)keys->bytes;
  const int64_t count = (int64_t)(keys->length / sizeof *all) / corpus->bands.bands;
  for (at.place = 0; at.place < count; at.place++) {
    const uint64_t key = all[at.place * corpus->bands.bands + band];
    const struct hash128 hash = {.low = key, .high = key};
    if (duplicates_bucket(hash, corpus->buckets) != bucket % corpus->buckets) continue;
    if (duplicates_seen(seen, hash)) TRY(text_add_bytes(list, &at, sizeof at));
  }
  return STATUS_OK;
}

/* Near-duplicates by one band, in one bucket: lists of their own, behind those of duplicates. */
static enum status find_near(const struct corpus *corpus, int64_t bucket) {
  struct duplicates seen = {0};
  struct text list = {0}, keys = {0};
  const int64_t documents = corpus->tally.documents / corpus->buckets;
  enum status status = duplicates_init(&seen, documents + documents / 3 + 1);
  for (int64_t i = 0; status == STATUS_OK && i < corpus->part_count; i++) {
    status = near_read(&keys, corpus->folder, corpus->parts[i].unit, corpus->parts[i].piece);
    if (status == STATUS_OK)
      status = list_near(&list, corpus, &seen, &keys, (struct duplicate){.part = i},
                         bucket - corpus->buckets);
  }
  if (status == STATUS_OK) status = duplicates_write(&list, corpus->folder, bucket);
  duplicates_free(&seen);
  text_free(&list);
  text_free(&keys);
  TRY(status);
  return STATUS_OK;
}

/* Sorts the list and leaves each place once. */
static void sort_list(struct text *list) {
  struct duplicate *all = (struct duplicate *)(void *)list->bytes;
  const size_t count = list->length / sizeof *all;
  size_t kept = 0;
  if (!count) return;
  qsort(all, count, sizeof *all, duplicates_compare);
  for (size_t i = 0; i < count; i++)
    if (!kept || duplicates_compare(&all[kept - 1], &all[i]) != 0) all[kept++] = all[i];
  list->length = kept * sizeof *all;
}

enum status corpus_load(const struct corpus *corpus, struct corpus_piece *piece, int64_t index,
                        bool with_tokens) {
  const int64_t lists = corpus->buckets * (1 + corpus->bands.bands);
  struct text *list = &piece->duplicates;
  TRY(load_part(corpus, &piece->part, index, with_tokens));
  text_clear(list);
  piece->next = 0;
  piece->token = 0;
  for (int64_t bucket = 0; bucket < lists; bucket++) {
    TRY(duplicates_read(list, corpus->folder, bucket, index));
    if (bucket == corpus->buckets - 1)
      piece->equal = (int64_t)(list->length / sizeof(struct duplicate));
  }
  if (lists > 1) sort_list(list);
  piece->near = (int64_t)(list->length / sizeof(struct duplicate)) - piece->equal;
  return STATUS_OK;
}

void corpus_piece_free(struct corpus_piece *piece) {
  part_free(&piece->part);
  text_free(&piece->duplicates);
}

bool corpus_document(struct corpus_document *document, const struct corpus *corpus,
                     struct corpus_piece *piece, int64_t place) {
  const struct part_document *about = part_document(&piece->part, place);
  const struct duplicate *list = (const struct duplicate *)(const void *)piece->duplicates.bytes;
  const size_t count = piece->duplicates.length / sizeof *list;
  const struct text *tokens = &piece->part.tokens;
  const void *ids = tokens->length ? tokens->bytes + piece->token * piece->part.width : NULL;
  piece->token += about->tokens;
  if (piece->next < count && list[piece->next].place == place) {
    piece->next++;
    return false;
  }
  *document = (struct corpus_document){about, ids, corpus_side_of(about->hash, corpus->held_out)};
  return true;
}

static enum status count_piece(struct corpus *corpus, struct corpus_piece *piece, int64_t index) {
  struct corpus_document document;
  TRY(corpus_load(corpus, piece, index, false));
  corpus->duplicates += piece->equal;
  corpus->near_duplicates += piece->near;
  for (int64_t place = 0; place < part_count(&piece->part); place++) {
    if (!corpus_document(&document, corpus, piece, place)) continue;
    struct corpus_counts *counts = &corpus->counts[document.side];
    counts->documents++;
    counts->bytes += document.about->bytes;
    counts->tokens += document.about->tokens;
  }
  return STATUS_OK;
}

static enum status add_tallies(struct corpus *corpus, const struct comm *comm) {
  struct part part = {0};
  enum status status = STATUS_OK;
  for (int64_t i = comm->rank; status == STATUS_OK && i < corpus->part_count; i += comm->size) {
    status = load_part(corpus, &part, i, false);
    const int64_t *from = (const int64_t *)(const void *)&part.tally;
    int64_t *to = (int64_t *)(void *)&corpus->tally;
    for (int j = 0; status == STATUS_OK && j < TALLY_COUNT; j++) to[j] += from[j];
  }
  part_free(&part);
  TRY(status);
  return STATUS_OK;
}

static enum status count_pieces(struct corpus *corpus, const struct comm *comm) {
  struct corpus_piece piece = {0};
  enum status status = STATUS_OK;
  for (int64_t i = comm->rank; status == STATUS_OK && i < corpus->part_count; i += comm->size)
    status = count_piece(corpus, &piece, i);
  corpus_piece_free(&piece);
  TRY(status);
  return STATUS_OK;
}

static enum status find_all_duplicates(const struct corpus *corpus, const struct comm *comm) {
  const int64_t lists = corpus->buckets * (1 + corpus->bands.bands);
  for (int64_t bucket = comm->rank; bucket < lists; bucket += comm->size)
    TRY(bucket < corpus->buckets ? find_duplicates(corpus, bucket) : find_near(corpus, bucket));
  return STATUS_OK;
}

enum status corpus_open(struct corpus *corpus, const struct encode_unit *work, double held_out,
                        struct comm *comm) {
  const int64_t vocabulary = tokenizer_facts_of(work->tokenizer)->vocabulary_size;
  *corpus = (struct corpus){.folder = work->folder,
                            .key = work->key,
                            .held_out = held_out,
                            .units = (int64_t)work->inputs->unit_count,
                            .width = (int64_t)dtype_bytes(store_writer_token_type(vocabulary)),
                            .bands = work->bands};
  TRY(find_parts(corpus, work, comm));
  TRY(comm_agree(comm, add_tallies(corpus, comm)));
  TRY(comm_allreduce(comm, &corpus->tally, TALLY_COUNT, DTYPE_I64, COMM_SUM));
  corpus->buckets = duplicates_buckets(corpus->tally.documents);
  TRY(comm_agree(comm, find_all_duplicates(corpus, comm)));
  TRY(comm_agree(comm, count_pieces(corpus, comm)));
  TRY(comm_allreduce(comm, &corpus->duplicates, 1, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, &corpus->near_duplicates, 1, DTYPE_I64, COMM_SUM));
  enum { NUMBERS = CORPUS_SIDES * 3 };
  _Static_assert(sizeof corpus->counts == NUMBERS * sizeof(int64_t), "counts are integers");
  return comm_allreduce(comm, corpus->counts, NUMBERS, DTYPE_I64, COMM_SUM);
}

void corpus_free(struct corpus *corpus) {
  free(corpus->parts);
  *corpus = (struct corpus){0};
}
