#include "stages/tokenize/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "sharding/order.h"
#include "stages/stage.h"
#include "stages/tokenize/scatter.h"

enum { SHARE = 64, LEAST_TOKENS = 1 << 16 }; /* small corpora are cut too, for ranks to share */

/* Documents that are mixed with one another: those of an entry of `input`, or all. */
struct range {
  int64_t first_part, end_part;
  int64_t documents, tokens; /* duplicates included */
  int64_t input;
  int64_t first_group, groups;
  int64_t first_bucket, buckets;
};

struct shuffle {
  const struct corpus *corpus;
  struct hash128 key; /* of the new parts */
  uint64_t seed;
  bool all;
  int64_t *documents, *tokens; /* [parts], owned */
  int64_t *group_parts;        /* [groups + 1], owned: first part of each group */
  struct range *ranges;        /* owned */
  int64_t range_count, groups, buckets;
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static struct hash128 key_of(const struct corpus *corpus, const struct options *options) {
  const int64_t rules[] = {options->shuffle, options->shuffle_seed};
  return (struct hash128){.low = hash_bytes_seeded(rules, sizeof rules, corpus->key.low),
                          .high = corpus->key.high};
}

/* Sizes of this rank's parts. */
static enum status count_parts(struct shuffle *shuffle, const struct comm *comm) {
  struct corpus_piece piece = {0};
  enum status status = STATUS_OK;
  for (int64_t i = comm->rank; status == STATUS_OK && i < shuffle->corpus->part_count;
       i += comm->size) {
    status = corpus_load(shuffle->corpus, &piece, i, false);
    if (status != STATUS_OK) break;
    shuffle->documents[i] = part_count(&piece.part);
    for (int64_t d = 0; d < shuffle->documents[i]; d++)
      shuffle->tokens[i] += part_document(&piece.part, d)->tokens;
  }
  corpus_piece_free(&piece);
  TRY(status);
  return STATUS_OK;
}

static void find_ranges(struct shuffle *shuffle) {
  const struct corpus *corpus = shuffle->corpus;
  for (int64_t i = 0; i < corpus->part_count; i++) {
    const bool begins =
        i == 0 || (!shuffle->all && corpus->parts[i].input != corpus->parts[i - 1].input);
    if (begins)
      shuffle->ranges[shuffle->range_count++] =
          (struct range){.first_part = i, .input = shuffle->all ? 0 : corpus->parts[i].input};
    struct range *range = &shuffle->ranges[shuffle->range_count - 1];
    range->end_part = i + 1;
    range->documents += shuffle->documents[i];
    range->tokens += shuffle->tokens[i];
  }
}

/* Tokens of a group or bucket: few enough for memory, and few enough for many ranks to share. */
static int64_t tokens_of_one(const struct range *range) {
  return least(greatest(range->tokens / SHARE, LEAST_TOKENS), SHUFFLE_TOKENS);
}

/* Groups are neighbouring parts of a range; one is ended by the part that fills it. */
static void cut_range(struct shuffle *shuffle, struct range *range) {
  const int64_t most = tokens_of_one(range);
  int64_t filled = most;
  range->first_group = shuffle->groups;
  range->first_bucket = shuffle->buckets;
  for (int64_t i = range->first_part; i < range->end_part; i++) {
    if (filled >= most) {
      shuffle->group_parts[shuffle->groups++] = i;
      filled = 0;
    }
    filled += shuffle->tokens[i];
  }
  range->groups = shuffle->groups - range->first_group;
  range->buckets = greatest(1, least(range->documents, (range->tokens + most - 1) / most));
  shuffle->buckets += range->buckets;
}

static enum status allocate(struct shuffle *shuffle) {
  const size_t parts = (size_t)shuffle->corpus->part_count;
  shuffle->documents = calloc(parts, sizeof *shuffle->documents);
  shuffle->tokens = calloc(parts, sizeof *shuffle->tokens);
  shuffle->group_parts = calloc(parts + 1, sizeof *shuffle->group_parts);
  shuffle->ranges = calloc(parts, sizeof *shuffle->ranges);
  CHECK(shuffle->documents && shuffle->tokens && shuffle->group_parts && shuffle->ranges,
        STATUS_ENVIRONMENT, "out of memory: a list of %zu parts", parts);
  return STATUS_OK;
}

static enum status plan(struct shuffle *shuffle, struct comm *comm) {
  const int64_t parts = shuffle->corpus->part_count;
  TRY(comm_agree(comm, allocate(shuffle)));
  TRY(comm_agree(comm, count_parts(shuffle, comm)));
  TRY(comm_allreduce(comm, shuffle->documents, parts, DTYPE_I64, COMM_SUM));
  TRY(comm_allreduce(comm, shuffle->tokens, parts, DTYPE_I64, COMM_SUM));
  find_ranges(shuffle);
  for (int64_t i = 0; i < shuffle->range_count; i++) cut_range(shuffle, &shuffle->ranges[i]);
  shuffle->group_parts[shuffle->groups] = parts;
  return STATUS_OK;
}

static void release(struct shuffle *shuffle) {
  free(shuffle->documents);
  free(shuffle->tokens);
  free(shuffle->group_parts);
  free(shuffle->ranges);
}

static const struct range *range_of_group(const struct shuffle *shuffle, int64_t group) {
  const struct range *range = shuffle->ranges;
  while (group >= range->first_group + range->groups) range++;
  return range;
}

static const struct range *range_of_bucket(const struct shuffle *shuffle, int64_t bucket) {
  const struct range *range = shuffle->ranges;
  while (bucket >= range->first_bucket + range->buckets) range++;
  return range;
}

/* The first place of bucket `bucket` of a range: even shares. */
static int64_t first_place(const struct range *range, int64_t bucket) {
  const int64_t share = range->documents / range->buckets, rest = range->documents % range->buckets;
  return bucket * share + least(bucket, rest);
}

static struct scatter_place place_of(const struct shuffle *shuffle, const struct range *range,
                                     int64_t group) {
  return (struct scatter_place){.folder = shuffle->corpus->folder,
                                .key = shuffle->key,
                                .group = group,
                                .buckets = range->buckets};
}

/* Adds the kept documents of a part with their new places; `first`: documents of the range that
 * come before. */
static enum status add_part(struct scatter *scatter, struct corpus_piece *piece,
                            const struct shuffle *shuffle, const struct range *range, int64_t part,
                            int64_t first) {
  struct corpus_document document;
  TRY(corpus_load(shuffle->corpus, piece, part, true));
  scatter->width = piece->part.width;
  for (int64_t i = 0; i < part_count(&piece->part); i++) {
    if (!corpus_document(&document, shuffle->corpus, piece, i)) continue;
    const int64_t place =
        order_place(shuffle->seed, "shuffle", (uint64_t)range->input, range->documents, first + i);
    TRY(scatter_add(scatter, place, document.about, document.ids));
  }
  return STATUS_OK;
}

static enum status write_group(const struct scatter *scatter, const struct range *range,
                               const struct scatter_place *place) {
  int64_t *ends = calloc((size_t)range->buckets, sizeof *ends), next = 0;
  CHECK(ends, STATUS_ENVIRONMENT, "out of memory: %lld buckets", (long long)range->buckets);
  for (int64_t b = 0; b < range->buckets; b++) {
    const int64_t end = first_place(range, b + 1);
    while (next < scatter_count(scatter) && scatter_at(scatter, next)->position < end) next++;
    ends[b] = next;
  }
  const enum status status = scatter_write(scatter, place, ends);
  free(ends);
  TRY(status);
  return STATUS_OK;
}

/* What a rank uses again for one group or bucket after another. */
struct room {
  struct scatter scatter;
  struct corpus_piece piece;
  struct part part;
};

static enum status scatter_group(const struct shuffle *shuffle, struct room *room, int64_t group) {
  const struct range *range = range_of_group(shuffle, group);
  const struct scatter_place place = place_of(shuffle, range, group);
  int64_t first = 0;
  if (scatter_exists(&place)) return STATUS_OK;
  scatter_clear(&room->scatter);
  for (int64_t i = range->first_part; i < shuffle->group_parts[group]; i++)
    first += shuffle->documents[i];
  for (int64_t i = shuffle->group_parts[group]; i < shuffle->group_parts[group + 1]; i++) {
    TRY(add_part(&room->scatter, &room->piece, shuffle, range, i, first));
    first += shuffle->documents[i];
  }
  scatter_sort(&room->scatter);
  return write_group(&room->scatter, range, &place);
}

/* New parts are numbered behind the units of the input. */
static int64_t unit_of(const struct shuffle *shuffle, int64_t bucket) {
  return shuffle->corpus->units + bucket;
}

static int64_t count_pieces(const struct shuffle *shuffle, int64_t bucket, bool thoroughly) {
  return parts_of_unit(shuffle->corpus->folder, shuffle->key, unit_of(shuffle, bucket), thoroughly);
}

static enum status write_parts(struct part *part, const struct scatter *scatter,
                               const char *folder) {
  for (int64_t i = 0; i < scatter_count(scatter); i++) {
    size_t bytes;
    const void *ids = scatter_ids(scatter, i, &bytes);
    const struct part_document *about = &scatter_at(scatter, i)->about;
    TRY(text_add_bytes(&part->documents, about, sizeof *about));
    if (bytes) TRY(text_add_bytes(&part->tokens, ids, bytes));
    if (part_tokens(part) < PART_TOKENS) continue;
    TRY(part_write(part, folder));
    part_clear(part);
    part->piece++;
  }
  part->last = 1;
  return part_write(part, folder);
}

static enum status gather_bucket(const struct shuffle *shuffle, struct room *room, int64_t bucket) {
  const struct range *range = range_of_bucket(shuffle, bucket);
  if (count_pieces(shuffle, bucket, true)) return STATUS_OK;
  scatter_clear(&room->scatter);
  for (int64_t g = range->first_group; g < range->first_group + range->groups; g++) {
    const struct scatter_place place = place_of(shuffle, range, g);
    TRY(scatter_read(&room->scatter, &place, bucket - range->first_bucket));
  }
  scatter_sort(&room->scatter);
  part_clear(&room->part);
  room->part.key = shuffle->key;
  room->part.unit = unit_of(shuffle, bucket);
  room->part.piece = 0;
  room->part.width = shuffle->corpus->width;
  return write_parts(&room->part, &room->scatter, shuffle->corpus->folder);
}

static enum status check_stop(const char *what, int64_t done, int64_t count) {
  CHECK(!stage_stop_requested(), STATUS_STOPPED, "stopped on request: %s %lld of %lld shuffled",
        what, (long long)done, (long long)count);
  return STATUS_OK;
}

static enum status scatter_groups(const struct shuffle *shuffle, struct room *room,
                                  const struct comm *comm) {
  for (int64_t i = comm->rank; i < shuffle->groups; i += comm->size) {
    TRY(check_stop("group", i, shuffle->groups));
    TRY(scatter_group(shuffle, room, i));
  }
  return STATUS_OK;
}

static enum status gather_buckets(const struct shuffle *shuffle, struct room *room,
                                  const struct comm *comm) {
  for (int64_t i = comm->rank; i < shuffle->buckets; i += comm->size) {
    TRY(check_stop("bucket", i, shuffle->buckets));
    TRY(gather_bucket(shuffle, room, i));
  }
  return STATUS_OK;
}

static enum status move(const struct shuffle *shuffle, struct comm *comm) {
  struct room room = {.scatter.width = shuffle->corpus->width};
  enum status status = comm_agree(comm, scatter_groups(shuffle, &room, comm));
  if (status == STATUS_OK) status = comm_agree(comm, gather_buckets(shuffle, &room, comm));
  scatter_free(&room.scatter);
  corpus_piece_free(&room.piece);
  part_free(&room.part);
  return status;
}

static enum status list_parts(struct corpus *shuffled, const struct shuffle *shuffle,
                              const int64_t *pieces) {
  int64_t count = 0;
  for (int64_t b = 0; b < shuffle->buckets; b++) count += pieces[b];
  struct corpus_part *next = malloc((size_t)count * sizeof *next);
  CHECK(next, STATUS_ENVIRONMENT, "out of memory: a list of %lld parts", (long long)count);
  *shuffled = *shuffle->corpus;
  shuffled->key = shuffle->key;
  shuffled->parts = next;
  shuffled->part_count = count;
  shuffled->buckets = 0; /* no lists of duplicates */
  shuffled->bands = (struct near_bands){0};
  for (int64_t b = 0; b < shuffle->buckets; b++)
    for (int64_t piece = 0; piece < pieces[b]; piece++)
      *next++ =
          (struct corpus_part){unit_of(shuffle, b), piece, range_of_bucket(shuffle, b)->input};
  return STATUS_OK;
}

static enum status find_parts(struct corpus *shuffled, const struct shuffle *shuffle,
                              struct comm *comm) {
  int64_t *pieces = calloc((size_t)shuffle->buckets, sizeof *pieces);
  enum status status = STATUS_OK;
  if (!pieces)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "out of memory: %lld buckets", (long long)shuffle->buckets);
  for (int64_t b = comm->rank; pieces && b < shuffle->buckets; b += comm->size)
    pieces[b] = count_pieces(shuffle, b, false);
  status = comm_agree(comm, status);
  if (status == STATUS_OK)
    status = comm_allreduce(comm, pieces, shuffle->buckets, DTYPE_I64, COMM_SUM);
  if (status == STATUS_OK) status = list_parts(shuffled, shuffle, pieces);
  free(pieces);
  return comm_agree(comm, status);
}

enum status shuffle_corpus(struct corpus *shuffled, const struct corpus *corpus,
                           const struct options *options, struct comm *comm) {
  struct shuffle shuffle = {.corpus = corpus,
                            .key = key_of(corpus, options),
                            .seed = (uint64_t)options->shuffle_seed,
                            .all = options->shuffle == SHUFFLE_ALL};
  enum status status = plan(&shuffle, comm);
  if (status == STATUS_OK) status = move(&shuffle, comm);
  if (status == STATUS_OK) status = find_parts(shuffled, &shuffle, comm);
  release(&shuffle);
  return status;
}
