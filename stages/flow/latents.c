#include "stages/flow/latents.h"

#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/text.h"

static void take_arrays(struct latents *latents, struct arena *arena, bool pairs) {
  const size_t n = (size_t)(latents->most * latents->positions), width = (size_t)latents->width;
  latents->values = arena_take(arena, n * width * sizeof *latents->values);
  if (!pairs) return;
  latents->alone = arena_take(arena, n * width * sizeof *latents->alone);
  latents->ranges = arena_take(arena, n * sizeof *latents->ranges);
}

static enum status open_arrays(struct latents *latents, bool pairs) {
  struct arena measuring;
  arena_measure(&measuring, "embeddings");
  take_arrays(latents, &measuring, pairs);
  TRY(arena_init(&latents->arena, "embeddings", measuring.peak));
  take_arrays(latents, &latents->arena, pairs);
  return STATUS_OK;
}

enum status latents_open(struct latents *latents, const struct latents_request *request) {
  *latents = (struct latents){.positions = request->positions, .most = request->most};
  TRY(encoder_open(&latents->encoder, &request->encoder));
  latents->width = latents->encoder.net.config.width;
  const enum status status = open_arrays(latents, request->pairs);
  if (status != STATUS_OK) latents_close(latents);
  return status;
}

void latents_close(struct latents *latents) {
  encoder_close(&latents->encoder);
  arena_free(&latents->arena);
  *latents = (struct latents){0};
}

static enum status read_scale(struct latents *latents, const struct manifest *manifest,
                              const char *folder) {
  const char *hash;
  TRY(scalars_get_real(&manifest->facts, "scale", &latents->scale));
  TRY(scalars_get_text(&manifest->facts, "encoder_hash", &hash));
  CHECK(strcmp(hash, latents->encoder.hash) == 0, STATUS_MISMATCH,
        "'%s' was made by encoder %s, but its options now give %s; run the embed node again, or "
        "go on with its precision",
        folder, hash, latents->encoder.hash);
  return STATUS_OK;
}

enum status latents_take_scale(struct latents *latents, const char *folder) {
  struct manifest manifest = {0};
  TRY(manifest_read(&manifest, folder));
  const enum status status = read_scale(latents, &manifest, folder);
  manifest_free(&manifest);
  return status;
}

static struct t5_input input_of(const struct latents *latents, const struct latents_rows *rows) {
  return (struct t5_input){.batch = rows->count,
                           .positions = latents->positions,
                           .tokens = rows->tokens,
                           .lengths = rows->lengths,
                           .sources = rows->sources,
                           .ranges = rows->ranges};
}

/* Targets see themselves only, of what is valid. */
static void hide_sources(struct latents *latents, const struct latents_rows *rows) {
  const int64_t T = latents->positions;
  for (int64_t i = 0; i < rows->count * T; i++)
    latents->ranges[i] = (struct attention_range){.first_begin = rows->sources[i / T],
                                                  .first_end = rows->lengths[i / T]};
}

static void clear_sources(struct latents *latents, const struct latents_rows *rows) {
  const int64_t size = latents->positions * latents->width;
  for (int64_t i = 0; i < rows->count; i++)
    memset(latents->alone + i * size, 0,
           (size_t)(rows->sources[i] * latents->width) * sizeof *latents->alone);
}

enum status latents_encode(struct latents *latents, const struct latents_rows *rows) {
  struct t5_input input = input_of(latents, rows);
  if (rows->count == 0) return STATUS_OK;
  TRY(encoder_run(&latents->encoder, latents->values, &input));
  if (!latents->alone) return STATUS_OK;
  hide_sources(latents, rows);
  input.ranges = latents->ranges;
  TRY(encoder_run(&latents->encoder, latents->alone, &input));
  clear_sources(latents, rows);
  return STATUS_OK;
}

static void keep_bf16(float *values, int64_t count, double scale) {
  const float factor = (float)(1 / scale);
  for (int64_t i = 0; i < count; i++)
    values[i] = bf16_to_float(bf16_from_float(factor * values[i]));
}

enum status latents_embed(struct latents *latents, const struct latents_rows *rows) {
  const int64_t count = rows->count * latents->positions * latents->width;
  TRY(latents_encode(latents, rows));
  keep_bf16(latents->values, count, latents->scale);
  if (latents->alone) keep_bf16(latents->alone, count, latents->scale);
  return STATUS_OK;
}

enum status latents_hash(char hash[HASH_HEX_BYTES], const struct latents *latents,
                         const char *tokens) {
  struct text rules = {0};
  const struct encoder *encoder = &latents->encoder;
  TRY(text_format(&rules, "%s %s %s %.17g %s", encoder->hash, encoder->kernels.name,
                  dtype_name(encoder->kernels.element), latents->scale, tokens));
  hash_to_hex(hash, hash_bytes128(rules.bytes, rules.length));
  text_free(&rules);
  return STATUS_OK;
}

enum status latents_bytes(size_t *bytes, struct latents *latents) {
  TRY(encoder_measure(&latents->encoder, bytes, latents->most, latents->positions));
  *bytes += latents->encoder.weights.peak + latents->arena.peak;
  return STATUS_OK;
}
