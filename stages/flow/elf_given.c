/* Given latents in ELF's sampler: the source of a pair, which is clean and guides (arXiv
 * 2605.10938, section 3.4), or parts of a text, which a model of whole texts completes: their path
 * from noise is known, so it replaces the model's (as in arXiv 2201.09865).
 */
#include <string.h>

#include "stages/flow/elf_walk.h"

/* Positions of a text: [0, before) and [after, T) are given. */
struct places {
  int64_t before, after;
};

static struct places places_of(const struct elf_walk *walk, int64_t slot) {
  const struct flow_given *given = walk->request->given;
  const int64_t text = walk->text[slot];
  return (struct places){given->before[text], walk->request->positions - given->after[text]};
}

static bool is_given(struct places places, int64_t position) {
  return position < places.before || position >= places.after;
}

static const float *latents_of(const struct elf_walk *walk, int64_t slot) {
  return walk->request->given->latents + walk->text[slot] * walk->size;
}

/* Writes row[T, E] over `values` where the text at `slot` is given. */
static void put_given(const struct elf_walk *walk, int64_t slot, float *values, const float *row) {
  const struct places places = places_of(walk, slot);
  const int64_t E = walk->width, first = places.after * E;
  memcpy(values, row, (size_t)(places.before * E) * sizeof *values);
  memcpy(values + first, row + first, (size_t)(walk->size - first) * sizeof *values);
}

void elf_given_restore(const struct elf_walk *walk, float *values) {
  if (!walk->request->given || !values) return;
  for (int64_t i = 0; i < walk->active; i++)
    put_given(walk, i, values + i * walk->size, latents_of(walk, i));
}

/* noise = t x + (1 - t) sigma eps where the text is given, with the same eps in every step. */
static void noisy_given(struct elf_walk *walk, int64_t slot, double time) {
  const float *x = latents_of(walk, slot);
  const struct places places = places_of(walk, slot);
  const double noise = (1 - time) * walk->flow->options->elf_noise_scale;
  random_fill_normal(walk->noise, walk->size, elf_walk_stream(walk, slot, "elf.sample.noise", 0),
                     0);
  for (int64_t c = 0; c < walk->size; c++)
    if (is_given(places, c / walk->width))
      walk->noise[c] = (float)(time * (double)x[c] + noise * (double)walk->noise[c]);
}

void elf_given_show(struct elf_walk *walk, double time) {
  const struct flow_given *given = walk->request->given;
  if (!given || !walk->seen) return;
  if (given->source) {
    elf_given_restore(walk, walk->seen);
    return;
  }
  for (int64_t i = 0; i < walk->active; i++) {
    noisy_given(walk, i, time);
    put_given(walk, i, walk->seen + i * walk->size, walk->noise);
  }
}

static void predict(struct elf_walk *walk, float *x, double time) {
  const struct elf *elf = walk->flow->state;
  struct value *z, *hidden = elf_walk_call(walk, &z, time, false);
  tape_output(
      walk->tape, x,
      elf_predict(walk->flow, walk->tape, &elf->network, hidden, z, walk->time, walk->active));
}

static void hide_sources(const struct elf_walk *walk, float *values) {
  for (int64_t i = 0; values && i < walk->active; i++)
    memset(values + i * walk->size, 0,
           (size_t)(places_of(walk, i).before * walk->width) * sizeof *values);
}

/* The prediction that does not see the source, into `x`; what is seen is as before afterwards. */
static void predict_without(struct elf_walk *walk, float *x, double time) {
  hide_sources(walk, walk->seen);
  hide_sources(walk, walk->draft);
  predict(walk, x, time);
  elf_given_restore(walk, walk->seen);
  elf_given_restore(walk, walk->draft);
}

void elf_given_predict(struct elf_walk *walk, double time) {
  const struct flow_given *given = walk->request->given;
  const double scale = walk->request->options->elf_source_guidance;
  const int64_t count = walk->active * walk->size;
  const bool guided = given && given->source && scale != 1;
  float *without = guided ? tape_save(walk->tape, (size_t)count * sizeof *without) : NULL;
  if (guided) predict_without(walk, without, time);
  predict(walk, walk->draft, time);
  for (int64_t c = 0; without && c < count; c++)
    walk->draft[c] =
        (float)((double)without[c] + scale * ((double)walk->draft[c] - (double)without[c]));
  elf_given_restore(walk, walk->draft);
}
