#include "stages/tokenize/packer.h"

#include <string.h>

#include "sharding/store_writer.h"

struct packer packer_for(const struct options *options, const struct tokenizer_facts *facts) {
  return (struct packer){.packing = options->packing,
                         .length = options->sequence_length,
                         .width = dtype_bytes(store_writer_token_type(facts->vocabulary_size)),
                         .bos = facts->bos,
                         .eos = facts->eos,
                         .source_length = options->source_length ? options->source_length
                                                                 : options->sequence_length / 2,
                         .drops = options->long_pairs == LONG_PAIRS_DROP};
}

/* NULL: rows are only counted. */
static enum status give_from(struct packer *packer, const void *row, int64_t count) {
  packer->filled = 0;
  packer->rows++;
  return row ? packer->take(packer->state, row, count) : STATUS_OK;
}

static enum status give(struct packer *packer, bool real) {
  return give_from(packer, real ? packer->row : NULL, packer->filled);
}

/* Writes tokens at `place` of the row. */
static void put(struct packer *packer, int64_t place, const void *ids, int64_t count) {
  memcpy((char *)packer->row + (size_t)place * packer->width, ids, (size_t)count * packer->width);
}

static const void *skip(const struct packer *packer, const void *ids, int64_t count) {
  return (const char *)ids + (size_t)count * packer->width;
}

/* Appends tokens; a row that becomes full is given. */
static enum status append(struct packer *packer, const void *ids, int64_t count, bool real) {
  packer->stream += count;
  while (count) {
    const int64_t room = packer->length - packer->filled;
    const int64_t now = count < room ? count : room;
    const void *from = ids;
    if (real) ids = skip(packer, ids, now);
    count -= now;
    if (now == packer->length) { /* a whole row need not be gathered */
      TRY(give_from(packer, real ? from : NULL, now));
      continue;
    }
    if (real) put(packer, packer->filled, from, now);
    packer->filled += now;
    if (packer->filled == packer->length) TRY(give(packer, real));
  }
  return STATUS_OK;
}

static enum status add_wrapped(struct packer *packer, const void *ids, int64_t count, bool real) {
  if (packer->bos >= 0) TRY(append(packer, &packer->bos, 1, real));
  TRY(append(packer, ids, count, real));
  return append(packer, &packer->eos, 1, real);
}

static enum status end_row(struct packer *packer, bool real) {
  if (!packer->filled) return STATUS_OK;
  if (real) put(packer, packer->filled, &packer->eos, 1);
  packer->filled++;
  packer->stream++;
  return give(packer, real);
}

static enum status add_paragraph(struct packer *packer, const void *ids, int64_t count, bool real) {
  const int64_t most = packer->length - 1; /* beside the eos */
  if (packer->filled + count > most) TRY(end_row(packer, real));
  for (; count > most; count -= packer->length) {
    TRY(append(packer, ids, packer->length, real));
    if (real) ids = skip(packer, ids, packer->length);
  }
  return append(packer, ids, count, real);
}

enum status packer_add(struct packer *packer, const void *ids, int64_t count) {
  const bool real = ids != NULL;
  if (!count) return STATUS_OK;
  if (packer->packing == PACKING_WRAPPED) return add_wrapped(packer, ids, count, real);
  return add_paragraph(packer, ids, count, real);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

enum status packer_add_pair(struct packer *packer, const void *ids, int64_t source,
                            int64_t target) {
  const int64_t kept = least(source, packer->source_length);
  const int64_t room = least(target, packer->length - kept);
  const bool cut = kept < source || room < target;
  if (!source || !target || (cut && packer->drops)) {
    packer->left_out++;
    return STATUS_OK;
  }
  packer->cut += cut;
  packer->source = kept;
  packer->filled = kept + room;
  packer->stream += kept + room;
  if (ids) {
    put(packer, 0, ids, kept);
    put(packer, kept, skip(packer, ids, source), room);
  }
  return give(packer, ids != NULL);
}

enum status packer_break(struct packer *packer) {
  return packer->packing == PACKING_PARAGRAPH ? end_row(packer, packer->row != NULL) : STATUS_OK;
}
