/* Sampling ELF: steps from noise to latents, each with the last prediction as draft, and one call
 * that decodes (arXiv 2605.10938, the released code). Text i depends on (seed, i, options) alone.
 */
#include <string.h>

#include "stages/flow/elf_walk.h"

struct random_stream elf_walk_stream(const struct elf_walk *walk, int64_t slot, const char *purpose,
                                     int64_t step) {
  return random_open(walk->request->seed, purpose,
                     (uint64_t)(walk->request->first + walk->text[slot]), (uint32_t)step);
}

static void take_arrays(struct elf_walk *walk) {
  const size_t count = (size_t)walk->request->count;
  const size_t bytes = (size_t)walk->size * sizeof(float);
  struct arena *records = walk->tape->records;
  walk->z = tape_save(walk->tape, count * bytes);
  walk->seen = tape_save(walk->tape, count * bytes);
  walk->draft = tape_save(walk->tape, count * bytes);
  walk->noise = tape_save(walk->tape, bytes);
  walk->confidence = walk->request->confidence;
  if (walk->sure && !walk->confidence)
    walk->confidence =
        tape_save(walk->tape, count * (size_t)walk->request->positions * sizeof(float));
  walk->time = arena_take(records, count * sizeof(double));
  walk->guidance = arena_take(records, count * sizeof(double));
  walk->decode = arena_take(records, count * sizeof(float));
  walk->text = arena_take(records, count * sizeof(int64_t));
  walk->still = arena_take_zeroed(records, count * sizeof(int64_t));
  walk->times = arena_take(records, (size_t)(walk->steps + 1) * sizeof(double));
}

static struct elf_walk open_walk(const struct flow *flow, struct tape *tape,
                                 const struct flow_request *request, int32_t *tokens) {
  const int64_t width = flow->embedding_width, revisions = request->options->elf_revisions;
  struct elf_walk walk = {.flow = flow,
                          .tape = tape,
                          .request = request,
                          .tokens = tokens,
                          .width = width,
                          .size = request->positions * width,
                          .active = request->count,
                          .steps = request->nfe - 1 - revisions,
                          .sure = request->confidence || revisions > 0};
  take_arrays(&walk);
  for (int64_t i = 0; i < request->count; i++) walk.text[i] = i;
  elf_grid(walk.times, walk.steps, flow->options, request->options, request->seed);
  return walk;
}

/* z = sigma eps, no draft, no tokens. */
static void start(struct elf_walk *walk) {
  const int64_t size = walk->size, n = walk->request->count * walk->request->positions;
  for (int64_t i = 0; walk->z && i < n; i++) walk->tokens[i] = -1;
  for (int64_t i = 0; walk->z && i < walk->active; i++)
    random_fill_normal(walk->z + i * size, size, elf_walk_stream(walk, i, "elf.sample.noise", 0),
                       0);
  for (int64_t c = 0; walk->z && c < walk->active * size; c++) {
    walk->z[c] = (float)(walk->flow->options->elf_noise_scale * (double)walk->z[c]);
    walk->draft[c] = 0;
  }
  elf_given_restore(walk, walk->z);
  elf_given_restore(walk, walk->draft);
}

static struct value *input(const struct elf_walk *walk, const float *latents) {
  return tape_input(walk->tape, latents, walk->active * walk->request->positions, walk->width);
}

struct value *elf_walk_call(struct elf_walk *walk, struct value **z, double time, bool decode) {
  const struct elf *elf = walk->flow->state;
  struct value *seen = input(walk, walk->seen);
  for (int64_t i = 0; i < walk->active; i++) {
    walk->time[i] = time;
    walk->guidance[i] = walk->request->options->elf_guidance;
    walk->decode[i] = decode ? 1 : 0;
  }
  walk->calls++;
  if (z) *z = seen;
  return elf_backbone_forward(walk->tape, &elf->network,
                              &(struct elf_backbone_input){.batch = walk->active,
                                                           .positions = walk->request->positions,
                                                           .z = seen,
                                                           .draft = input(walk, walk->draft),
                                                           .time = walk->time,
                                                           .guidance = walk->guidance,
                                                           .decode = walk->decode});
}

double elf_renoise(float *z, int64_t count, double from, double to, double gamma, double scale,
                   struct random_stream stream) {
  const double kept = 1 - gamma * (to - from) > 0 ? 1 - gamma * (to - from) : 0;
  if (gamma <= 0) return from;
  for (int64_t c = 0; c < count; c++)
    z[c] = (float)(kept * (double)z[c] + (1 - kept) * scale * random_normal(stream, (uint64_t)c));
  return kept * from;
}

void elf_step(float *z, const float *x, int64_t count, double from, double to) {
  const double share = (to - from) / elf_gap(from);
  for (int64_t c = 0; c < count; c++)
    z[c] = (float)((1 - share) * (double)z[c] + share * (double)x[c]);
}

/* How much of the step's noise is put back; the last step is always a plain one. */
static double gamma_of(const struct elf_walk *walk, int64_t k) {
  const struct options *options = walk->request->options;
  if (options->sampler == SAMPLER_ODE || k + 1 == walk->steps) return 0;
  return options->elf_gamma * (options->elf_gamma_decay ? 1 - walk->times[k] : 1);
}

static bool is_paper(const struct elf_walk *walk) {
  return walk->request->options->elf_sde == SDE_PAPER;
}

static size_t bytes_of(const struct elf_walk *walk) {
  return (size_t)(walk->active * walk->size) * sizeof(float);
}

/* Fills `seen` from z; returns the time it has. */
static double renoise(struct elf_walk *walk, int64_t k) {
  const int64_t size = walk->size;
  const double scale = is_paper(walk) ? 1 : walk->flow->options->elf_noise_scale;
  double time = walk->times[k];
  if (walk->z) memcpy(walk->seen, walk->z, bytes_of(walk));
  for (int64_t i = 0; i < walk->active; i++)
    time = elf_renoise(walk->z ? walk->seen + i * size : NULL, walk->z ? size : 0, walk->times[k],
                       walk->times[k + 1], gamma_of(walk, k), scale,
                       elf_walk_stream(walk, i, "elf.sample.sde", k));
  return time;
}

/* The code's form goes on from the renoised state, the paper's from the state before it. */
static void advance(struct elf_walk *walk, int64_t k, double time) {
  const double from = is_paper(walk) ? walk->times[k] : time;
  if (!walk->z) return;
  if (!is_paper(walk)) memcpy(walk->z, walk->seen, bytes_of(walk));
  elf_step(walk->z, walk->draft, walk->active * walk->size, from, walk->times[k + 1]);
  elf_given_restore(walk, walk->z);
}

/* One step, and with patience a look at the tokens that the prediction stands for. */
static void step(struct elf_walk *walk, int64_t k) {
  const int64_t patience = walk->request->options->elf_patience;
  const double time = renoise(walk, k);
  elf_given_show(walk, time);
  elf_given_predict(walk, time);
  advance(walk, k, time);
  if (patience == 0 || k + 1 == walk->steps) return;
  elf_decode(walk, walk->draft);
  elf_decode_release(walk, patience);
}

static enum status check(const struct flow_request *request) {
  const int64_t revisions = request->options->elf_revisions;
  CHECK(request->nfe >= 2 + revisions, STATUS_MISMATCH,
        "elf needs at least %lld network calls, one step, the decoding and its revisions; nfe has "
        "%lld",
        (long long)(2 + revisions), (long long)request->nfe);
  CHECK(revisions == 0 || (request->given && request->given->source && request->given->embed),
        STATUS_MISMATCH,
        "targets of pairs are revised, and the rows are whole texts; leave out elf_revisions");
  CHECK(request->prefix_length == 0, STATUS_MISMATCH,
        "elf goes on from latents, not from tokens alone: give them with their encoder");
  return STATUS_OK;
}

enum status elf_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens) {
  TRY(check(request));
  struct elf_walk walk = open_walk(flow, tape, request, tokens);
  start(&walk);
  for (int64_t k = 0; k <= walk.steps && walk.active > 0; k++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    if (k < walk.steps)
      step(&walk, k);
    else
      elf_decode(&walk, walk.z);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
  TRY(elf_revise(&walk));
  return tape->status;
}
