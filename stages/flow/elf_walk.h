/* The state of ELF's sampler between steps, and its parts (arXiv 2605.10938, the released code).
 *
 * Texts are at slots [0, active); a text that is finished early leaves its slot to another, so that
 * nothing more is computed for it. On a measuring tape arrays are NULL and all texts stay.
 */
#ifndef STAGES_FLOW_ELF_WALK_H
#define STAGES_FLOW_ELF_WALK_H

#include "stages/flow/elf_state.h"

struct elf_walk {
  const struct flow *flow;
  struct tape *tape;
  const struct flow_request *request;
  int32_t *tokens;         /* [count, T] of texts: the result */
  int64_t width, size;     /* E, and T * E */
  int64_t active;          /* slots in use */
  int64_t *text;           /* [count] of slots: the text there */
  float *z, *seen;         /* [count, T, E] of slots: the state, and what the network sees of it */
  float *draft;            /* [count, T, E] of slots: the last prediction */
  float *noise;            /* [T, E] */
  double *time, *guidance; /* [count] */
  float *decode;           /* [count] */
  double *times;           /* [steps + 1] */
  int64_t steps;
  int64_t calls;     /* of the network, so far */
  bool sure;         /* whether confidences are wanted, of the caller or of revisions */
  float *confidence; /* [count, T] of texts: of their tokens, where they are wanted */
  int64_t *still;    /* [count] of texts: decodings in a row that changed nothing */
};

/* The stream of draws of the text at a slot. Local. */
struct random_stream elf_walk_stream(const struct elf_walk *walk, int64_t slot, const char *purpose,
                                     int64_t step);

/* The residual stream for what is seen and the draft, of all slots; *z (may be NULL) receives what
 * was seen as a value. Counts as a call. Local. */
struct value *elf_walk_call(struct elf_walk *walk, struct value **z, double time, bool decode);

/* --- what is given (elf_given.c); without effect when nothing is ---------------------------- */

/* Writes the given latents of each slot over `values`, [active, T, E]. Local. */
void elf_given_restore(const struct elf_walk *walk, float *values);

/* Gives the network what is given: a source clean, the parts of a text as noisy as the rest. Local.
 */
void elf_given_show(struct elf_walk *walk, double time);

/* draft = the prediction from what is seen; with source guidance s: u + s (c - u) of the
 * predictions with and without the source, two calls. Local. */
void elf_given_predict(struct elf_walk *walk, double time);

/* --- tokens (elf_decode.c) ------------------------------------------------------------------ */

/* What the decode branch says of slots. */
struct elf_named {
  int32_t *tokens; /* [active, T] */
  double *nll; /* [active, T] their negative log-probabilities; NULL where they are not wanted */
};

/* The most probable tokens for what is seen, one call at t = 1. The result lives as long as the
 * tape's records. Local. */
struct elf_named elf_name_tokens(struct elf_walk *walk);

/* Decodes z (or the draft) of all slots into the tokens of their texts, with probabilities where
 * they are wanted. Texts whose tokens are as before count as still. Local. */
void elf_decode(struct elf_walk *walk, const float *latents);

/* Lets texts go that were still for `patience` decodings in a row. Local. */
void elf_decode_release(struct elf_walk *walk, int64_t patience);

/* Names the tokens of all texts again that the model is least sure of, elf_revisions times, with
 * the encoder that what is given came through (elf_revise.c). Behind their first end token texts
 * have only such, of confidence 1. Local. Statuses of the encoder. */
enum status elf_revise(struct elf_walk *walk);

#endif
