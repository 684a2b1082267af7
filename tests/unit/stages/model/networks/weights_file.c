/* ELF's weights to a file of the authors' names and back: the same bits, and what does not fit is
 * refused by name. */
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "stages/model/networks/elf_backbone.h"
#include "stages/model/networks/weights_file.h"
#include "tests/common/tap.h"

enum { E = 6, WIDTH = 8, V = 11 };

struct model {
  struct arena declarations, weights;
  struct params params;
  struct elf_backbone net;
};

/* Rows [begin, begin + rows) of the vocabulary are held. */
static void open_model(struct model *model, int64_t depth, int64_t begin, int64_t rows,
                       enum dtype element) {
  assert_ok(arena_init(&model->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&model->weights, "weights", 1 << 20));
  params_init(&model->params, &model->declarations);
  elf_backbone_declare(&model->net, &model->params,
                       &(struct elf_backbone_config){.depth = depth,
                                                     .width = WIDTH,
                                                     .heads = 2,
                                                     .bottleneck = 3,
                                                     .latent_width = E,
                                                     .vocabulary = V});
  param_slice(model->net.unembed, begin, rows);
  param_slice(model->net.unembed_bias, begin, rows);
  params_bind(&model->params, &model->weights, element, false);
  params_initialise(&model->params, element, (uint64_t)(7 + depth + rows));
}

static void close_model(struct model *model) {
  arena_free(&model->weights);
  arena_free(&model->declarations);
}

static void weights_survive_a_round_trip(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    const enum dtype element = i ? DTYPE_BF16 : DTYPE_F32;
    struct model a, b;
    open_model(&a, 2, 0, V, element);
    open_model(&b, 2, 0, V, element);
    params_initialise(&b.params, element, 1);
    assert_ok(weights_file_write(&a.params, element, "elf.safetensors"));
    assert_ok(weights_file_read(&b.params, element, "elf.safetensors"));
    for (int64_t p = 0; p < a.params.count; p++) {
      const struct param *from = a.params.items[p], *to = b.params.items[p];
      assert_memory_equal(from->data, to->data,
                          (size_t)param_count(from) * dtype_bytes(param_dtype(from, element)));
    }
    close_model(&a);
    close_model(&b);
  }
}

static void kernels_are_turned(void **state) {
  (void)state;
  struct model a;
  struct safetensors file;
  struct source_cache cache = {0};
  float stored[E * V];
  open_model(&a, 1, 0, V, DTYPE_F32);
  assert_ok(weights_file_write(&a.params, DTYPE_F32, "turned.safetensors"));
  assert_ok(safetensors_open(&file, "turned.safetensors", NULL));
  const struct safetensors_tensor *kernel = safetensors_find(&file, "unembed_kernel");
  assert_true(kernel && kernel->dimensions == 2 && kernel->shape[0] == E && kernel->shape[1] == V);
  assert_ok(safetensors_read_floats(&file, &cache, kernel, stored));
  const float *held = a.net.unembed->data;
  for (int v = 0; v < V; v++)
    for (int e = 0; e < E; e++) assert_true(stored[e * V + v] == held[v * E + e]);
  const struct safetensors_tensor *tokens = safetensors_find(&file, "mode_tokens");
  assert_true(tokens && tokens->dimensions == 3 && tokens->shape[0] == 1 && tokens->shape[1] == 4);
  source_cache_free(&cache);
  safetensors_close(&file);
  close_model(&a);
}

static void slices_take_their_rows(void **state) {
  (void)state;
  struct model all, some;
  open_model(&all, 1, 0, V, DTYPE_F32);
  open_model(&some, 1, 4, 5, DTYPE_F32);
  assert_ok(weights_file_write(&all.params, DTYPE_F32, "all.safetensors"));
  assert_ok(weights_file_read(&some.params, DTYPE_F32, "all.safetensors"));
  const float *table = all.net.unembed->data;
  assert_memory_equal(some.net.unembed->data, table + 4 * E, 5 * E * sizeof(float));
  close_model(&all);
  close_model(&some);
}

static void what_does_not_fit_is_named(void **state) {
  (void)state;
  struct model one, two;
  open_model(&one, 1, 0, V, DTYPE_F32);
  open_model(&two, 2, 0, V, DTYPE_F32);
  assert_ok(weights_file_write(&one.params, DTYPE_F32, "one.safetensors"));
  assert_ok(weights_file_write(&two.params, DTYPE_F32, "two.safetensors"));
  assert_status(STATUS_MISMATCH, weights_file_read(&two.params, DTYPE_F32, "one.safetensors"));
  assert_non_null(strstr(error_message(), "blocks.1."));
  assert_status(STATUS_MISMATCH, weights_file_read(&one.params, DTYPE_F32, "two.safetensors"));
  assert_non_null(strstr(error_message(), "blocks.1."));
  two.net.proj->shape[1] = WIDTH + 1;
  assert_status(STATUS_MISMATCH, weights_file_read(&two.params, DTYPE_F32, "two.safetensors"));
  assert_non_null(strstr(error_message(), "proj_kernel"));
  close_model(&one);
  close_model(&two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_survive_a_round_trip), cmocka_unit_test(kernels_are_turned),
      cmocka_unit_test(slices_take_their_rows), cmocka_unit_test(what_does_not_fit_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
