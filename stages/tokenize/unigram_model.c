#include "stages/tokenize/unigram_model.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/protobuf.h"

/* Field numbers of sentencepiece_model.proto. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_SUFFIX = 24, TRAINER_BYTE_FALLBACK = 35, TRAINER_UNKNOWN = 44 };
enum { NORMALIZER_CHARSMAP = 2, NORMALIZER_PREFIX, NORMALIZER_REMOVE, NORMALIZER_ESCAPE };

static const double unknown_penalty = 10; /* below the lowest score, as the library has it */

static bool parse_piece(struct unigram_piece *piece, const struct protobuf_field *from) {
  struct protobuf message = {.bytes = from->bytes, .count = from->count};
  struct protobuf_field field;
  *piece = (struct unigram_piece){.type = UNIGRAM_NORMAL};
  while (protobuf_next(&message, &field)) {
    if (field.number == PIECE_TEXT && field.bytes) {
      piece->bytes = field.bytes;
      piece->count = field.count;
    }
    if (field.number == PIECE_SCORE) piece->score = protobuf_float(&field);
    if (field.number == PIECE_TYPE) piece->type = (enum unigram_type)field.integer;
  }
  return !message.broken && piece->count && isfinite(piece->score) &&
         piece->type >= UNIGRAM_NORMAL && piece->type <= UNIGRAM_BYTE;
}

static bool parse_trainer(struct unigram_model *model, const struct protobuf_field *from) {
  struct protobuf message = {.bytes = from->bytes, .count = from->count};
  struct protobuf_field field;
  while (protobuf_next(&message, &field)) {
    if (field.number == TRAINER_TYPE) model->model_type = (int64_t)field.integer;
    if (field.number == TRAINER_SUFFIX) model->space_as_suffix = field.integer != 0;
    if (field.number == TRAINER_BYTE_FALLBACK) model->byte_fallback = field.integer != 0;
    if (field.number == TRAINER_UNKNOWN && field.bytes) {
      model->unknown_text = field.bytes;
      model->unknown_text_bytes = field.count;
    }
  }
  return !message.broken;
}

static bool parse_normalizer(struct unigram_model *model, const struct protobuf_field *from) {
  struct protobuf message = {.bytes = from->bytes, .count = from->count};
  struct protobuf_field field;
  while (protobuf_next(&message, &field)) {
    if (field.number == NORMALIZER_CHARSMAP && field.bytes) {
      model->charsmap = field.bytes;
      model->charsmap_bytes = field.count;
    }
    if (field.number == NORMALIZER_PREFIX) model->dummy_prefix = field.integer != 0;
    if (field.number == NORMALIZER_REMOVE) model->remove_extra_spaces = field.integer != 0;
    if (field.number == NORMALIZER_ESCAPE) model->escape_spaces = field.integer != 0;
  }
  return !message.broken;
}

/* A table that is applied to decoded text; an empty one is the same as none. */
static bool parse_denormalizer(struct unigram_model *model, const struct protobuf_field *from) {
  struct protobuf message = {.bytes = from->bytes, .count = from->count};
  struct protobuf_field field;
  while (protobuf_next(&message, &field))
    if (field.number == NORMALIZER_CHARSMAP) model->denormalizes = field.count > 0;
  return !message.broken;
}

static bool parse_field(struct unigram_model *model, const struct protobuf_field *field) {
  const bool denormalizer = field->number == MODEL_DENORMALIZER && field->bytes;
  if (denormalizer) return parse_denormalizer(model, field);
  if (field->number > MODEL_NORMALIZER) return true;
  if (!field->bytes) return false;
  if (field->number == MODEL_TRAINER) return parse_trainer(model, field);
  if (field->number == MODEL_NORMALIZER) return parse_normalizer(model, field);
  return parse_piece(&model->pieces[model->piece_count++], field);
}

/* An upper bound of the number of pieces: each takes at least four bytes of the file. */
static enum status allocate(struct unigram_model *model, size_t bytes) {
  model->pieces = calloc(bytes / 4 + 1, sizeof *model->pieces);
  CHECK(model->pieces, STATUS_ENVIRONMENT, "out of memory: a tokenizer's pieces");
  return STATUS_OK;
}

void unigram_model_find_unknown(struct unigram_model *model) {
  double lowest = DBL_MAX;
  model->unknown = -1;
  for (int32_t i = 0; i < model->piece_count; i++) {
    const struct unigram_piece *piece = &model->pieces[i];
    if (piece->type == UNIGRAM_NORMAL && piece->score < lowest) lowest = piece->score;
    if (piece->type == UNIGRAM_UNKNOWN) model->unknown = i;
  }
  model->unknown_score =
      model->words_alone ? lowest - unknown_penalty : (double)(float)(lowest - unknown_penalty);
}

enum status unigram_model_parse(struct unigram_model *model, const char *bytes, size_t count) {
  *model = (struct unigram_model){.unknown_text = " \xe2\x81\x87 ", /* U+2047 */
                                  .unknown_text_bytes = 5,
                                  .model_type = 1,
                                  .dummy_prefix = true,
                                  .remove_extra_spaces = true,
                                  .escape_spaces = true};
  TRY(allocate(model, count));
  struct protobuf message = {.bytes = bytes, .count = count};
  struct protobuf_field field;
  bool sound = true;
  while (sound && protobuf_next(&message, &field)) sound = parse_field(model, &field);
  unigram_model_find_unknown(model);
  if (sound && !message.broken && model->piece_count) return STATUS_OK;
  unigram_model_free(model);
  FAIL(STATUS_DAMAGED, "not a SentencePiece model: the field before byte %zu makes no sense",
       message.at);
}

void unigram_model_free(struct unigram_model *model) {
  free(model->pieces);
  text_free(&model->storage);
  *model = (struct unigram_model){0};
}

static const char space[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */

/* Whether the symbol for a space is inside a piece, not only at its start. */
static bool space_inside(const struct unigram_piece *piece) {
  for (size_t i = 1; i + 3 <= piece->count; i++)
    if (memcmp(piece->bytes + i, space, 3) == 0) return true;
  return false;
}

static const char *uncovered_piece(const struct unigram_piece *piece) {
  if (piece->type == UNIGRAM_USER_DEFINED) return "it has user-defined symbols";
  if (piece->type == UNIGRAM_NORMAL && piece->score > 0) return "a piece has a score above zero";
  if (piece->type == UNIGRAM_NORMAL && space_inside(piece)) return "a piece holds a space inside";
  return NULL;
}

const char *unigram_model_uncovered(const struct unigram_model *model) {
  bool has_space = false;
  if (model->model_type != 1) return "it is not a unigram model";
  if (model->unknown < 0) return "it has no piece for what is unknown";
  if (model->denormalizes) return "it changes decoded text";
  if (model->byte_fallback) return "it falls back to bytes";
  if (model->space_as_suffix) return "it writes spaces at the end of words";
  if (!model->dummy_prefix) return "it adds no space at the start";
  if (!model->remove_extra_spaces) return "it keeps extra spaces";
  if (!model->escape_spaces) return "it keeps spaces as they are";
  for (int32_t i = 0; i < model->piece_count; i++) {
    const struct unigram_piece *piece = &model->pieces[i];
    const char *why = uncovered_piece(piece);
    if (why) return why;
    has_space |=
        piece->type == UNIGRAM_NORMAL && piece->count == 3 && !memcmp(piece->bytes, space, 3);
  }
  return has_space ? NULL : "it has no piece for a space";
}
