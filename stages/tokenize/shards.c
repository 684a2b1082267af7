#include "stages/tokenize/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const side_names[CORPUS_SIDES] = {"train", "held_out"};

enum status shards_pack(struct packer *packer, const struct corpus_document *document) {
  const int64_t tokens = document->about->tokens, source = document->about->source;
  if (packer->packing == PACKING_PAIRS)
    return packer_add_pair(packer, document->ids, source, tokens - source);
  return packer_add(packer, document->ids, tokens);
}

/* before[index + 1] of both sides = what part `index` adds to rows or stream. */
static enum status measure_part(struct shards *shards, struct corpus_piece *piece, int64_t index) {
  const struct packer packer = packer_for(shards->options, shards->facts);
  struct packer packers[CORPUS_SIDES] = {packer, packer};
  struct corpus_document document;
  TRY(corpus_load(shards->corpus, piece, index, false));
  for (int64_t place = 0; place < part_count(&piece->part); place++)
    if (corpus_document(&document, shards->corpus, piece, place))
      TRY(shards_pack(&packers[document.side], &document));
  for (int side = 0; side < CORPUS_SIDES; side++) {
    TRY(packer_break(&packers[side]));
    const bool wrapped = packers[side].packing == PACKING_WRAPPED;
    shards->sides[side].before[index + 1] = wrapped ? packers[side].stream : packers[side].rows;
    shards->sides[side].cut_pairs += packers[side].cut;
    shards->sides[side].left_out_pairs += packers[side].left_out;
  }
  return STATUS_OK;
}

static enum status measure_parts(struct shards *shards, const struct comm *comm) {
  struct corpus_piece piece = {0};
  enum status status = STATUS_OK;
  for (int64_t i = comm->rank; status == STATUS_OK && i < shards->corpus->part_count;
       i += comm->size)
    status = measure_part(shards, &piece, i);
  corpus_piece_free(&piece);
  TRY(status);
  return STATUS_OK;
}

bool shards_begins_input(const struct shards *shards, int64_t index) {
  const struct corpus_part *parts = shards->corpus->parts;
  return index > 0 && parts[index].input != parts[index - 1].input;
}

/* Drops what fills no row at the end of an entry of `input`, before part `end`. */
static void drop_tail(struct shards_side *side, int64_t end, int64_t length) {
  const int64_t whole = side->before[end] / length * length;
  side->dropped += side->before[end] - whole;
  for (int64_t i = end; i >= 0 && side->before[i] > whole; i--) side->before[i] = whole;
}

static int64_t rows_before(const struct shards *shards, const struct shards_side *side,
                           int64_t part) {
  const bool wrapped = shards->options->packing == PACKING_WRAPPED;
  return wrapped ? side->before[part] / shards->options->sequence_length : side->before[part];
}

static void lay_out(struct shards *shards, struct shards_side *side) {
  const int64_t parts = shards->corpus->part_count, length = shards->options->sequence_length;
  const bool wrapped = shards->options->packing == PACKING_WRAPPED;
  for (int64_t i = 0; i < parts; i++) {
    if (wrapped && shards_begins_input(shards, i)) drop_tail(side, i, length);
    side->before[i + 1] += side->before[i];
  }
  if (wrapped) drop_tail(side, parts, length);
  side->rows = rows_before(shards, side, parts);
  side->rows_of_shard = (shards->options->shard_tokens + length - 1) / length;
  side->shards = (side->rows + side->rows_of_shard - 1) / side->rows_of_shard;
}

enum status shards_rows_of_inputs(const struct shards *shards, enum corpus_side side,
                                  struct text *text) {
  const struct corpus *corpus = shards->corpus;
  int64_t part = 0;
  const bool mixed = shards->options->shuffle == SHUFFLE_ALL; /* one entry, as it were */
  const int64_t inputs = mixed ? 1 : (int64_t)shards->options->input.count;
  for (int64_t input = 0; input < inputs; input++) {
    const int64_t first = part;
    while (part < corpus->part_count && corpus->parts[part].input == input) part++;
    const struct shards_side *layout = &shards->sides[side];
    TRY(text_format(
        text, "%s%lld", input ? " " : "",
        (long long)(rows_before(shards, layout, part) - rows_before(shards, layout, first))));
  }
  return STATUS_OK;
}

static enum status check_rows(const struct shards *shards) {
  const struct corpus_counts *counts = shards->corpus->counts;
  CHECK(shards->sides[CORPUS_TRAIN].rows, STATUS_MISMATCH,
        "the training documents (%lld, %lld tokens) do not fill one row of %lld tokens; give more "
        "text or a smaller sequence_length",
        (long long)counts[CORPUS_TRAIN].documents, (long long)counts[CORPUS_TRAIN].tokens,
        (long long)shards->options->sequence_length);
  CHECK(shards->sides[CORPUS_HELD_OUT].rows || shards->options->held_out == 0, STATUS_MISMATCH,
        "the held-out documents (%lld, %lld tokens) do not fill one row of %lld tokens; give more "
        "text, a larger held_out, a smaller sequence_length, or held_out: 0",
        (long long)counts[CORPUS_HELD_OUT].documents, (long long)counts[CORPUS_HELD_OUT].tokens,
        (long long)shards->options->sequence_length);
  return STATUS_OK;
}

static enum status allocate_sides(struct shards *shards) {
  for (int side = 0; side < CORPUS_SIDES; side++) {
    shards->sides[side].name = side_names[side];
    shards->sides[side].before = calloc((size_t)shards->corpus->part_count + 1, sizeof(int64_t));
    CHECK(shards->sides[side].before, STATUS_ENVIRONMENT, "out of memory: a table of parts");
  }
  return STATUS_OK;
}

/* The tag holds what decides a row's content beside the text: the tokenizer and the packing. */
static void name_shards(struct shards *shards) {
  char rules[HASH_HEX_BYTES + 128], hex[HASH_HEX_BYTES];
  const struct packer packer = packer_for(shards->options, shards->facts);
  hash_to_hex(shards->tokenizer, shards->facts->hash);
  snprintf(shards->length, sizeof shards->length, "%lld",
           (long long)shards->options->sequence_length);
  int length = snprintf(rules, sizeof rules, "%s %s %s", shards->tokenizer, shards->length,
                        options_choice(shards->options, OPTION_packing));
  if (packer.packing == PACKING_PAIRS)
    length += snprintf(rules + length, sizeof rules - (size_t)length, " %lld %s",
                       (long long)packer.source_length,
                       options_choice(shards->options, OPTION_long_pairs));
  if (shards->options->shuffle != SHUFFLE_NONE)
    length += snprintf(rules + length, sizeof rules - (size_t)length, " %s %lld",
                       options_choice(shards->options, OPTION_shuffle),
                       (long long)shards->options->shuffle_seed);
  hash_to_hex(hex, hash_bytes128(rules, (size_t)length));
  memcpy(shards->tag, hex, SHARDS_TAG_BYTES - 1);
}

enum status shards_plan(struct shards *shards, const struct corpus *corpus,
                        const struct tokenizer *tokenizer, const struct options *options,
                        struct comm *comm) {
  *shards = (struct shards){.corpus = corpus,
                            .facts = tokenizer_facts_of(tokenizer),
                            .options = options,
                            .folder = corpus->folder};
  name_shards(shards);
  TRY(comm_agree(comm, allocate_sides(shards)));
  TRY(comm_agree(comm, measure_parts(shards, comm)));
  for (int i = 0; i < CORPUS_SIDES; i++) {
    struct shards_side *side = &shards->sides[i];
    TRY(comm_allreduce(comm, side->before, corpus->part_count + 1, DTYPE_I64, COMM_SUM));
    TRY(comm_allreduce(comm, &side->cut_pairs, 1, DTYPE_I64, COMM_SUM));
    TRY(comm_allreduce(comm, &side->left_out_pairs, 1, DTYPE_I64, COMM_SUM));
    lay_out(shards, side);
  }
  return comm_agree(comm, check_rows(shards));
}

void shards_free(struct shards *shards) {
  for (int side = 0; side < CORPUS_SIDES; side++) free(shards->sides[side].before);
  *shards = (struct shards){0};
}
