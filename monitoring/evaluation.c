#include "monitoring/evaluation.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

/* Room for one more item of `size` bytes, zeroed; NULL when memory is out. */
static void *grow(void **items, size_t *count, size_t size) {
  char *grown = realloc(*items, (*count + 1) * size);
  if (!grown) return NULL;
  *items = grown;
  return memset(grown + (*count)++ * size, 0, size);
}

#define ADD(what)                                                                                  \
  struct evaluation_##what *evaluation_add_##what(struct evaluation *evaluation) {                 \
    void *items = evaluation->what##s;                                                             \
    struct evaluation_##what *added = grow(&items, &evaluation->what##_count, sizeof *added);      \
    evaluation->what##s = items;                                                                   \
    return added;                                                                                  \
  }
ADD(system)
ADD(model)
ADD(bound)
ADD(score)
#undef ADD

void evaluation_free(struct evaluation *evaluation) {
  for (size_t i = 0; i < evaluation->system_count; i++)
    for (int t = 0; t < EVALUATION_TEXTS; t++) free(evaluation->systems[i].samples[t]);
  free(evaluation->systems);
  free(evaluation->models);
  free(evaluation->bounds);
  free(evaluation->scores);
  *evaluation = (struct evaluation){0};
}

/* --- writing --------------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *key, const char *value) {
  json_object_set_new(object, key, json_stringn(value, text_valid_utf8(value, strlen(value))));
}

/* JSON has no number for what is not finite. */
static void set_real(json_t *object, const char *key, double value) {
  json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static json_t *system_to_json(const struct evaluation_system *system) {
  json_t *object = json_object(), *samples = json_array();
  set_text(object, "name", system->name);
  set_text(object, "method", system->method);
  set_text(object, "note", system->note);
  json_object_set_new(object, "nfe", json_integer(system->nfe));
  json_object_set_new(object, "texts", json_integer(system->texts));
  set_real(object, "judge_perplexity", system->judge_perplexity);
  set_real(object, "token_entropy", system->token_entropy);
  set_real(object, "distinct_1", system->distinct_1);
  set_real(object, "distinct_2", system->distinct_2);
  set_real(object, "tokens_per_second", system->tokens_per_second);
  for (int t = 0; t < EVALUATION_TEXTS && system->samples[t]; t++) {
    const char *sample = system->samples[t];
    json_array_append_new(samples, json_stringn(sample, text_valid_utf8(sample, strlen(sample))));
  }
  json_object_set_new(object, "samples", samples);
  return object;
}

static json_t *bound_to_json(const struct evaluation_bound *bound) {
  json_t *object = json_object();
  set_text(object, "name", bound->name);
  set_text(object, "form", bound->form);
  json_object_set_new(object, "steps", json_integer(bound->steps));
  json_object_set_new(object, "continuous", json_boolean(bound->continuous));
  json_object_set_new(object, "information", json_boolean(bound->information));
  json_object_set_new(object, "rows", json_integer(bound->rows));
  json_object_set_new(object, "tokens", json_integer(bound->tokens));
  set_real(object, "nats", bound->nats);
  set_real(object, "error", bound->error);
  set_real(object, "tokens_per_byte", bound->tokens_per_byte);
  return object;
}

static const char *const rouge_names[][2] = {
    {"rouge_1", "rouge_1_error"}, {"rouge_2", "rouge_2_error"}, {"rouge_l", "rouge_l_error"}};

static json_t *score_to_json(const struct evaluation_score *score) {
  json_t *object = json_object();
  set_text(object, "name", score->name);
  json_object_set_new(object, "nfe", json_integer(score->nfe));
  json_object_set_new(object, "texts", json_integer(score->texts));
  set_real(object, "bleu", score->bleu);
  for (int kind = 0; kind < 3; kind++) {
    set_real(object, rouge_names[kind][0], score->rouge[kind]);
    set_real(object, rouge_names[kind][1], score->rouge_error[kind]);
  }
  return object;
}

static json_t *signatures(void) {
  json_t *object = json_object();
  set_text(object, "bleu", EVALUATION_BLEU_SIGNATURE);
  set_text(object, "rouge", EVALUATION_ROUGE_SIGNATURE);
  return object;
}

static json_t *to_json(const struct evaluation *evaluation) {
  json_t *root = json_object(), *systems = json_array(), *models = json_array();
  json_t *bounds = json_array(), *scores = json_array();
  set_text(root, "protocol", EVALUATION_PROTOCOL);
  set_text(root, "judge", evaluation->judge);
  set_text(root, "judge_hash", evaluation->judge_hash);
  set_text(root, "tokenizer_hash", evaluation->tokenizer_hash);
  json_object_set_new(root, "positions", json_integer(evaluation->positions));
  set_real(root, "unigram_loss", evaluation->unigram_loss);
  for (size_t i = 0; i < evaluation->system_count; i++)
    json_array_append_new(systems, system_to_json(&evaluation->systems[i]));
  for (size_t i = 0; i < evaluation->model_count; i++) {
    json_t *model = json_object();
    set_text(model, "name", evaluation->models[i].name);
    set_text(model, "part", evaluation->models[i].part);
    set_real(model, "value", evaluation->models[i].value);
    json_array_append_new(models, model);
  }
  json_object_set_new(root, "systems", systems);
  json_object_set_new(root, "models", models);
  for (size_t i = 0; i < evaluation->bound_count; i++)
    json_array_append_new(bounds, bound_to_json(&evaluation->bounds[i]));
  json_object_set_new(root, "bounds", bounds);
  for (size_t i = 0; i < evaluation->score_count; i++)
    json_array_append_new(scores, score_to_json(&evaluation->scores[i]));
  json_object_set_new(root, "scores", scores);
  if (evaluation->score_count > 0) json_object_set_new(root, "signatures", signatures());
  return root;
}

enum status evaluation_write(const struct evaluation *evaluation, const char *path) {
  json_t *root = to_json(evaluation);
  char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(root);
  CHECK(text, STATUS_ENVIRONMENT, "out of memory: the record '%s'", path);
  const enum status status = file_write(path, text, strlen(text));
  free(text);
  return status;
}

/* --- reading --------------------------------------------------------------------------------- */

static void get_text(char *out, size_t bytes, const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  snprintf(out, bytes, "%s", value ? value : "");
}

static double get_real(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int64_t get_integer(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static enum status read_system(struct evaluation_system *system, const json_t *object) {
  get_text(system->name, sizeof system->name, object, "name");
  get_text(system->method, sizeof system->method, object, "method");
  get_text(system->note, sizeof system->note, object, "note");
  system->nfe = get_integer(object, "nfe");
  system->texts = get_integer(object, "texts");
  system->judge_perplexity = get_real(object, "judge_perplexity");
  system->token_entropy = get_real(object, "token_entropy");
  system->distinct_1 = get_real(object, "distinct_1");
  system->distinct_2 = get_real(object, "distinct_2");
  system->tokens_per_second = get_real(object, "tokens_per_second");
  const json_t *samples = json_object_get(object, "samples");
  for (size_t t = 0; t < json_array_size(samples) && t < EVALUATION_TEXTS; t++) {
    const json_t *sample = json_array_get(samples, t);
    const size_t length = json_string_length(sample);
    system->samples[t] = calloc(length + 1, 1);
    CHECK(system->samples[t], STATUS_ENVIRONMENT, "out of memory: %zu bytes of text", length);
    memcpy(system->samples[t], json_string_value(sample), length);
  }
  return STATUS_OK;
}

static void read_bound(struct evaluation_bound *bound, const json_t *object) {
  get_text(bound->name, sizeof bound->name, object, "name");
  get_text(bound->form, sizeof bound->form, object, "form");
  bound->steps = get_integer(object, "steps");
  bound->continuous = json_is_true(json_object_get(object, "continuous"));
  bound->information = json_is_true(json_object_get(object, "information"));
  bound->rows = get_integer(object, "rows");
  bound->tokens = get_integer(object, "tokens");
  bound->nats = get_real(object, "nats");
  bound->error = get_real(object, "error");
  bound->tokens_per_byte = get_real(object, "tokens_per_byte");
}

static void read_score(struct evaluation_score *score, const json_t *object) {
  get_text(score->name, sizeof score->name, object, "name");
  score->nfe = get_integer(object, "nfe");
  score->texts = get_integer(object, "texts");
  score->bleu = get_real(object, "bleu");
  for (int kind = 0; kind < 3; kind++) {
    score->rouge[kind] = get_real(object, rouge_names[kind][0]);
    score->rouge_error[kind] = get_real(object, rouge_names[kind][1]);
  }
}

static enum status read_scores(struct evaluation *evaluation, const json_t *scores) {
  for (size_t i = 0; i < json_array_size(scores); i++) {
    struct evaluation_score *score = evaluation_add_score(evaluation);
    CHECK(score, STATUS_ENVIRONMENT, "out of memory: %zu scores", i + 1);
    read_score(score, json_array_get(scores, i));
  }
  return STATUS_OK;
}

static enum status read_lists(struct evaluation *evaluation, const json_t *root) {
  const json_t *systems = json_object_get(root, "systems");
  const json_t *models = json_object_get(root, "models");
  for (size_t i = 0; i < json_array_size(systems); i++) {
    struct evaluation_system *system = evaluation_add_system(evaluation);
    CHECK(system, STATUS_ENVIRONMENT, "out of memory: %zu systems", i + 1);
    TRY(read_system(system, json_array_get(systems, i)));
  }
  for (size_t i = 0; i < json_array_size(models); i++) {
    const json_t *object = json_array_get(models, i);
    struct evaluation_model *model = evaluation_add_model(evaluation);
    CHECK(model, STATUS_ENVIRONMENT, "out of memory: %zu models", i + 1);
    get_text(model->name, sizeof model->name, object, "name");
    get_text(model->part, sizeof model->part, object, "part");
    model->value = get_real(object, "value");
  }
  const json_t *bounds = json_object_get(root, "bounds");
  for (size_t i = 0; i < json_array_size(bounds); i++) {
    struct evaluation_bound *bound = evaluation_add_bound(evaluation);
    CHECK(bound, STATUS_ENVIRONMENT, "out of memory: %zu bounds", i + 1);
    read_bound(bound, json_array_get(bounds, i));
  }
  return read_scores(evaluation, json_object_get(root, "scores"));
}

enum status evaluation_read(struct evaluation *evaluation, const char *path) {
  struct text bytes = {0};
  json_error_t problem;
  char protocol[EVALUATION_NAME_BYTES];
  TRY(file_read(&bytes, path));
  json_t *root = json_loadb(bytes.bytes, bytes.length, JSON_REJECT_DUPLICATES, &problem);
  text_free(&bytes);
  CHECK(root, STATUS_DAMAGED, "'%s' line %d: not JSON (%s)", path, problem.line, problem.text);
  get_text(protocol, sizeof protocol, root, "protocol");
  get_text(evaluation->judge, sizeof evaluation->judge, root, "judge");
  get_text(evaluation->judge_hash, sizeof evaluation->judge_hash, root, "judge_hash");
  get_text(evaluation->tokenizer_hash, sizeof evaluation->tokenizer_hash, root, "tokenizer_hash");
  evaluation->positions = get_integer(root, "positions");
  evaluation->unigram_loss = get_real(root, "unigram_loss");
  const enum status status = read_lists(evaluation, root);
  json_decref(root);
  if (status == STATUS_OK && strcmp(protocol, EVALUATION_PROTOCOL) == 0) return STATUS_OK;
  evaluation_free(evaluation);
  TRY(status);
  FAIL(STATUS_DAMAGED, "'%s': protocol '%s', expected '" EVALUATION_PROTOCOL "'; evaluate again",
       path, protocol);
}
