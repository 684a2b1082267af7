#include "stages/embed/embed_measure.h"

#include <math.h>
#include <stdlib.h>

/* Sums over positions. */
struct sums {
  double *first, *square; /* [width] owned */
  double count;
};

static void add_positions(struct sums *sums, const struct latents *latents,
                          const struct token_rows *tokens, int64_t batch) {
  const int64_t T = latents->positions, width = latents->width;
  for (int64_t i = 0; i < batch * T; i++) {
    if (i % T >= tokens->lengths[i / T]) continue;
    const float *values = latents->values + i * width;
    for (int64_t c = 0; c < width; c++) {
      sums->first[c] += (double)values[c];
      sums->square[c] += (double)values[c] * (double)values[c];
    }
    sums->count++;
  }
}

static enum status add_rows(struct sums *sums, struct latents *latents, struct token_rows *tokens,
                            int64_t rows) {
  for (int64_t first = 0; first < rows; first += tokens->most) {
    const int64_t batch = rows - first < tokens->most ? rows - first : tokens->most;
    const struct latents_rows encoded = {.count = batch,
                                         .tokens = tokens->tokens,
                                         .lengths = tokens->lengths,
                                         .sources = tokens->sources};
    TRY(token_rows_read(tokens, first, batch));
    TRY(latents_encode(latents, &encoded));
    add_positions(sums, latents, tokens, batch);
  }
  return STATUS_OK;
}

static double sum(const double *values, int64_t count) {
  double all = 0;
  for (int64_t c = 0; c < count; c++) all += values[c];
  return all;
}

static enum status set(struct latents *latents, const struct sums *sums, bool channels) {
  const double all = sum(sums->square, latents->width);
  CHECK(all > 0 && isfinite(all), STATUS_MISMATCH,
        "the encoder's outputs have no usable size (sum of squares %g); are its weights right?",
        all);
  const double scale = sqrt(all / (sums->count * (double)latents->width));
  latents_set_scale(latents, scale);
  for (int64_t c = 0; channels && c < latents->width; c++) {
    const double mean = sums->first[c] / sums->count;
    const double variance = sums->square[c] / sums->count - mean * mean;
    /* A channel that does not move stays small. */
    const double deviation = variance > 1e-6 * scale * scale ? sqrt(variance) : scale;
    latents->shift[c] = (float)mean;
    latents->factor[c] = (float)(1 / deviation);
  }
  latents->channels = channels;
  return STATUS_OK;
}

enum status embed_measure(struct latents *latents, struct token_rows *tokens, int64_t rows,
                          bool channels) {
  const size_t width = (size_t)latents->width;
  struct sums sums = {.first = calloc(width, sizeof(double)),
                      .square = calloc(width, sizeof(double))};
  enum status status = STATUS_ENVIRONMENT;
  if (sums.first && sums.square) status = add_rows(&sums, latents, tokens, rows);
  if (status == STATUS_OK) status = set(latents, &sums, channels);
  free(sums.first);
  free(sums.square);
  CHECK(status != STATUS_ENVIRONMENT, STATUS_ENVIRONMENT, "out of memory: sums of %zu channels",
        width);
  return status;
}
