/* Laws of ELF's sampler with sources, with parts of a text given, with confidences, and with texts
 * that stop early (R-DLM-3). */
#include <math.h>
#include <string.h>

#include "stages/flow/elf_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { TEXTS = 5, T = TINY_POSITIONS, CALLS = 6, N = TEXTS * T, SIZE = N * TINY_LATENT };

struct drawing {
  struct tiny_flow tiny;
  float latents[SIZE];
  int32_t given_tokens[N], before[TEXTS], after[TEXTS];
  struct flow_given given;
  int first, count, embeddings; /* of the texts that are being drawn */
  int32_t last[N];              /* tokens that were embedded last */
};

enum { END = 2 };

/* Latents are functions of token and position; counts what changed since the last time. */
static enum status embed(void *embedder, const int32_t *tokens, const int32_t *lengths) {
  struct drawing *d = embedder;
  const int revisions = (int)d->tiny.options.elf_revisions;
  for (int i = 0; i < d->count; i++) {
    const int text = d->first + i, before = d->before[text];
    int changed = 0, length = before;
    while (length < T && tokens[i * T + length] != END) length++;
    assert_int_equal(lengths[i], length < T ? length + 1 : T);
    for (int t = 0; t < T; t++) {
      const int32_t token = tokens[i * T + t];
      if (t < before) assert_int_equal(token, d->given_tokens[text * T + t]);
      if (t > length) assert_int_equal(token, END);
      changed += d->embeddings > 0 && token != d->last[text * T + t] && t <= length;
      d->last[text * T + t] = token;
      if (t >= before)
        random_fill_normal(d->latents + (text * T + t) * TINY_LATENT, TINY_LATENT,
                           random_open(3, "embed", (uint64_t)token, (uint32_t)t), 0);
    }
    /* half of T tokens, then less */
    assert_true(changed <= (int)ceil(0.5 * (revisions + 1 - d->embeddings) / (revisions + 1) * T));
  }
  d->embeddings++;
  return STATUS_OK;
}

/* What was drawn. */
struct drawn {
  int32_t tokens[N], calls[TEXTS];
  float confidence[N];
};

static void open_drawing(struct drawing *d) {
  tiny_flow_options(&d->tiny);
  d->tiny.options.sampler = SAMPLER_SDE;
  d->tiny.options.elf_noise_scale = 30; /* so that the decoder tells texts apart */
  tiny_flow_open(&d->tiny, &flow_elf);
  tiny_flow_bind(&d->tiny);
  random_fill_normal(d->latents, SIZE, random_open(2, "given", 0, 0), 0);
  for (int i = 0; i < SIZE; i++) d->latents[i] *= 30;
  for (int i = 0; i < N; i++) d->given_tokens[i] = 100 + i;
  for (int i = 0; i < TEXTS; i++) {
    d->before[i] = 1 + i % 2;
    d->after[i] = 0;
  }
  d->given = (struct flow_given){.latents = d->latents,
                                 .tokens = d->given_tokens,
                                 .before = d->before,
                                 .after = d->after,
                                 .source = true};
}

static void draw_some(struct drawing *d, struct drawn *drawn, int first, int count, bool given) {
  struct tape tape;
  struct tiny_flow *tiny = &d->tiny;
  const size_t mark = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  const struct flow_given shown = {.latents = d->latents + first * T * TINY_LATENT,
                                   .tokens = d->given_tokens + first * T,
                                   .before = d->before + first,
                                   .after = d->after + first,
                                   .embed = embed,
                                   .embedder = d,
                                   .source = d->given.source};
  const struct flow_request request = {.count = count,
                                       .positions = T,
                                       .first = first,
                                       .seed = 21,
                                       .nfe = CALLS,
                                       .options = &tiny->options,
                                       .given = given ? &shown : NULL,
                                       .confidence = drawn->confidence,
                                       .calls = drawn->calls};
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = tape.training = false;
  d->first = first;
  d->count = count;
  d->embeddings = 0;
  assert_ok(elf_sample(&tiny->flow, &tape, &request, drawn->tokens));
  arena_reset(&tiny->values, mark);
  arena_reset(&tiny->records, records);
}

static struct drawn draw(struct drawing *d, bool given) {
  struct drawn drawn;
  memset(&drawn, 0, sizeof drawn);
  draw_some(d, &drawn, 0, TEXTS, given);
  return drawn;
}

/* The decoder gives the same odds whatever it sees: odds 3 for token 4, 1 for all others. */
static void fix_decoder(struct drawing *d) {
  struct elf *elf = d->tiny.flow.state;
  double *weight = elf->network.unembed->data, *bias = elf->network.unembed_bias->data;
  for (int64_t i = 0; i < param_count(elf->network.unembed); i++) weight[i] = 0;
  for (int i = 0; i < TINY_VOCABULARY; i++) bias[i] = i == 4 ? log(3) : 0;
}

static void check_fixed(const struct drawn *drawn, const int32_t *before) {
  for (int i = 0; i < N; i++) {
    if (before && i % T < before[i / T]) continue;
    assert_int_equal(drawn->tokens[i], 4);
    assert_near((double)drawn->confidence[i], 3.0 / (3 + TINY_VOCABULARY - 1), 1e-6);
  }
}

static void check_given(const struct drawing *d, const struct drawn *drawn) {
  for (int i = 0; i < N; i++) {
    const bool given = i % T < d->before[i / T] || i % T >= T - d->after[i / T];
    assert_true((drawn->tokens[i] == d->given_tokens[i]) == given);
    assert_true(given ? drawn->confidence[i] == 1
                      : drawn->confidence[i] > 0 && drawn->confidence[i] <= 1);
  }
}

static void sources_stay_and_are_read(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  const struct drawn first = draw(&d, true);
  check_given(&d, &first);
  for (int i = 0; i < SIZE; i++) d.latents[i] = -d.latents[i];
  const struct drawn other = draw(&d, true);
  assert_memory_not_equal(first.tokens, other.tokens, sizeof first.tokens);
  tiny_flow_close(&d.tiny);
}

/* What is behind the source is never read. */
static void targets_are_not_read(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  const struct drawn first = draw(&d, true);
  for (int i = 0; i < SIZE; i++)
    if (i / TINY_LATENT % T >= d.before[i / TINY_LATENT / T]) d.latents[i] = NAN;
  const struct drawn other = draw(&d, true);
  assert_memory_equal(first.tokens, other.tokens, sizeof first.tokens);
  tiny_flow_close(&d.tiny);
}

static void guidance_takes_two_passes(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  const struct drawn plain = draw(&d, true);
  d.tiny.options.elf_source_guidance = 2;
  const struct drawn guided = draw(&d, true);
  assert_int_equal(plain.calls[0], CALLS);
  assert_int_equal(guided.calls[0], 2 * (CALLS - 1) + 1);
  assert_memory_not_equal(plain.tokens, guided.tokens, sizeof plain.tokens);
  tiny_flow_close(&d.tiny);
}

/* Without a source both passes are one, to the last bit; and nothing given is nothing given. */
static void no_source_is_no_guidance(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  memset(d.before, 0, sizeof d.before);
  const struct drawn none = draw(&d, false), plain = draw(&d, true);
  d.tiny.options.elf_source_guidance = 3;
  const struct drawn guided = draw(&d, true);
  assert_memory_equal(none.tokens, plain.tokens, sizeof none.tokens);
  assert_memory_equal(none.confidence, plain.confidence, sizeof none.confidence);
  assert_memory_equal(plain.confidence, guided.confidence, sizeof none.confidence);
  d.given.source = false;
  const struct drawn open = draw(&d, true);
  assert_memory_equal(none.confidence, open.confidence, sizeof none.confidence);
  tiny_flow_close(&d.tiny);
}

static void gaps_are_filled(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  d.given.source = false;
  for (int i = 0; i < TEXTS; i++) d.after[i] = 1;
  const struct drawn first = draw(&d, true);
  check_given(&d, &first);
  for (int i = 0; i < TEXTS; i++) d.latents[(i * T + T - 1) * TINY_LATENT] += 200;
  const struct drawn other = draw(&d, true);
  assert_memory_not_equal(first.confidence, other.confidence, sizeof first.confidence);
  tiny_flow_close(&d.tiny);
}

static void confidence_is_the_probability(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  fix_decoder(&d);
  const struct drawn drawn = draw(&d, false);
  check_fixed(&drawn, NULL);
  tiny_flow_close(&d.tiny);
}

/* One step and one decoding, and the same again: the second decoding changes nothing. */
static void still_texts_stop(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  fix_decoder(&d);
  d.tiny.options.elf_patience = 1;
  const struct drawn drawn = draw(&d, false);
  for (int i = 0; i < TEXTS; i++) assert_int_equal(drawn.calls[i], 4);
  tiny_flow_close(&d.tiny);
}

/* Every text is what it is when it is drawn by itself. */
static void check_alone(struct drawing *d, const struct drawn *drawn) {
  for (int i = 0; i < TEXTS; i++) {
    struct drawn alone;
    draw_some(d, &alone, i, 1, true);
    assert_memory_equal(alone.tokens, drawn->tokens + i * T, T * sizeof(int32_t));
    assert_int_equal(alone.calls[0], drawn->calls[i]);
  }
}

/* Decoding on the way changes nothing; a stopped text does not change the others. */
static void stopping_is_of_each_text(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  const struct drawn plain = draw(&d, true);
  d.tiny.options.elf_patience = 1000;
  const struct drawn watched = draw(&d, true);
  assert_memory_equal(plain.tokens, watched.tokens, sizeof plain.tokens);
  assert_int_equal(watched.calls[0], CALLS + CALLS - 2);
  d.tiny.options.elf_patience = 1;
  const struct drawn stopped = draw(&d, true);
  check_alone(&d, &stopped);
  tiny_flow_close(&d.tiny);
}

/* Behind the first end token of a target there are only such, certain. */
static void check_ends(const struct drawing *d, const struct drawn *drawn) {
  for (int i = 0; i < TEXTS; i++) {
    bool ended = false;
    for (int t = d->before[i]; t < T; t++) {
      if (ended) assert_int_equal(drawn->tokens[i * T + t], END);
      if (ended) assert_true(drawn->confidence[i * T + t] == 1);
      ended = ended || drawn->tokens[i * T + t] == END;
    }
  }
}

/* Revisions are among the calls, leave the sources, and are each text's own; another decoding than
 * the flow's is their result. */
static void revisions_name_some_again(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  d.tiny.flow.eos = END;
  d.tiny.options.elf_noise_scale = 3;
  d.tiny.options.elf_corruption_scale = 30;
  const struct drawn plain = draw(&d, true);
  assert_int_equal(d.embeddings, 0);
  d.tiny.options.elf_revisions = 3;
  const struct drawn revised = draw(&d, true);
  assert_int_equal(d.embeddings, 3);
  check_given(&d, &revised);
  assert_memory_not_equal(plain.tokens, revised.tokens, sizeof plain.tokens);
  check_alone(&d, &revised);
  check_ends(&d, &revised);
  for (int i = 0; i < TEXTS; i++) assert_int_equal(revised.calls[i], CALLS);
  d.tiny.options.elf_patience = 1;
  const struct drawn stopped = draw(&d, true);
  check_given(&d, &stopped);
  tiny_flow_close(&d.tiny);
}

/* What is named again has the probability that it was named with. */
static void revisions_keep_probabilities(void **state) {
  (void)state;
  static struct drawing d;
  open_drawing(&d);
  fix_decoder(&d);
  d.tiny.options.elf_revisions = 2;
  const struct drawn drawn = draw(&d, true);
  check_fixed(&drawn, d.before);
  tiny_flow_close(&d.tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources_stay_and_are_read), cmocka_unit_test(targets_are_not_read),
      cmocka_unit_test(guidance_takes_two_passes), cmocka_unit_test(no_source_is_no_guidance),
      cmocka_unit_test(gaps_are_filled),           cmocka_unit_test(confidence_is_the_probability),
      cmocka_unit_test(still_texts_stop),          cmocka_unit_test(stopping_is_of_each_text),
      cmocka_unit_test(revisions_name_some_again), cmocka_unit_test(revisions_keep_probabilities)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
