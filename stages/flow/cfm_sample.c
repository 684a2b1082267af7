/* Sampling categorical flow maps: N steps from noise to text, carrying d numbers a position. */
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/vocab_embedding.h"

/* The state of all texts between steps. */
struct walk {
  int64_t count, positions, width;
  float *y;          /* [count * positions, width] */
  float *mean;       /* the same shape: scratch */
  double *from, *to; /* [count] */
  const struct flow_request *request;
};

static bool in_prefix(const struct walk *walk, int64_t position) {
  return position % walk->positions < walk->request->prefix_length;
}

/* y = L eta, eta keyed by the text's index. */
static void start(const struct flow *flow, struct tape *tape, struct walk *walk) {
  const struct cfm *cfm = flow->state;
  const int64_t row = walk->positions * walk->width;
  for (int64_t i = 0; walk->y && i < walk->count; i++) {
    const struct random_stream stream = random_open(walk->request->seed, "cfm.sample.noise",
                                                    (uint64_t)(walk->request->first + i), 0);
    random_fill_normal(walk->y + i * row, row, stream, 0);
  }
  struct value *eta = tape_input(tape, walk->y, walk->count * walk->positions, walk->width);
  tape_output(tape, walk->y, linear_forward(tape, eta, cfm->factor, NULL));
}

/* Puts the given tokens' rows of the table into the state. */
static void pin_prefix(const struct flow *flow, struct tape *tape, struct walk *walk) {
  const struct cfm *cfm = flow->state;
  const struct flow_request *request = walk->request;
  const int64_t given = request->prefix_length, d = walk->width;
  if (given == 0) return;
  struct value *rows = vocab_embedding_forward(tape, flow->vocab, request->prefix,
                                               walk->count * given, cfm->model.table);
  tape_output(tape, walk->mean, rows);
  for (int64_t i = 0; walk->y && i < walk->count; i++)
    for (int64_t j = 0; j < given * d; j++)
      walk->y[i * walk->positions * d + j] = walk->mean[i * given * d + j];
}

/* y = ((1 - b) y + (b - a) mean) / (1 - a) outside the prefix. */
static void advance(struct walk *walk, double a, double b) {
  const int64_t n = walk->count * walk->positions, d = walk->width;
  for (int64_t i = 0; walk->y && i < n; i++) {
    if (in_prefix(walk, i)) continue;
    for (int64_t c = i * d; c < (i + 1) * d; c++)
      walk->y[c] =
          (float)(((1 - b) * (double)walk->y[c] + (b - a) * (double)walk->mean[c]) / (1 - a));
  }
}

static struct value *call_network(const struct flow *flow, struct tape *tape, struct walk *walk,
                                  double a, double b) {
  const struct cfm *cfm = flow->state;
  for (int64_t i = 0; i < walk->count; i++) {
    walk->from[i] = a;
    walk->to[i] = flow->distill ? b : a; /* the base is only known on the diagonal */
  }
  struct value *y = tape_input(tape, walk->y, walk->count * walk->positions, walk->width);
  return cfm_hidden(tape, &cfm->model, y, walk->from, walk->to, walk->count, walk->positions);
}

static void draw_tokens(struct tape *tape, const struct walk *walk, struct value *hidden,
                        const struct head *head, int32_t *tokens) {
  const struct flow_request *request = walk->request;
  struct random_stream *streams = arena_take(tape->records, (size_t)walk->count * sizeof *streams);
  for (int64_t i = 0; i < walk->count; i++)
    streams[i] = random_open(request->seed, "cfm.sample.token", (uint64_t)(request->first + i), 0);
  head_sample(tape, tokens, hidden, head, request->options->temperature, streams, walk->positions);
  for (int64_t i = 0; i < walk->count; i++)
    for (int64_t j = 0; j < request->prefix_length; j++)
      tokens[i * walk->positions + j] = request->prefix[i * request->prefix_length + j];
}

static struct walk open_walk(const struct flow *flow, struct tape *tape,
                             const struct flow_request *request) {
  const struct cfm *cfm = flow->state;
  const size_t count = (size_t)request->count;
  const size_t bytes = count * (size_t)(request->positions * cfm->width) * sizeof(float);
  return (struct walk){.count = request->count,
                       .positions = request->positions,
                       .width = cfm->width,
                       .y = tape_save(tape, bytes),
                       .mean = tape_save(tape, bytes),
                       .from = arena_take(tape->records, count * sizeof(double)),
                       .to = arena_take(tape->records, count * sizeof(double)),
                       .request = request};
}

enum status cfm_sample(struct flow *flow, struct tape *tape, const struct flow_request *request,
                       int32_t *tokens) {
  const struct cfm *cfm = flow->state;
  const struct head head = {.vocab = flow->vocab, .w = cfm->model.output};
  struct walk walk = open_walk(flow, tape, request);
  start(flow, tape, &walk);
  pin_prefix(flow, tape, &walk);
  for (int64_t k = 0; k < request->nfe; k++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    const double steps = (double)request->nfe;
    const double a = cfm_schedule_alpha(&cfm->schedule, (double)k / steps);
    const double b = cfm_schedule_alpha(&cfm->schedule, (double)(k + 1) / steps);
    struct value *hidden = call_network(flow, tape, &walk, a, b);
    if (k + 1 == request->nfe) {
      draw_tokens(tape, &walk, hidden, &head, tokens);
    } else {
      tape_output(tape, walk.mean, head_expectation(tape, hidden, &head, cfm->model.table));
      advance(&walk, a, b);
    }
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
  return tape->status;
}
