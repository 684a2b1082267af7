/* Shapes and names of the networks' parameters, without memory for them; issue 2: ELF-B, M and L
 * have the parameter counts of the released checkpoints. */
#include "stages/model/networks/aurora_autoencoder.h"
#include "stages/model/networks/elf_backbone.h"
#include "stages/model/networks/t5_encoder.h"
#include "tests/common/tap.h"

#include <string.h>

enum { DECLARATION_BYTES = 8 << 20 };

static int64_t elf_count(int64_t depth, int64_t width, int64_t heads) {
  struct arena arena;
  struct params params;
  struct elf_backbone net;
  assert_ok(arena_init(&arena, "declarations", DECLARATION_BYTES));
  params_init(&params, &arena);
  elf_backbone_declare(&net, &params,
                       &(struct elf_backbone_config){.depth = depth,
                                                     .width = width,
                                                     .heads = heads,
                                                     .bottleneck = 128,
                                                     .latent_width = 512,
                                                     .vocabulary = 32100});
  const int64_t count = params_count(&params);
  arena_free(&arena);
  return count;
}

static void elf_has_the_published_counts(void **state) {
  (void)state;
  assert_int_equal(elf_count(12, 768, 12), 104579940);
  assert_int_equal(elf_count(24, 1056, 16), 342540036);
  assert_int_equal(elf_count(32, 1280, 16), 652103332);
  assert_int_equal(swiglu_hidden(1280), 3413);
}

static void elf_has_the_names_of_checkpoints(void **state) {
  (void)state;
  static const char *const names[] = {"self_cond_proj.weight",         "text_proj.proj1.weight",
                                      "text_proj.proj2.bias",          "t_embedder.mlp_0.weight",
                                      "self_cond_cfg_tokens",          "mode_tokens",
                                      "blocks.1.attn.q_norm.weight",   "blocks.1.mlp.w12.bias",
                                      "final_layer.norm_final.weight", "unembed_bias"};
  struct arena arena;
  struct params params;
  struct elf_backbone net;
  assert_ok(arena_init(&arena, "declarations", DECLARATION_BYTES));
  params_init(&params, &arena);
  elf_backbone_declare(&net, &params,
                       &(struct elf_backbone_config){.depth = 2,
                                                     .width = 8,
                                                     .heads = 2,
                                                     .bottleneck = 4,
                                                     .latent_width = 6,
                                                     .vocabulary = 11});
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_non_null(params_find(&params, names[i]));
  assert_int_equal(params_find(&params, "mode_tokens")->dimensions, 3);
  assert_int_equal(params_find(&params, "unembed_bias")->rows, 11);
  arena_free(&arena);
}

/* AURORA-LM (arXiv 2608.02602): 49.55 M and the table for the small one. */
static void aurora_has_the_published_size(void **state) {
  (void)state;
  struct arena arena;
  struct params params;
  struct aurora_autoencoder net;
  assert_ok(arena_init(&arena, "declarations", DECLARATION_BYTES));
  params_init(&params, &arena);
  aurora_autoencoder_declare(
      &net, &params,
      &(struct aurora_config){.depth = 6, .width = 768, .heads = 12, .vocabulary = 50257});
  int64_t encoder = 0;
  for (int64_t i = 0; i < params.count; i++)
    if (strncmp(params.items[i]->name, "encoder.layers.", 15) == 0 &&
        params.items[i]->kind == PARAM_MATRIX)
      encoder += param_count(params.items[i]);
  assert_int_equal(encoder, 6 * (6 * 768 * 768 + 2 * 768 * 3072));
  arena_free(&arena);
}

static void latents_round_to_the_ratio(void **state) {
  (void)state;
  assert_int_equal(aurora_autoencoder_latents(1, 128), 128);
  assert_int_equal(aurora_autoencoder_latents(0.5, 9), 5);
  assert_int_equal(aurora_autoencoder_latents(0.01, 9), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elf_has_the_published_counts),
                                     cmocka_unit_test(elf_has_the_names_of_checkpoints),
                                     cmocka_unit_test(aurora_has_the_published_size),
                                     cmocka_unit_test(latents_round_to_the_ratio)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
