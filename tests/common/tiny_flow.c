#include "tests/common/tiny_flow.h"

#include "pipeline/base/random.h"
#include "tests/common/tap.h"

enum { DECLARATION_BYTES = 1 << 20, WORK_BYTES = 64 << 20 };

void tiny_flow_options(struct tiny_flow *tiny) {
  *tiny = (struct tiny_flow){0};
  options_defaults(&tiny->options);
  options_defaults(&tiny->distill);
  tiny->options.width = 8;
  tiny->options.depth = 2;
  tiny->options.heads = 2;
  tiny->options.elf_bottleneck = 3;
}

static void fill_batch(struct tiny_flow *tiny) {
  const struct random_stream stream = random_open(5, "tiny", 0, 0);
  for (int64_t i = 0; i < TINY_ROWS * TINY_POSITIONS; i++)
    tiny->tokens[i] = (int32_t)random_below(stream, (uint64_t)i, TINY_VOCABULARY);
  random_fill_normal(tiny->embeddings, TINY_ROWS * TINY_POSITIONS * TINY_LATENT, stream, 1000);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    tiny->lengths[row] = (int32_t)(TINY_POSITIONS - row);
    tiny->samples[row] = 70 + 3 * row;
    tiny->strata[row] = row;
  }
  tiny->batch = (struct flow_batch){.count = TINY_ROWS,
                                    .positions = TINY_POSITIONS,
                                    .tokens = tiny->tokens,
                                    .lengths = tiny->lengths,
                                    .embeddings = tiny->embeddings,
                                    .samples = tiny->samples,
                                    .strata = tiny->strata,
                                    .stratum_count = TINY_ROWS,
                                    .step = 9};
}

void tiny_flow_open(struct tiny_flow *tiny, const struct flow_kind *kind) {
  assert_ok(arena_init(&tiny->declarations, "declarations", DECLARATION_BYTES));
  assert_ok(arena_init(&tiny->state, "state", DECLARATION_BYTES));
  assert_ok(arena_init(&tiny->values, "values", WORK_BYTES));
  assert_ok(arena_init(&tiny->records, "records", WORK_BYTES));
  assert_ok(vocab_init(&tiny->vocab, NULL, TINY_VOCABULARY, 4));
  assert_ok(kernels_open(&tiny->kernels, "reference", DTYPE_F64));
  params_init(&tiny->params, &tiny->declarations);
  params_init(&tiny->teacher, &tiny->declarations);
  tiny->flow = (struct flow){.kind = kind,
                             .options = &tiny->options,
                             .vocab = &tiny->vocab,
                             .kernels = &tiny->kernels,
                             .params = &tiny->params,
                             .distill = tiny->distills ? &tiny->distill : NULL,
                             .teacher = tiny->distills ? &tiny->teacher : NULL,
                             .positions = TINY_POSITIONS,
                             .embedding_width = TINY_LATENT,
                             .seed = 3,
                             .pad = 0,
                             .bos = -1,
                             .eos = 1};
  assert_ok(kind->init(&tiny->flow, &tiny->state));
  fill_batch(tiny);
}

static void randomise(const struct param *param) {
  const struct random_stream stream = random_open(8, param->name, 0, 0);
  double *data = param->data;
  for (int64_t i = 0; i < param->row_count * param->cols; i++)
    data[i] += 0.3 * random_normal(stream, (uint64_t)(param->row_begin * param->cols + i));
}

static void bind(struct params *params, struct arena *arena, bool with_gradients) {
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(params, &measuring, DTYPE_F64, with_gradients);
  assert_ok(arena_init(arena, "weights", measuring.peak));
  params_bind(params, arena, DTYPE_F64, with_gradients);
  params_initialise(params, DTYPE_F64, 4);
  for (int64_t i = 0; i < params->count; i++) randomise(params->items[i]);
}

void tiny_flow_bind_teacher(struct tiny_flow *tiny) {
  for (int64_t i = 0; i < tiny->teacher.count; i++) tiny->teacher.items[i]->frozen = true;
  bind(&tiny->teacher, &tiny->taught, false);
}

void tiny_flow_bind(struct tiny_flow *tiny) {
  bind(&tiny->params, &tiny->weights, true);
  if (tiny->distills) tiny_flow_bind_teacher(tiny);
}

struct flow_losses tiny_flow_loss(struct tiny_flow *tiny, const struct flow_batch *batch,
                                  const double *total, bool backward) {
  struct tape tape;
  struct flow_losses losses;
  const size_t mark = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = backward;
  assert_ok(tiny->flow.kind->loss(&tiny->flow, &tape, batch, total, &losses));
  if (backward) assert_ok(tape_backward(&tape, NULL, NULL));
  arena_reset(&tiny->values, mark);
  arena_reset(&tiny->records, records);
  return losses;
}

struct flow_batch tiny_flow_row(const struct tiny_flow *tiny, int64_t row) {
  struct flow_batch batch = tiny->batch;
  batch.count = 1;
  batch.tokens += row * TINY_POSITIONS;
  batch.lengths += row;
  batch.embeddings += row * TINY_POSITIONS * TINY_LATENT;
  batch.samples += row;
  batch.strata += row;
  return batch;
}

void tiny_flow_sample(struct tiny_flow *tiny, int32_t *tokens, int64_t first, int64_t count,
                      int64_t calls) {
  struct tape tape;
  const size_t mark = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  const struct flow_request request = {.count = count,
                                       .positions = TINY_POSITIONS,
                                       .first = first,
                                       .seed = 21,
                                       .nfe = calls,
                                       .options = &tiny->options};
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = tape.training = false;
  assert_ok(tiny->flow.kind->sample(&tiny->flow, &tape, &request, tokens));
  arena_reset(&tiny->values, mark);
  arena_reset(&tiny->records, records);
}

void tiny_flow_close(struct tiny_flow *tiny) {
  arena_free(&tiny->taught);
  arena_free(&tiny->weights);
  arena_free(&tiny->records);
  arena_free(&tiny->values);
  arena_free(&tiny->state);
  arena_free(&tiny->declarations);
}
