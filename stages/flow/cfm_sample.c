/* Sampling categorical flow maps: N steps from noise to text, carrying d numbers a position.
 *
 * A text is drawn as a whole, or block by block: the positions before a block are given clean, and
 * those behind it are drawn along and forgotten.
 */
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "stages/model/layers/dropout.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/vocab_embedding.h"

/* The state of all texts between steps. */
struct walk {
  int64_t count, positions, width;
  float *y;          /* [count * positions, width] */
  float *mean;       /* the same shape: scratch */
  float *weak;       /* the same shape: scratch; NULL without guidance */
  float *free;       /* the same shape: the state had nothing been given; NULL without guidance */
  double *from, *to; /* [count] */
  float *clean;      /* [count * positions] 1 where tokens are settled */
  const struct flow_request *request;
  int32_t *tokens; /* [count, positions], the caller's */
  int64_t fixed;   /* positions whose tokens are settled */
  uint32_t block;
};

static bool is_fixed(const struct walk *walk, int64_t position) {
  return position % walk->positions < walk->fixed;
}

/* One stream a text and block. */
static struct random_stream *open_streams(struct tape *tape, const struct walk *walk,
                                          const char *purpose) {
  struct random_stream *streams = arena_take(tape->records, (size_t)walk->count * sizeof *streams);
  for (int64_t i = 0; i < walk->count; i++)
    streams[i] = random_open(walk->request->seed, purpose, (uint64_t)(walk->request->first + i),
                             walk->block);
  return streams;
}

/* y = L eta, eta keyed by the text's index. */
static void start(const struct flow *flow, struct tape *tape, struct walk *walk) {
  const struct cfm *cfm = flow->state;
  const int64_t row = walk->positions * walk->width;
  const struct random_stream *streams = open_streams(tape, walk, "cfm.sample.noise");
  for (int64_t i = 0; walk->y && i < walk->count; i++)
    random_fill_normal(walk->y + i * row, row, streams[i], 0);
  struct value *eta = tape_input(tape, walk->y, walk->count * walk->positions, walk->width);
  tape_output(tape, walk->y, linear_forward(tape, eta, cfm->factor, NULL));
}

/* Puts the settled tokens' rows of the table into the state. */
static void pin(const struct flow *flow, struct tape *tape, struct walk *walk) {
  const struct cfm *cfm = flow->state;
  const int64_t fixed = walk->fixed, d = walk->width, T = walk->positions;
  for (int64_t i = 0; i < walk->count * T; i++) walk->clean[i] = is_fixed(walk, i) ? 1 : 0;
  if (fixed == 0) return;
  int32_t *ids = arena_take(tape->records, (size_t)(walk->count * fixed) * sizeof *ids);
  for (int64_t i = 0; i < walk->count * fixed; i++)
    ids[i] = walk->tokens[i / fixed * T + i % fixed];
  tape_output(
      tape, walk->mean,
      vocab_embedding_forward(tape, flow->vocab, ids, walk->count * fixed, cfm->model.table));
  for (int64_t i = 0; walk->y && i < walk->count; i++)
    for (int64_t j = 0; j < fixed * d; j++) walk->y[i * T * d + j] = walk->mean[i * fixed * d + j];
}

/* y = ((1 - b) y + (b - a) mean) / (1 - a) where tokens are settled, or where they are not. */
static void advance(const struct walk *walk, bool settled, float *y, const float *mean, double a,
                    double b) {
  const int64_t n = walk->count * walk->positions, d = walk->width;
  for (int64_t i = 0; y && i < n; i++)
    for (int64_t c = i * d; is_fixed(walk, i) == settled && c < (i + 1) * d; c++)
      y[c] = (float)(((1 - b) * (double)y[c] + (b - a) * (double)mean[c]) / (1 - a));
}

/* A base is only known on the diagonal of times; there the same step is Euler's. */
static bool takes_maps(const struct flow *flow, const struct walk *walk) {
  const enum cfm_sampler_choice sampler = walk->request->options->cfm_sampler;
  return sampler == CFM_SAMPLER_AUTO ? flow->jumps : sampler == CFM_SAMPLER_MAP;
}

/* Hidden states of the network at `state`, or of a weaker one: that which sees `dropout` less. */
static struct value *call_network(const struct flow *flow, struct tape *tape, struct walk *walk,
                                  const float *state, double a, double b, double dropout) {
  const struct cfm *cfm = flow->state;
  for (int64_t i = 0; i < walk->count; i++) {
    walk->from[i] = a;
    walk->to[i] = takes_maps(flow, walk) ? b : a;
  }
  struct value *y = tape_input(tape, state, walk->count * walk->positions, walk->width);
  if (dropout > 0) {
    tape->training = true;
    y = dropout_forward(tape, y, dropout, open_streams(tape, walk, "cfm.sample.weak"),
                        walk->positions);
    tape->training = false;
  }
  const struct cfm_times times = {
      .from = walk->from, .to = walk->to, .clean = state == walk->free ? NULL : walk->clean};
  return cfm_hidden(tape, &cfm->model, y, &times, walk->count, walk->positions);
}

/* mean = weak + guidance (mean - weak). */
static void lead(const struct walk *walk, double guidance) {
  const int64_t count = walk->count * walk->positions * walk->width;
  for (int64_t i = 0; walk->mean && i < count; i++)
    walk->mean[i] =
        (float)((double)walk->weak[i] + guidance * ((double)walk->mean[i] - (double)walk->weak[i]));
}

static void find_weak(const struct flow *flow, struct tape *tape, struct walk *walk,
                      const struct head *head, struct value *hidden) {
  const struct cfm *cfm = flow->state;
  tape_output(tape, walk->weak, head_expectation(tape, hidden, head, cfm->model.table));
}

/* Away from what a network would do that sees less of the state. */
static void guide(const struct flow *flow, struct tape *tape, struct walk *walk,
                  const struct head *head, double a, double b) {
  const struct options *options = walk->request->options;
  if (options->cfm_guidance == 1) return;
  find_weak(flow, tape, walk, head,
            call_network(flow, tape, walk, walk->y, a, b, options->cfm_guidance_dropout));
  lead(walk, options->cfm_guidance);
}

/* Away from what the network would do had nothing been given. */
static void guide_by_prefix(const struct flow *flow, struct tape *tape, struct walk *walk,
                            const struct head *head, double a, double b) {
  const int64_t n = walk->count * walk->positions, d = walk->width;
  if (walk->request->options->cfm_prefix_guidance == 1 || walk->fixed == 0) return;
  for (int64_t i = 0; walk->free && i < n; i++)
    if (!is_fixed(walk, i)) memcpy(walk->free + i * d, walk->y + i * d, (size_t)d * sizeof(float));
  find_weak(flow, tape, walk, head, call_network(flow, tape, walk, walk->free, a, b, 0));
  advance(walk, true, walk->free, walk->weak, a, b);
  lead(walk, walk->request->options->cfm_prefix_guidance);
}

/* Tokens of all positions that are not settled. */
static void draw_tokens(struct tape *tape, const struct walk *walk, struct value *hidden,
                        const struct head *head, struct head_law law, int32_t *tokens) {
  const int64_t n = walk->count * walk->positions;
  int32_t *drawn = arena_take_zeroed(tape->records, (size_t)n * sizeof *drawn);
  head_sample(tape, drawn, hidden, head, law, open_streams(tape, walk, "cfm.sample.token"),
              walk->positions);
  for (int64_t i = 0; i < n; i++) tokens[i] = is_fixed(walk, i) ? walk->tokens[i] : drawn[i];
}

/* Shows whoever wants to look what the network makes of the state. */
static void show(struct tape *tape, const struct walk *walk, struct value *hidden,
                 const struct head *head, int64_t step, double alpha) {
  const struct flow_request *request = walk->request;
  if (!request->observe) return;
  const int64_t n = walk->count * walk->positions;
  int32_t *tokens = arena_take(tape->records, (size_t)n * sizeof *tokens);
  draw_tokens(tape, walk, hidden, head, (struct head_law){0, 1}, tokens);
  if (!arena_is_measuring(tape->arena))
    request->observe(request->observer, walk->block * request->nfe + step, alpha, tokens);
}

static void take_step(const struct flow *flow, struct tape *tape, struct walk *walk, int64_t k) {
  const struct cfm *cfm = flow->state;
  const struct options *options = walk->request->options;
  const struct head head = {.vocab = flow->vocab, .w = cfm->model.output};
  const double steps = (double)walk->request->nfe;
  const double a = cfm_schedule_alpha(&cfm->schedule, (double)k / steps);
  const double b = cfm_schedule_alpha(&cfm->schedule, (double)(k + 1) / steps);
  struct value *hidden = call_network(flow, tape, walk, walk->y, a, b, 0);
  show(tape, walk, hidden, &head, k, a);
  if (k + 1 == walk->request->nfe) {
    const struct head_law law = {options->temperature, options->top_p};
    draw_tokens(tape, walk, hidden, &head, law, walk->tokens);
    return;
  }
  tape_output(tape, walk->mean, head_expectation(tape, hidden, &head, cfm->model.table));
  guide(flow, tape, walk, &head, a, b);
  guide_by_prefix(flow, tape, walk, &head, a, b);
  advance(walk, false, walk->y, walk->mean, a, b);
}

static bool guides(const struct flow_request *request) {
  return request->options->cfm_guidance != 1 || request->options->cfm_prefix_guidance != 1;
}

static struct walk open_walk(const struct flow *flow, struct tape *tape,
                             const struct flow_request *request, int32_t *tokens) {
  const struct cfm *cfm = flow->state;
  const size_t count = (size_t)request->count;
  const size_t bytes = count * (size_t)(request->positions * cfm->width) * sizeof(float);
  return (struct walk){
      .count = request->count,
      .positions = request->positions,
      .width = cfm->width,
      .y = tape_save(tape, bytes),
      .mean = tape_save(tape, bytes),
      .weak = guides(request) ? tape_save(tape, bytes) : NULL,
      .free = guides(request) ? tape_save(tape, bytes) : NULL,
      .from = arena_take(tape->records, count * sizeof(double)),
      .to = arena_take(tape->records, count * sizeof(double)),
      .clean = arena_take_zeroed(tape->records, count * (size_t)request->positions * sizeof(float)),
      .request = request,
      .tokens = tokens,
      .fixed = request->prefix_length};
}

static void copy_prefix(const struct walk *walk) {
  const int64_t given = walk->request->prefix_length;
  for (int64_t i = 0; i < walk->count * given; i++)
    walk->tokens[i / given * walk->positions + i % given] = walk->request->prefix[i];
}

static void draw_block(struct flow *flow, struct tape *tape, struct walk *walk) {
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  start(flow, tape, walk);
  const int64_t count = walk->count * walk->positions * walk->width;
  if (walk->free) memcpy(walk->free, walk->y, (size_t)count * sizeof(float));
  pin(flow, tape, walk);
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
  for (int64_t k = 0; k < walk->request->nfe; k++) {
    take_step(flow, tape, walk, k);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
}

enum status cfm_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens) {
  const int64_t T = request->positions, block = request->options->cfm_block;
  struct walk walk = open_walk(flow, tape, request, tokens);
  copy_prefix(&walk);
  while (walk.fixed < T) {
    draw_block(flow, tape, &walk);
    walk.fixed = block > 0 && walk.fixed + block < T ? walk.fixed + block : T;
    walk.block++;
  }
  return tape->status;
}
