#include "stages/flow/model.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "stages/flow/model_weights.h"

enum { DECLARATION_BYTES = 1 << 30 }; /* reserved, hardly touched */

enum status model_shape(const struct recipe_node **shape, const struct recipe *recipe,
                        const struct recipe_node *node) {
  *shape = node;
  if (node->kind != KIND_DISTILL) return STATUS_OK;
  TRY(recipe_upstream(shape, recipe, node, IN_PRETRAIN));
  CHECK(*shape, STATUS_MISMATCH,
        "%s: node '%s' distils, but no pretrain node is upstream of it; name one in `from:`",
        node->where, node->name);
  return STATUS_OK;
}

const struct flow_kind *model_kind(const struct recipe_node *shape) {
  return flow_find(shape->kind == KIND_AUTOENCODE ? "autoencoder"
                                                  : options_choice(&shape->options, OPTION_method));
}

enum status model_open_kernels(struct kernels *kernels, enum kernels_choice choice,
                               enum precision_choice precision) {
  enum dtype element = kernels_best_element();
  if (precision == PRECISION_BF16) element = DTYPE_BF16;
  if (precision == PRECISION_FP32) element = DTYPE_F32;
  return kernels_open(kernels, choice == KERNELS_REFERENCE ? "reference" : "cpu", element);
}

static const struct fact {
  const char *name;
  size_t offset;
} facts_table[] = {
    {"vocabulary", offsetof(struct model_facts, vocabulary)},
    {"positions", offsetof(struct model_facts, positions)},
    {"embedding_width", offsetof(struct model_facts, embedding_width)},
    {"pad", offsetof(struct model_facts, pad)},
    {"bos", offsetof(struct model_facts, bos)},
    {"eos", offsetof(struct model_facts, eos)},
    {"seed", offsetof(struct model_facts, seed)},
};

enum { FACTS = sizeof facts_table / sizeof *facts_table };

enum status model_save_facts(struct scalars *state, const struct model_facts *facts) {
  for (size_t i = 0; i < FACTS; i++) {
    int64_t value;
    memcpy(&value, (const char *)facts + facts_table[i].offset, sizeof value);
    TRY(scalars_set_integer(state, facts_table[i].name, value));
  }
  return STATUS_OK;
}

enum status model_load_facts(struct model_facts *facts, const struct scalars *state) {
  for (size_t i = 0; i < FACTS; i++) {
    int64_t value;
    TRY(scalars_get_integer(state, facts_table[i].name, &value));
    memcpy((char *)facts + facts_table[i].offset, &value, sizeof value);
  }
  return STATUS_OK;
}

static enum status declare(struct model *model, const struct model_request *request,
                           const struct recipe_node *shape) {
  struct model_facts facts = {0};
  TRY(model_load_facts(&facts, &model->facts));
  TRY(vocab_init(&model->vocab, request->group, facts.vocabulary, MODEL_VOCABULARY_SLICES));
  TRY(arena_init(&model->declarations, "declarations", DECLARATION_BYTES));
  params_init(&model->params, &model->declarations);
  model->flow = (struct flow){.kind = model_kind(shape),
                              .options = &shape->options,
                              .jumps = request->node->kind == KIND_DISTILL,
                              .vocab = &model->vocab,
                              .kernels = &model->kernels,
                              .params = &model->params,
                              .positions = facts.positions,
                              .embedding_width = facts.embedding_width,
                              .seed = (uint64_t)facts.seed,
                              .pad = (int32_t)facts.pad,
                              .bos = (int32_t)facts.bos,
                              .eos = (int32_t)facts.eos};
  return model->flow.kind->init(&model->flow, &model->declarations);
}

static enum status bind(struct model *model) {
  struct arena measuring;
  arena_measure(&measuring, "weights");
  params_bind(&model->params, &measuring, model->kernels.element, false);
  TRY(arena_init(&model->weights, "weights", measuring.peak));
  params_bind(&model->params, &model->weights, model->kernels.element, false);
  return STATUS_OK;
}

static enum status open_all(struct model *model, const struct model_request *request) {
  const struct recipe_node *shape;
  struct model_weights weights;
  TRY(model_shape(&shape, request->recipe, request->node));
  TRY(model_open_kernels(&model->kernels, request->kernels, request->precision));
  TRY(model_weights_open(&weights, request->folder, request->step));
  enum status status = scalars_copy(&model->facts, &weights.reader.manifest.state);
  if (status == STATUS_OK) status = declare(model, request, shape);
  if (status == STATUS_OK) status = bind(model);
  if (status == STATUS_OK)
    status = model_weights_read(&weights, &model->params, model->kernels.element, request->raw);
  model_weights_close(&weights);
  TRY(status);
  return model->flow.kind->prepare ? model->flow.kind->prepare(&model->flow) : STATUS_OK;
}

enum status model_open(struct model *model, const struct model_request *request) {
  *model = (struct model){0};
  const enum status status = open_all(model, request);
  if (status != STATUS_OK) model_close(model);
  return status;
}

void model_close(struct model *model) {
  arena_free(&model->weights);
  arena_free(&model->declarations);
  scalars_free(&model->facts);
  *model = (struct model){0};
}

static const char *text_fact(const struct model *model, const char *name) {
  const struct scalar *fact = scalars_find(&model->facts, name);
  return fact && fact->kind == SCALAR_TEXT ? fact->text : "";
}

const char *model_weights_hash(const struct model *model) {
  return text_fact(model, "weights_hash");
}

const char *model_tokenizer_hash(const struct model *model) {
  return text_fact(model, "tokenizer_hash");
}
