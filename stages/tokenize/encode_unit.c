#include "stages/tokenize/encode_unit.h"

#include <string.h>

#include "sharding/store_writer.h"
#include "stages/tokenize/quarantine.h"

enum { ROUND_TRIP_SHARE = 256 }; /* one document in as many is decoded again, chosen by its hash */

struct state {
  const struct encode_unit *work;
  struct encode_unit_room *room;
  struct quarantine quarantine;
};

/* Bytes that are no part of a UTF-8 sequence. */
static int64_t count_invalid(const char *bytes, size_t count) {
  int64_t invalid = 0;
  for (size_t at = 0; at < count; at++, invalid++) {
    at += text_valid_utf8(bytes + at, count - at);
    if (at == count) break;
  }
  return invalid;
}

static bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Whether two texts are equal when white space is left out. */
static bool equal_but_space(const struct text *a, const char *bytes, size_t count) {
  size_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->length && is_space(a->bytes[i])) i++;
    while (j < count && is_space(bytes[j])) j++;
    if (i == a->length || j == count) return i == a->length && j == count;
    if (a->bytes[i] != bytes[j]) return false;
  }
}

static enum status check_round_trip(struct state *state, const int32_t *ids, size_t id_count,
                                    const char *bytes, size_t count) {
  struct tally *tally = &state->room->part.tally;
  struct text *decoded = &state->room->decoded;
  text_clear(decoded);
  TRY(tokenizer_decode(state->work->tokenizer, decoded, ids, id_count));
  const bool same = decoded->length == count && memcmp(decoded->bytes, bytes, count) == 0;
  tally->round_trip_checked++;
  tally->round_trip_same += same;
  tally->round_trip_space += !same && equal_but_space(decoded, bytes, count);
  return STATUS_OK;
}

/* Encodes one text of a document, counts it, and now and then decodes it again. */
static enum status encode(struct state *state, const char *bytes, size_t count, bool check) {
  struct tally *tally = &state->room->part.tally;
  struct tokens *ids = &state->room->ids;
  const size_t before = ids->count;
  TRY(tokenizer_encode(state->work->tokenizer, ids, bytes, count));
  const int64_t invalid = count_invalid(bytes, count);
  tally->bytes += (int64_t)count;
  tally->tokens += (int64_t)(ids->count - before);
  tally->invalid_bytes += invalid;
  tally->invalid_documents += invalid > 0;
  if (state->work->bands.bands) near_add(&state->room->signature, bytes, count);
  if (!check) return STATUS_OK;
  return check_round_trip(state, ids->ids + before, ids->count - before, bytes, count);
}

static bool is_checked(struct hash128 hash) {
  return hash.low % ROUND_TRIP_SHARE == 0;
}

/* Keeps the keys of a document and begins the next one's. */
static enum status add_keys(struct encode_unit_room *room, struct near_bands bands) {
  if (!bands.bands) return STATUS_OK;
  for (int64_t band = 0; band < bands.bands; band++) {
    const uint64_t key = near_key(&room->signature, bands, band);
    TRY(text_add_bytes(&room->keys, &key, sizeof key));
  }
  near_begin(&room->signature);
  return STATUS_OK;
}

/* The keys are there before the part, which says that all is. */
static enum status write_part(struct state *state) {
  struct encode_unit_room *room = state->room;
  const struct encode_unit *work = state->work;
  if (work->bands.bands)
    TRY(near_write(&room->keys, work->folder, room->part.unit, room->part.piece));
  text_clear(&room->keys);
  return part_write(&room->part, work->folder);
}

/* Ends a document; a part that has become large is written. */
static enum status end_document(struct state *state, struct part_document document) {
  struct part *part = &state->room->part;
  struct tokens *ids = &state->room->ids;
  document.tokens = (int64_t)ids->count;
  part->tally.documents++;
  TRY(part_add(part, document, ids->ids));
  ids->count = 0;
  TRY(add_keys(state->room, state->work->bands));
  if (part_tokens(part) < PART_TOKENS) return STATUS_OK;
  TRY(write_part(state));
  part_clear(part);
  part->piece++;
  return STATUS_OK;
}

static enum status add_document(void *context, const char *bytes, size_t count) {
  struct state *state = context;
  const struct hash128 hash = hash_bytes128(bytes, count);
  TRY(encode(state, bytes, count, is_checked(hash)));
  return end_document(state, (struct part_document){.hash = hash, .bytes = (int64_t)count});
}

/* Source and target are encoded by themselves: no token spans both. */
static enum status add_pair(void *context, const struct document_pair *pair) {
  struct state *state = context;
  const struct hash128 hash = document_pair_hash(pair);
  TRY(encode(state, pair->source, pair->source_count, is_checked(hash)));
  const int64_t source = (int64_t)state->room->ids.count;
  TRY(encode(state, pair->target, pair->target_count, is_checked(hash)));
  return end_document(
      state, (struct part_document){.hash = hash,
                                    .source = source,
                                    .bytes = (int64_t)(pair->source_count + pair->target_count)});
}

static enum status add_refusal(void *context, const struct refusal *refusal) {
  struct state *state = context;
  state->room->part.tally.refused_documents += refusal->document;
  state->room->part.tally.refused_entries += !refusal->document;
  return quarantine_add(&state->quarantine, refusal);
}

static uint64_t hash_files(const struct input_file *files, size_t count, uint64_t hash) {
  for (size_t i = 0; i < count; i++)
    hash = hash_bytes_seeded(files[i].path, strlen(files[i].path), hash ^ files[i].bytes);
  return hash;
}

struct hash128 encode_unit_key(const struct inputs *inputs, const struct options *options,
                               const struct tokenizer *tokenizer) {
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  const uint64_t boundary =
      hash_bytes_seeded(options->text_key, strlen(options->text_key), (uint64_t)options->boundary);
  uint64_t files = hash_bytes_seeded(options->entries, strlen(options->entries), boundary);
  if (options->packing == PACKING_PAIRS)
    files = hash_bytes_seeded(options->target_key, strlen(options->target_key), ~files);
  if (options->near_duplicates > 0)
    files = hash_bytes_seeded(&options->near_duplicates, sizeof options->near_duplicates, files);
  files = hash_files(inputs->files, inputs->file_count, files);
  if (inputs->targets) files = hash_files(inputs->targets, inputs->file_count, files);
  if (inputs->keeps_damaged) files = hash_bytes_seeded("damaged", 7, files);
  files = hash_bytes_seeded(&inputs->unit_count, sizeof inputs->unit_count, files);
  return (struct hash128){.low = facts->hash.low ^ files, .high = facts->hash.high};
}

int64_t encode_unit_parts(const struct encode_unit *work, int64_t unit, bool thoroughly) {
  return parts_of_unit(work->folder, work->key, unit, thoroughly);
}

/* Empties the room for a unit, whatever the last one left. */
static void begin(struct encode_unit_room *room, const struct encode_unit *work, int64_t unit) {
  const int64_t vocabulary = tokenizer_facts_of(work->tokenizer)->vocabulary_size;
  part_clear(&room->part);
  room->part.key = work->key;
  room->part.unit = unit;
  room->part.piece = 0;
  room->part.width = (int64_t)dtype_bytes(store_writer_token_type(vocabulary));
  room->ids.count = 0;
  near_begin(&room->signature);
  text_clear(&room->keys);
}

enum status encode_unit_run(const struct encode_unit *work, int64_t unit,
                            struct encode_unit_room *room) {
  struct state state = {
      .work = work, .room = room, .quarantine = {.folder = work->folder, .unit = unit}};
  const bool pairs = work->options->packing == PACKING_PAIRS;
  const struct document_sink sink = {.add = add_document,
                                     .state = &state,
                                     .add_pair = pairs ? add_pair : NULL,
                                     .refuse = work->inputs->keeps_damaged ? add_refusal : NULL};
  struct splitter splitter = splitter_for(work->options, sink);
  begin(room, work, unit);
  enum status status = inputs_read(work->inputs, &work->inputs->units[unit], &splitter);
  room->part.tally.empty = (int64_t)splitter.empty;
  room->part.tally.archive_warnings = (int64_t)splitter.warnings;
  room->part.tally.binary_entries = (int64_t)splitter.binary;
  room->part.tally.link_entries = (int64_t)splitter.links;
  room->part.last = 1;
  if (status == STATUS_OK) status = quarantine_end(&state.quarantine);
  if (status == STATUS_OK) status = write_part(&state);
  quarantine_free(&state.quarantine);
  splitter_free(&splitter);
  TRY(status);
  return STATUS_OK;
}

void encode_unit_room_free(struct encode_unit_room *room) {
  part_free(&room->part);
  tokens_free(&room->ids);
  text_free(&room->decoded);
  text_free(&room->keys);
}
