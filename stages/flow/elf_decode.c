/* Tokens from latents in ELF's sampler: one call at t = 1, the most probable token everywhere. */
#include <math.h>
#include <string.h>

#include "stages/flow/elf_walk.h"
#include "stages/model/layers/head.h"

static void run_head(struct elf_walk *walk, struct value *x, struct head_result *result,
                     const int32_t *targets) {
  const struct elf *elf = walk->flow->state;
  head_forward(walk->tape, result, x,
               &(struct head){.vocab = walk->flow->vocab,
                              .w = elf->network.unembed,
                              .b = elf->network.unembed_bias,
                              .targets = targets});
}

/* The head gives losses of known targets only, so that probabilities take it a second time. */
struct elf_named elf_name_tokens(struct elf_walk *walk) {
  const struct elf *elf = walk->flow->state;
  struct arena *records = walk->tape->records;
  const size_t n = (size_t)(walk->active * walk->request->positions);
  struct elf_named decoded = {.tokens = arena_take_zeroed(records, n * sizeof(int32_t))};
  struct value *x =
      elf_backbone_decode(walk->tape, &elf->network, elf_walk_call(walk, NULL, 1, true));
  run_head(walk, x, &(struct head_result){.argmax = decoded.tokens}, NULL);
  if (!walk->sure) return decoded;
  decoded.nll = arena_take_zeroed(records, n * sizeof(double));
  run_head(walk, x, &(struct head_result){.loss = decoded.nll}, decoded.tokens);
  return decoded;
}

static bool is_given(const struct elf_walk *walk, int64_t text, int64_t position) {
  const struct flow_given *given = walk->request->given;
  return given && (position < given->before[text] ||
                   position >= walk->request->positions - given->after[text]);
}

/* Takes what a slot was decoded to as the text's tokens. */
static void keep(struct elf_walk *walk, int64_t slot, const struct elf_named *decoded) {
  const int64_t T = walk->request->positions, text = walk->text[slot];
  int32_t *tokens = walk->tokens + text * T;
  float *confidence = walk->confidence;
  bool same = true;
  for (int64_t i = 0; i < T; i++) {
    const bool given = is_given(walk, text, i);
    const int32_t token =
        given ? walk->request->given->tokens[text * T + i] : decoded->tokens[slot * T + i];
    same = same && tokens[i] == token;
    tokens[i] = token;
    if (confidence) confidence[text * T + i] = given ? 1 : (float)exp(-decoded->nll[slot * T + i]);
  }
  walk->still[text] = same ? walk->still[text] + 1 : 0;
  if (walk->request->calls) walk->request->calls[text] = (int32_t)walk->calls;
}

void elf_decode(struct elf_walk *walk, const float *latents) {
  const size_t bytes = (size_t)(walk->active * walk->size) * sizeof(float);
  float *draft = tape_save(walk->tape, bytes);
  if (walk->z) {
    memcpy(draft, walk->draft, bytes);
    memmove(walk->seen, latents, bytes);
    memset(walk->draft, 0, bytes);
  }
  const struct elf_named decoded = elf_name_tokens(walk);
  if (!walk->z) return;
  memcpy(walk->draft, draft, bytes);
  for (int64_t slot = 0; slot < walk->active; slot++) keep(walk, slot, &decoded);
}

static void move(struct elf_walk *walk, int64_t to, int64_t from) {
  const size_t bytes = (size_t)walk->size * sizeof(float);
  walk->text[to] = walk->text[from];
  if (to == from) return;
  memcpy(walk->z + to * walk->size, walk->z + from * walk->size, bytes);
  memcpy(walk->draft + to * walk->size, walk->draft + from * walk->size, bytes);
}

void elf_decode_release(struct elf_walk *walk, int64_t patience) {
  int64_t kept = 0;
  for (int64_t slot = 0; walk->z && slot < walk->active; slot++)
    if (walk->still[walk->text[slot]] < patience) move(walk, kept++, slot);
  if (walk->z) walk->active = kept;
}
