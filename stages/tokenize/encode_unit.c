#include "stages/tokenize/encode_unit.h"

#include <string.h>

enum { ROUND_TRIP_SHARE = 16 }; /* one document in as many is decoded again, chosen by its hash */

struct state {
  const struct encode_unit *work;
  struct part part;
  struct text decoded; /* scratch */
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
  struct tally *tally = &state->part.tally;
  text_clear(&state->decoded);
  TRY(tokenizer_decode(state->work->tokenizer, &state->decoded, ids, id_count));
  const bool same =
      state->decoded.length == count && memcmp(state->decoded.bytes, bytes, count) == 0;
  tally->round_trip_checked++;
  tally->round_trip_same += same;
  tally->round_trip_space += !same && equal_but_space(&state->decoded, bytes, count);
  return STATUS_OK;
}

static enum status add_document(void *context, const char *bytes, size_t count) {
  struct state *state = context;
  struct part *part = &state->part;
  const size_t before = part->tokens.count;
  TRY(tokenizer_encode(state->work->tokenizer, &part->tokens, bytes, count));
  const struct part_document document = {.hash = hash_bytes128(bytes, count),
                                         .tokens = (int64_t)(part->tokens.count - before),
                                         .bytes = (int64_t)count};
  const int64_t invalid = count_invalid(bytes, count);
  part->tally.documents++;
  part->tally.bytes += document.bytes;
  part->tally.tokens += document.tokens;
  part->tally.invalid_bytes += invalid;
  part->tally.invalid_documents += invalid > 0;
  if (document.hash.low % ROUND_TRIP_SHARE == 0)
    TRY(check_round_trip(state, part->tokens.ids + before, part->tokens.count - before, bytes,
                         count));
  TRY(part_add(part, document));
  if (part->tokens.count < PART_TOKENS) return STATUS_OK;
  TRY(part_write(part, state->work->folder));
  part_clear(part);
  part->piece++;
  return STATUS_OK;
}

struct hash128 encode_unit_key(const struct inputs *inputs, const struct options *options,
                               const struct tokenizer *tokenizer) {
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  const uint64_t boundary =
      hash_bytes_seeded(options->text_key, strlen(options->text_key), (uint64_t)options->boundary);
  uint64_t files = hash_bytes_seeded(options->entries, strlen(options->entries), boundary);
  for (size_t i = 0; i < inputs->file_count; i++) {
    const struct input_file *file = &inputs->files[i];
    files = hash_bytes_seeded(file->path, strlen(file->path), files ^ file->bytes);
  }
  files = hash_bytes_seeded(&inputs->unit_count, sizeof inputs->unit_count, files);
  return (struct hash128){.low = facts->hash.low ^ files, .high = facts->hash.high};
}

int64_t encode_unit_parts(const struct encode_unit *work, int64_t unit, bool thoroughly) {
  struct part part = {.key = work->key, .unit = unit};
  bool last = false;
  while (!last && part_exists(&part, work->folder, thoroughly, &last)) part.piece++;
  part_free(&part);
  return last ? part.piece : 0;
}

enum status encode_unit_run(const struct encode_unit *work, int64_t unit) {
  struct state state = {.work = work, .part = {.key = work->key, .unit = unit}};
  struct splitter splitter = {.boundary = work->options->boundary,
                              .text_key = work->options->text_key,
                              .entries = work->options->entries,
                              .sink = {add_document, &state}};
  enum status status = inputs_read(work->inputs, &work->inputs->units[unit], &splitter);
  state.part.tally.empty = (int64_t)splitter.empty;
  state.part.tally.archive_warnings = (int64_t)splitter.warnings;
  state.part.tally.binary_entries = (int64_t)splitter.binary;
  state.part.last = 1;
  if (status == STATUS_OK) status = part_write(&state.part, work->folder);
  splitter_free(&splitter);
  part_free(&state.part);
  text_free(&state.decoded);
  TRY(status);
  return STATUS_OK;
}
