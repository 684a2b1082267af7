#include "stages/flow/latents.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/safetensors.h"
#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

static void take_arrays(struct latents *latents, struct arena *arena, bool pairs) {
  const size_t n = (size_t)(latents->most * latents->positions), width = (size_t)latents->width;
  latents->shift = arena_take_zeroed(arena, width * sizeof *latents->shift);
  latents->factor = arena_take_zeroed(arena, width * sizeof *latents->factor);
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

void latents_set_scale(struct latents *latents, double scale) {
  latents->scale = scale;
  latents->channels = false;
  for (int64_t c = 0; c < latents->width; c++) {
    latents->shift[c] = 0;
    latents->factor[c] = (float)(1 / scale);
  }
}

enum { SHIFT, FACTOR, CHANNELS };
static const char *const channel_names[CHANNELS] = {[SHIFT] = "shift", [FACTOR] = "factor"};

static struct safetensors_tensor channel_tensor(const struct latents *latents, int i) {
  return (struct safetensors_tensor){.name = (char *)(uintptr_t)channel_names[i],
                                     .dtype = DTYPE_F32,
                                     .dimensions = 1,
                                     .shape = {latents->width}};
}

static enum status channel_path(char path[PATH_MAX], const char *folder) {
  CHECK(snprintf(path, PATH_MAX, "%s/channels.safetensors", folder) < PATH_MAX, STATUS_MISMATCH,
        "%s: the path is too long", folder);
  return STATUS_OK;
}

enum status latents_write_channels(const struct latents *latents, const char *folder) {
  char path[PATH_MAX];
  struct safetensors_writer writer;
  struct safetensors_tensor tensors[CHANNELS];
  const uint64_t bytes = (uint64_t)latents->width * sizeof(float);
  for (int i = 0; i < CHANNELS; i++) tensors[i] = channel_tensor(latents, i);
  TRY(channel_path(path, folder));
  TRY(safetensors_writer_open(
      &writer, &(struct safetensors_layout){.path = path, .tensors = tensors, .count = CHANNELS}));
  enum status status = safetensors_writer_append(&writer, latents->shift, bytes);
  if (status == STATUS_OK) status = safetensors_writer_append(&writer, latents->factor, bytes);
  if (status == STATUS_OK) status = safetensors_writer_close(&writer, NULL);
  safetensors_writer_abandon(&writer);
  return status;
}

static enum status read_channel(const struct safetensors *file, struct source_cache *cache,
                                const struct latents *latents, int i, float *values) {
  const struct safetensors_tensor *tensor, expected = channel_tensor(latents, i);
  TRY(safetensors_require(file, &tensor, &expected));
  return safetensors_read_floats(file, cache, tensor, values);
}

static enum status read_channels(struct latents *latents, const char *folder) {
  char path[PATH_MAX];
  struct safetensors file;
  struct source_cache cache = {0};
  TRY(channel_path(path, folder));
  latents->channels = file_exists(path);
  if (!latents->channels) return STATUS_OK;
  TRY(safetensors_open(&file, path, NULL));
  enum status status = read_channel(&file, &cache, latents, SHIFT, latents->shift);
  if (status == STATUS_OK) status = read_channel(&file, &cache, latents, FACTOR, latents->factor);
  source_cache_free(&cache);
  safetensors_close(&file);
  return status;
}

static enum status read_scale(struct latents *latents, const struct manifest *manifest,
                              const char *folder) {
  const char *hash;
  double scale;
  TRY(scalars_get_real(&manifest->facts, "scale", &scale));
  latents_set_scale(latents, scale);
  TRY(scalars_get_text(&manifest->facts, "encoder_hash", &hash));
  CHECK(strcmp(hash, latents->encoder.hash) == 0, STATUS_MISMATCH,
        "'%s' was made by encoder %s, but its options now give %s; run the embed node again, or "
        "go on with its precision",
        folder, hash, latents->encoder.hash);
  return read_channels(latents, folder);
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

static void keep_bf16(float *values, int64_t count, const struct latents *latents) {
  const int64_t width = latents->width;
  for (int64_t i = 0; i < count; i++)
    for (int64_t c = 0; c < width; c++) {
      float *value = values + i * width + c;
      *value = bf16_to_float(bf16_from_float(latents->factor[c] * (*value - latents->shift[c])));
    }
}

enum status latents_embed(struct latents *latents, const struct latents_rows *rows) {
  const int64_t count = rows->count * latents->positions;
  TRY(latents_encode(latents, rows));
  keep_bf16(latents->values, count, latents);
  if (!latents->alone) return STATUS_OK;
  keep_bf16(latents->alone, count, latents);
  clear_sources(latents, rows); /* zeros, wherever the mean is */
  return STATUS_OK;
}

static enum status add_channels(struct text *rules, const struct latents *latents) {
  for (int64_t c = 0; c < latents->width; c++)
    TRY(text_format(rules, " %.9g %.9g", (double)latents->shift[c], (double)latents->factor[c]));
  return STATUS_OK;
}

enum status latents_hash(char hash[HASH_HEX_BYTES], const struct latents *latents,
                         const char *tokens) {
  struct text rules = {0};
  const struct encoder *encoder = &latents->encoder;
  TRY(text_format(&rules, "%s %s %s %.17g %s", encoder->hash, encoder->kernels.name,
                  dtype_name(encoder->kernels.element), latents->scale, tokens));
  if (latents->channels) TRY(add_channels(&rules, latents));
  hash_to_hex(hash, hash_bytes128(rules.bytes, rules.length));
  text_free(&rules);
  return STATUS_OK;
}

enum status latents_bytes(size_t *bytes, struct latents *latents) {
  TRY(encoder_measure(&latents->encoder, bytes, latents->most, latents->positions));
  *bytes += latents->encoder.weights.peak + latents->arena.peak;
  return STATUS_OK;
}
