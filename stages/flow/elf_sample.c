/* Sampling ELF: steps from noise to latents, each with the last prediction as draft, and one call
 * that decodes (arXiv 2605.10938, the released code). Text i depends on (seed, i, options) alone.
 */
#include "stages/flow/elf_state.h"
#include "stages/model/layers/head.h"

/* The state of all texts between steps. */
struct walk {
  const struct flow_request *request;
  int64_t width;           /* E */
  float *z, *renoised;     /* [count * T, E]; the network sees `renoised` */
  float *draft;            /* [count * T, E] the last prediction */
  double *time, *guidance; /* [count] */
  float *decode;           /* [count] */
  double *times;           /* [steps + 1] */
  int64_t steps;
};

static struct random_stream stream_of(const struct walk *walk, int64_t text, const char *purpose,
                                      int64_t step) {
  return random_open(walk->request->seed, purpose, (uint64_t)(walk->request->first + text),
                     (uint32_t)step);
}

static int64_t latent_size(const struct walk *walk) {
  return walk->request->positions * walk->width;
}

static struct walk open_walk(const struct flow *flow, struct tape *tape,
                             const struct flow_request *request) {
  const size_t count = (size_t)request->count;
  const int64_t width = flow->embedding_width;
  const size_t bytes = count * (size_t)(request->positions * width) * sizeof(float);
  struct arena *records = tape->records;
  struct walk walk = {.request = request, .width = width, .steps = request->nfe - 1};
  walk.z = tape_save(tape, bytes);
  walk.renoised = tape_save(tape, bytes);
  walk.draft = tape_save(tape, bytes);
  walk.time = arena_take(records, count * sizeof(double));
  walk.guidance = arena_take(records, count * sizeof(double));
  walk.decode = arena_take(records, count * sizeof(float));
  walk.times = arena_take(records, (size_t)(walk.steps + 1) * sizeof(double));
  elf_grid(walk.times, walk.steps, flow->options, request->options, request->seed);
  return walk;
}

/* z = sigma eps, no draft. */
static void start(const struct flow *flow, struct walk *walk) {
  const int64_t size = latent_size(walk);
  for (int64_t i = 0; walk->z && i < walk->request->count; i++)
    random_fill_normal(walk->z + i * size, size, stream_of(walk, i, "elf.sample.noise", 0), 0);
  for (int64_t c = 0; walk->z && c < walk->request->count * size; c++) {
    walk->z[c] = (float)(flow->options->elf_noise_scale * (double)walk->z[c]);
    walk->draft[c] = 0;
  }
}

/* What the network sees. */
static struct value *input(struct tape *tape, const struct walk *walk, const float *latents) {
  return tape_input(tape, latents, walk->request->count * walk->request->positions, walk->width);
}

static struct value *call_network(const struct flow *flow, struct tape *tape, struct walk *walk,
                                  struct value *z, double time, bool decode) {
  const struct elf *elf = flow->state;
  const struct flow_request *request = walk->request;
  for (int64_t i = 0; i < request->count; i++) {
    walk->time[i] = time;
    walk->guidance[i] = request->options->elf_guidance;
    walk->decode[i] = decode ? 1 : 0;
  }
  return elf_backbone_forward(tape, &elf->network,
                              &(struct elf_backbone_input){.batch = request->count,
                                                           .positions = request->positions,
                                                           .z = z,
                                                           .draft = input(tape, walk, walk->draft),
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
static double gamma_of(const struct walk *walk, int64_t k) {
  const struct options *options = walk->request->options;
  if (options->sampler == SAMPLER_ODE || k + 1 == walk->steps) return 0;
  return options->elf_gamma * (options->elf_gamma_decay ? 1 - walk->times[k] : 1);
}

/* Fills `renoised` from z; returns the time it has. */
static double renoise(const struct flow *flow, struct walk *walk, int64_t k) {
  const int64_t size = latent_size(walk);
  const bool paper = walk->request->options->elf_sde == SDE_PAPER;
  const double scale = paper ? 1 : flow->options->elf_noise_scale;
  double time = walk->times[k];
  for (int64_t c = 0; walk->z && c < walk->request->count * size; c++)
    walk->renoised[c] = walk->z[c];
  for (int64_t i = 0; i < walk->request->count; i++)
    time = elf_renoise(walk->z ? walk->renoised + i * size : NULL, walk->z ? size : 0,
                       walk->times[k], walk->times[k + 1], gamma_of(walk, k), scale,
                       stream_of(walk, i, "elf.sample.sde", k));
  return time;
}

/* The code's form goes on from the renoised state, the paper's from the state before it. */
static void advance(struct walk *walk, int64_t k, double time) {
  const int64_t count = walk->request->count * latent_size(walk);
  const bool paper = walk->request->options->elf_sde == SDE_PAPER;
  if (!walk->z) return;
  if (!paper)
    for (int64_t c = 0; c < count; c++) walk->z[c] = walk->renoised[c];
  elf_step(walk->z, walk->draft, count, paper ? walk->times[k] : time, walk->times[k + 1]);
}

static void step(const struct flow *flow, struct tape *tape, struct walk *walk, int64_t k) {
  const double time = renoise(flow, walk, k);
  struct value *z = input(tape, walk, walk->renoised);
  struct value *hidden = call_network(flow, tape, walk, z, time, false);
  tape_output(tape, walk->draft,
              elf_predict(flow, tape, hidden, z, walk->time, walk->request->count));
  advance(walk, k, time);
}

static void decode(const struct flow *flow, struct tape *tape, struct walk *walk, int32_t *tokens) {
  const struct elf *elf = flow->state;
  const int64_t count = walk->request->count * latent_size(walk);
  for (int64_t c = 0; walk->z && c < count; c++) {
    walk->renoised[c] = walk->z[c];
    walk->draft[c] = 0;
  }
  struct value *hidden = call_network(flow, tape, walk, input(tape, walk, walk->renoised), 1, true);
  struct head_result result = {.argmax = tokens};
  head_forward(tape, &result, elf_backbone_decode(tape, &elf->network, hidden),
               &(struct head){.vocab = flow->vocab,
                              .w = elf->network.unembed,
                              .b = elf->network.unembed_bias});
}

enum status elf_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens) {
  CHECK(request->nfe >= 2, STATUS_MISMATCH,
        "elf needs at least 2 network calls, one step and the decoding; nfe has %lld",
        (long long)request->nfe);
  CHECK(request->prefix_length == 0, STATUS_MISMATCH,
        "elf cannot continue given tokens: its prefix would need the encoder");
  struct walk walk = open_walk(flow, tape, request);
  start(flow, &walk);
  for (int64_t k = 0; k <= walk.steps; k++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    if (k < walk.steps)
      step(flow, tape, &walk, k);
    else
      decode(flow, tape, &walk, tokens);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
  return tape->status;
}
