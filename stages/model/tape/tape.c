#include "stages/model/tape/tape.h"

#include <assert.h>

#include "stages/model/tape/tangent.h"

void tape_init(struct tape *tape, const struct kernels *kernels, struct arena *arena,
               struct arena *records) {
  assert(!arena_is_measuring(records));
  *tape = (struct tape){
      .kernels = kernels, .arena = arena, .records = records, .recording = true, .training = true};
}

static size_t data_bytes(const struct tape *tape, const struct value *value) {
  return (size_t)(value->rows * value->stride) * dtype_bytes(tape->kernels->element);
}

struct value *tape_constant(struct tape *tape, int64_t rows, int64_t cols) {
  assert(rows >= 0 && cols > 0);
  struct value *value = arena_take_zeroed(tape->records, sizeof(*value));
  *value = (struct value){.rows = rows, .cols = cols, .stride = cols};
  value->data = arena_take(tape->arena, data_bytes(tape, value));
  return value;
}

struct value *tape_value(struct tape *tape, int64_t rows, int64_t cols) {
  struct value *value = tape_constant(tape, rows, cols);
  value->needs_gradient = tape->recording;
  return value;
}

struct value *tape_input(struct tape *tape, const float *source, int64_t rows, int64_t cols) {
  struct value *value = tape_constant(tape, rows, cols);
  tape->kernels->convert_from_float(value->data, source, rows * cols);
  return value;
}

void tape_output(struct tape *tape, float *target, const struct value *value) {
  assert(value->stride == value->cols);
  tape->kernels->convert_to_float(target, value->data, value->rows * value->cols);
}

struct value *tape_detach(struct tape *tape, const struct value *value) {
  struct value *copy = arena_take_zeroed(tape->records, sizeof(*copy));
  *copy = (struct value){
      .data = value->data, .rows = value->rows, .cols = value->cols, .stride = value->stride};
  return copy;
}

static void *at_column(const struct tape *tape, void *base, int64_t column) {
  return base ? (unsigned char *)base + (size_t)column * dtype_bytes(tape->kernels->element) : NULL;
}

struct value *tape_columns(struct tape *tape, struct value *value, int64_t first, int64_t cols) {
  assert(first >= 0 && cols > 0 && first + cols <= value->cols);
  struct value *view = tape_detach(tape, value);
  view->data = at_column(tape, value->data, first);
  view->cols = cols;
  view->needs_gradient = value->needs_gradient;
  view->parent = value;
  view->column = first;
  value->has_views = true;
  return view;
}

void *tape_save(struct tape *tape, size_t bytes) {
  return arena_take(tape->arena, bytes);
}

static void count_use(struct param *param) {
  param->uses++;
  param->pending++;
}

static void poll(struct tape *tape) {
  if (!tape->helper || !tape->helper->poll || tape->status != STATUS_OK) return;
  tape->status = tape->helper->poll(tape->helper->context);
}

void *tape_record(struct tape *tape, const struct record_kind *kind, size_t bytes,
                  struct param *const *params, int count) {
  assert(count <= TAPE_RECORD_PARAMS && bytes >= sizeof(struct record));
  const bool counts = (tape->recording && !tape->replaying) || tape->counting;
  for (int i = 0; counts && i < count; i++)
    if (params[i]) count_use(params[i]);
  poll(tape);
  if (!tape->recording) return NULL;
  struct record *record = arena_take_zeroed(tape->records, bytes);
  record->kind = kind;
  record->previous = tape->last;
  for (int i = 0; i < count; i++) record->params[i] = params[i];
  tape->last = record;
  return record;
}

void *tape_gradient(struct tape *tape, struct value *value, bool *add) {
  assert(value->needs_gradient);
  *add = value->reached || value->has_views || value->parent;
  if (value->reached) return value->gradient;
  value->reached = true;
  if (value->parent) {
    bool held;
    value->gradient = at_column(tape, tape_gradient(tape, value->parent, &held), value->column);
    return value->gradient;
  }
  value->gradient = arena_take(tape->arena, data_bytes(tape, value));
  if (value->has_views) tape->kernels->fill_zero(value->gradient, value->rows * value->stride);
  return value->gradient;
}

static void finish_params(struct tape *tape, const struct record *record) {
  for (int i = 0; i < TAPE_RECORD_PARAMS; i++) {
    struct param *param = record->params[i];
    if (!param || --param->pending > 0) continue;
    param->uses = 0;
    if (tape->ready) tape->ready(tape->ready_context, param);
  }
}

static void open_params(struct tape *tape, const struct record *record) {
  for (int i = 0; tape->open && i < TAPE_RECORD_PARAMS; i++)
    if (record->params[i]) tape->open(tape->ready_context, record->params[i]);
}

static void run_backward(struct tape *tape) {
  tape->recording = false;
  for (struct record *record = tape->last; record; record = record->previous) {
    open_params(tape, record);
    if (tape->status == STATUS_OK) record->kind->backward(tape, record);
    finish_params(tape, record);
    poll(tape);
  }
  tape->last = NULL;
  tape->recording = true;
}

enum status tape_backward(struct tape *tape, tape_ready *ready, void *context) {
  tape->ready = ready;
  tape->ready_context = context;
  run_backward(tape);
  return tape->status;
}

bool tape_pause(struct tape *tape) {
  const bool was_recording = tape->recording;
  tape->recording = false;
  return was_recording;
}

void tape_resume(struct tape *tape, bool was_recording) {
  tape->recording = was_recording;
}

struct checkpoint_record {
  struct record record;
  tape_region *region;
  const void *arguments;
  struct value *input, *output;
  struct value **others;
  int other_count;
};

/* Gradients that outlive the region are taken before it, so that its memory can be given back. */
static void open_gradient(struct tape *tape, struct value *value) {
  bool add;
  if (!value->needs_gradient) return;
  void *gradient = tape_gradient(tape, value, &add);
  if (!add) tape->kernels->fill_zero(gradient, value->rows * value->stride);
}

static void checkpoint_backward(struct tape *tape, const struct record *record) {
  const struct checkpoint_record *kept = (const struct checkpoint_record *)record;
  if (!kept->output->reached) return;
  open_gradient(tape, kept->input);
  for (int i = 0; i < kept->other_count; i++) open_gradient(tape, kept->others[i]);
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  struct tape inner = *tape;
  inner.last = NULL;
  inner.recording = inner.replaying = true;
  struct value *again = kept->region(&inner, kept->arguments, kept->input);
  again->reached = true;
  again->gradient = kept->output->gradient;
  run_backward(&inner);
  tape->status = inner.status;
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
}

static const struct record_kind checkpoint_kind = {"checkpoint", checkpoint_backward, NULL};

/* Copies `bytes` at `source` to where records live. */
static void *keep(struct tape *tape, const void *source, size_t bytes) {
  unsigned char *copy = arena_take(tape->records, bytes ? bytes : 1);
  for (size_t i = 0; i < bytes; i++) copy[i] = ((const unsigned char *)source)[i];
  return copy;
}

static void run_region(struct tape *tape, tape_region *region, const void *arguments,
                       struct value *input, struct value *output) {
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  struct tape inner = *tape;
  inner.counting = tape->counting || (tape->recording && !tape->replaying);
  inner.recording = false;
  const struct value *result = region(&inner, arguments, input);
  assert(result->rows == output->rows && result->cols == output->cols);
  tape->kernels->copy(output->data, result->data, output->rows * output->cols);
  tape->status = inner.status;
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
}

/* As run_region, with the tangent of the output, which is zero where nothing moves. */
static void move_region(struct tape *tape, tape_region *region, const void *arguments,
                        struct value *input, struct value *output) {
  void *tangent = tangent_open(tape, output);
  tangent_catch_up(tape);
  const size_t mark = arena_mark(tape->arena), records = arena_mark(tape->records);
  struct tape inner = *tape;
  inner.last = inner.moved = NULL;
  const struct value *result = region(&inner, arguments, input);
  tangent_catch_up(&inner);
  tape->kernels->copy(output->data, result->data, output->rows * output->cols);
  tape->kernels->copy(tangent, tangent_or_zeros(&inner, result), output->rows * output->cols);
  tape->status = inner.status;
  arena_reset(tape->arena, mark);
  arena_reset(tape->records, records);
}

struct value *tape_checkpoint(struct tape *tape, tape_region *region, const void *arguments,
                              size_t bytes, struct value *input, struct value *const *others,
                              int other_count) {
  struct value *output = tape_value(tape, input->rows, input->cols);
  if (tape->moving) {
    move_region(tape, region, arguments, input, output);
    return output;
  }
  run_region(tape, region, arguments, input, output);
  struct checkpoint_record *kept = tape_record(tape, &checkpoint_kind, sizeof(*kept), NULL, 0);
  if (!kept) return output;
  kept->region = region;
  kept->arguments = keep(tape, arguments, bytes);
  kept->input = input;
  kept->output = output;
  kept->others = keep(tape, others, (size_t)other_count * sizeof(struct value *));
  kept->other_count = other_count;
  return output;
}

bool tape_fetches(const struct tape *tape) {
  return tape->helper && tape->helper->enter;
}

static void enter(struct tape *tape, const struct param_layer *weights, bool backward) {
  if (tape->status == STATUS_OK)
    tape->status = tape->helper->enter(tape->helper->context, weights, backward);
}

/* Stands at an end of a layer in the list of records. */
struct border_record {
  struct record record;
  const struct param_layer *weights;
};

static void enter_backward(struct tape *tape, const struct record *record) {
  enter(tape, ((const struct border_record *)record)->weights, true);
}

static void leave_backward(struct tape *tape, const struct record *record) {
  tape->helper->leave(tape->helper->context, ((const struct border_record *)record)->weights);
}

static const struct record_kind begin_kind = {"layer begins", leave_backward, NULL};
static const struct record_kind end_kind = {"layer ends", enter_backward, NULL};

static void mark_border(struct tape *tape, const struct record_kind *kind,
                        const struct param_layer *weights) {
  if (tape->moving) return; /* there is no way back */
  struct border_record *border = tape_record(tape, kind, sizeof(*border), NULL, 0);
  if (border) border->weights = weights;
}

/* A pass that nothing goes back through keeps what leaves a layer, and not what is in it. */
static struct value *run_layer(struct tape *tape, const struct tape_layer *layer,
                               struct value *input) {
  if (!layer->recompute && tape->recording) return layer->region(tape, layer->arguments, input);
  return tape_checkpoint(tape, layer->region, layer->arguments, layer->bytes, input, layer->others,
                         layer->other_count);
}

struct value *tape_layer(struct tape *tape, const struct tape_layer *layer, struct value *input) {
  const bool fetches = tape_fetches(tape);
  if (fetches) enter(tape, layer->weights, false);
  if (fetches) mark_border(tape, &begin_kind, layer->weights);
  struct value *output = run_layer(tape, layer, input);
  if (tape->moving) tangent_catch_up(tape); /* while the weights are here */
  if (fetches) mark_border(tape, &end_kind, layer->weights);
  if (fetches) tape->helper->leave(tape->helper->context, layer->weights);
  return output;
}
