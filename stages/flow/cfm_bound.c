/* The likelihood bound of categorical flows: one network call for each place of the grid. */
#include "stages/flow/cfm_bound.h"

#include <math.h>

#include "sharding/dense.h"
#include "stages/flow/cfm_state.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_noise.h"
#include "stages/model/layers/vocab_embedding.h"

/* Of the grid by information: the share of right decisions at its end. */
static const double DECIDED = 0.95;

static double ratio_of(double alpha) {
  return alpha * alpha / ((1 - alpha) * (1 - alpha));
}

static double spacing(const double from[2], const double to[2]) {
  return sqrt(fmax(0, to[0] - from[0]) * fmax(0, to[1] - from[1]));
}

/* Walks along the table; without `ratio` for the length of the way alone. */
static double walk(double *ratio, const struct cfm_schedule *schedule, int64_t steps,
                   double length) {
  double before[2] = {0, 0}, gone = 0;
  int64_t k = 1;
  bool on = true;
  for (int i = 1; on && i < CFM_SCHEDULE_POINTS; i++) {
    double here[2], alpha;
    here[0] = cfm_schedule_place(schedule, i, &alpha);
    here[1] = ratio_of(alpha);
    on = here[0] < DECIDED;
    const double piece = spacing(before, here);
    for (; ratio && k < steps && gone + piece >= length * (double)k / (double)steps; k++)
      ratio[k] =
          before[1] + (here[1] - before[1]) * (length * (double)k / (double)steps - gone) / piece;
    gone += piece;
    before[0] = here[0];
    before[1] = here[1];
  }
  if (ratio) ratio[steps] = before[1];
  return gone;
}

void cfm_bound_grid(double *ratio, const struct cfm_schedule *schedule, int64_t steps,
                    bool information) {
  const double end = 1 - 0.5 / (double)steps;
  ratio[0] = 0;
  if (information) {
    walk(ratio, schedule, steps, walk(NULL, schedule, steps, 0));
    return;
  }
  for (int64_t k = 1; k <= steps; k++)
    ratio[k] = ratio_of(cfm_schedule_alpha(schedule, end * (double)k / (double)steps));
}

double cfm_bound_alpha(double ratio) {
  return sqrt(ratio) / (1 + sqrt(ratio));
}

double cfm_bound_gaussian(double gap, double distance) {
  return gap / 2 * distance;
}

double cfm_bound_jensen(double gap, double probability) {
  return -log(probability + (1 - probability) * exp(-gap));
}

/* One place of the grid for all rows, and what the network makes of the state there. */
struct place {
  const struct flow *flow;
  const struct flow_bound_request *request;
  struct flow_batch batch;
  int64_t k;
  double gap;     /* by which R grows in the step; 0 at the end of the grid */
  double *sums;   /* [count][FLOW_BOUNDS] nats of the rows' tokens */
  int64_t tokens; /* count * positions */
  double *nll, *log_sum_exp, *logit, *squares; /* [tokens] */
};

static bool covered(const struct place *place, int64_t i) {
  const int64_t T = place->batch.positions, row = i / T;
  const int64_t prefix = place->request->prefix ? place->request->prefix[row] : 0;
  return i % T >= prefix && i % T < place->batch.lengths[row];
}

static void add(const struct place *place, int64_t token, enum flow_bound form, double nats) {
  if (covered(place, token))
    place->sums[token / place->batch.positions * FLOW_BOUNDS + form] += nats;
}

/* Where R is in the step: at its beginning, or anywhere, uniformly, for the continuous bound. */
static double draw_ratio(const struct place *place, int64_t row, double from) {
  const struct random_stream stream = random_open(
      place->flow->seed, "cfm.bound.time", (uint64_t)place->batch.samples[row], place->batch.step);
  return place->request->times == BOUND_TIMES_CONTINUOUS
             ? from + place->gap * random_uniform(stream, 0)
             : from;
}

static struct cfm_draw draw_at(struct tape *tape, const struct place *place, double ratio) {
  const size_t count = (size_t)place->batch.count;
  struct cfm_draw draw = {
      .rows = arena_take_zeroed(tape->records, count * sizeof *draw.rows),
      .from = arena_take(tape->records, count * sizeof(double)),
      .to = arena_take(tape->records, count * sizeof(double)),
      .clean = arena_take_zeroed(tape->records, (size_t)place->tokens * sizeof(float))};
  for (int64_t row = 0; row < place->batch.count; row++) {
    const double alpha = cfm_bound_alpha(draw_ratio(place, row, ratio));
    draw.from[row] = draw.to[row] = alpha;
    draw.rows[row].prefix = place->request->prefix ? place->request->prefix[row] : 0;
    for (int64_t i = 0; i < draw.rows[row].prefix; i++)
      draw.clean[row * place->batch.positions + i] = 1;
  }
  return draw;
}

/* The forms that need psi of the token and the squares alone. */
static void add_plain(const struct place *place) {
  for (int64_t i = 0; i < place->tokens; i++) {
    const double probability = exp(place->logit[i] - place->log_sum_exp[i]);
    const double distance = place->squares[i] - 2 * probability + 1;
    add(place, i, BOUND_GAUSSIAN, cfm_bound_gaussian(place->gap, distance));
    add(place, i, BOUND_JENSEN, cfm_bound_jensen(place->gap, probability));
  }
}

/* (x - psi)' E G^-1 E' (x - psi): the distance as the network's input shows it. */
static void add_embedded(struct tape *tape, const struct place *place, struct value *hidden,
                         const struct head *head) {
  const struct cfm *cfm = place->flow->state;
  const int64_t d = cfm->width;
  const size_t bytes = (size_t)(place->tokens * d) * sizeof(float);
  struct value *mean = head_expectation(tape, hidden, head, cfm->model.table);
  struct value *clean = vocab_embedding_forward(tape, place->flow->vocab, place->batch.tokens,
                                                place->tokens, cfm->model.table);
  float *expected = tape_save(tape, bytes), *found = tape_save(tape, bytes);
  double *difference = tape_save(tape, (size_t)d * sizeof *difference);
  tape_output(tape, expected, clean);
  tape_output(tape, found, mean);
  for (int64_t i = 0; expected && i < place->tokens; i++) {
    double distance = 0;
    for (int64_t c = 0; c < d; c++)
      difference[c] = (double)expected[i * d + c] - (double)found[i * d + c];
    dense_solve_lower(cfm->noise.exact, difference, d, 1);
    for (int64_t c = 0; c < d; c++) distance += difference[c] * difference[c];
    add(place, i, BOUND_EMBEDDED, cfm_bound_gaussian(place->gap, distance));
  }
}

/* The KL to the mixture p = sum_j psi_j q(. | e_j) itself, from one draw of noise in R^V:
 * -log sum_j psi_j exp(sqrt(gap) (xi_j - xi_x) - gap [j != x]). */
static void add_mixture(struct tape *tape, const struct place *place, struct value *hidden,
                        const struct head *head) {
  double *noisy = arena_take_zeroed(tape->records, (size_t)place->tokens * sizeof *noisy);
  struct random_stream *streams =
      arena_take(tape->records, (size_t)place->batch.count * sizeof *streams);
  for (int64_t row = 0; row < place->batch.count; row++)
    streams[row] = random_open(place->flow->seed, "cfm.bound.mixture",
                               (uint64_t)place->batch.samples[row], place->batch.step);
  head_noise_log_sum_exp(tape, noisy, hidden, head,
                         &(struct head_noise){.scale = sqrt(place->gap),
                                              .advantage = place->gap,
                                              .streams = streams,
                                              .positions = place->batch.positions});
  for (int64_t i = 0; i < place->tokens; i++)
    add(place, i, BOUND_MIXTURE, place->log_sum_exp[i] + place->gap - noisy[i]);
}

static void measure_place(struct tape *tape, struct place *place, double ratio) {
  const struct flow *flow = place->flow;
  const struct cfm *cfm = flow->state;
  const struct cfm_draw draw = draw_at(tape, place, ratio);
  const struct head head = {
      .vocab = flow->vocab, .w = cfm->model.output, .targets = place->batch.tokens};
  struct head_result result = {.loss = place->nll,
                               .log_sum_exp = place->log_sum_exp,
                               .target_logit = place->logit,
                               .square_sum = place->squares};
  struct value *y = cfm_noisy(flow, tape, &place->batch, &draw);
  struct value *hidden =
      cfm_hidden(tape, &cfm->model, y,
                 &(struct cfm_times){.from = draw.from, .to = draw.to, .clean = draw.clean},
                 place->batch.count, place->batch.positions);
  head_forward(tape, &result, hidden, &head);
  if (place->k == place->request->steps) { /* the text itself, from the end of the grid */
    for (int64_t i = 0; i < place->tokens; i++)
      for (int form = 0; form < FLOW_BOUNDS; form++)
        add(place, i, (enum flow_bound)form, place->nll[i]);
    return;
  }
  add_plain(place);
  add_embedded(tape, place, hidden, &head);
  if (place->request->mixture) add_mixture(tape, place, hidden, &head);
}

static struct place open_place(const struct flow *flow, struct tape *tape,
                               const struct flow_bound_request *request) {
  const int64_t count = request->batch->count, tokens = count * request->batch->positions;
  const size_t bytes = (size_t)tokens * sizeof(double);
  return (struct place){
      .flow = flow,
      .request = request,
      .batch = *request->batch,
      .sums = arena_take(tape->records, (size_t)(count * FLOW_BOUNDS) * sizeof(double)),
      .tokens = tokens,
      .nll = arena_take_zeroed(tape->records, bytes),
      .log_sum_exp = arena_take_zeroed(tape->records, bytes),
      .logit = arena_take_zeroed(tape->records, bytes),
      .squares = arena_take_zeroed(tape->records, bytes)};
}

/* terms[count][FLOW_BOUNDS][steps + 1] += the place's share. */
static void keep(const struct place *place, double *terms) {
  const int64_t places = place->request->steps + 1;
  for (int64_t i = 0; i < place->batch.count * FLOW_BOUNDS; i++)
    terms[i * places + place->k] += place->sums[i] / (double)place->request->draws;
}

enum status cfm_bound(struct flow *flow, struct tape *tape,
                      const struct flow_bound_request *request, double *terms) {
  const struct cfm *cfm = flow->state;
  struct place place = open_place(flow, tape, request);
  const int64_t steps = request->steps, places = steps + 1;
  double *ratio = arena_take(tape->records, (size_t)places * sizeof *ratio);
  cfm_bound_grid(ratio, &cfm->schedule, steps, request->times == BOUND_TIMES_INFORMATION);
  for (int64_t i = 0; i < place.batch.count * FLOW_BOUNDS * places; i++) terms[i] = 0;
  for (int64_t turn = 0; turn < request->draws * places; turn++) {
    const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
    place.k = turn % places;
    place.batch.step = (uint32_t)turn;
    place.batch.validation = true;
    place.gap = place.k < steps ? ratio[place.k + 1] - ratio[place.k] : 0;
    for (int64_t i = 0; i < place.batch.count * FLOW_BOUNDS; i++) place.sums[i] = 0;
    measure_place(tape, &place, ratio[place.k]);
    keep(&place, terms);
    arena_reset(tape->arena, mark);
    arena_reset(tape->records, records);
  }
  return tape->status;
}
