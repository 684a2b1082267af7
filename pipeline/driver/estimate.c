#define _XOPEN_SOURCE 700
#include "pipeline/driver/estimate.h"

#include <ftw.h>
#include <sys/stat.h>

#include "pipeline/artefact/run_folder.h"

enum {
  OPEN_FOLDERS = 16,
  TEXT_BYTES_PER_TOKEN = 4, /* English under a vocabulary of some thousand pieces */
  TOKEN_BYTES = 2,
  BYTE_VOCABULARY = 258,
  MODEL_VOCABULARY = 32100, /* a SentencePiece model that is not read here: T5's */
  T5_WIDTH = 512,           /* of T5-small's encoder */
  BYTES_PER_PARAMETER = 12, /* master weight and two moments in single precision */
  AVERAGE_BYTES = 4         /* the averaged weights */
};

static _Thread_local uint64_t walked_bytes; /* nftw has no argument for its visitor */

static int add_file(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)path, (void)where;
  if (kind == FTW_F) walked_bytes += (uint64_t)info->st_size;
  return 0;
}

/* Bytes of a file, or of all files below a folder; 0 when nothing is there. */
static uint64_t bytes_of(const char *path) {
  walked_bytes = 0;
  (void)nftw(path, add_file, OPEN_FOLDERS, FTW_PHYS);
  return walked_bytes;
}

static uint64_t vocabulary_of(const struct run *run, const struct recipe_node *node) {
  const struct recipe_node *tokens;
  if (recipe_upstream(&tokens, &run->recipe, node, IN_TOKENIZE) != STATUS_OK || !tokens) {
    error_clear();
    return MODEL_VOCABULARY;
  }
  switch (tokens->options.tokenizer) {
  case TOKENIZER_BYTE:
    return BYTE_VOCABULARY;
  case TOKENIZER_TEXT8:
    return 35;
  case TOKENIZER_GPT2:
    return 50257;
  case TOKENIZER_CL100K:
    return 100277;
  case TOKENIZER_O200K:
    return 200019;
  case TOKENIZER_SENTENCEPIECE:
  case TOKENIZER_T5:
    return MODEL_VOCABULARY;
  case TOKENIZER_TRAIN:
    break;
  }
  return (uint64_t)tokens->options.vocabulary_size;
}

/* A transformer with an input table, an output head and gated feed-forward layers. A student has
 * the network of its teacher. */
static uint64_t parameters_of(const struct estimate *all, const struct run *run,
                              const struct recipe_node *node) {
  if (!(IN_TRAINING & (1 << node->kind))) return 0;
  if (node->kind == KIND_DISTILL) return all[node->inputs[0]].parameters;
  const struct options *o = &node->options;
  const uint64_t width = (uint64_t)o->width, depth = (uint64_t)o->depth;
  const uint64_t inner = o->feedforward ? (uint64_t)o->feedforward : width * 8 / 3;
  return 2 * vocabulary_of(run, node) * width + depth * (4 * width * width + 3 * width * inner);
}

static uint64_t latent_width(const struct options *options) {
  return options->encoder == ENCODER_T5 ? T5_WIDTH : (uint64_t)options->encoder_width;
}

static uint64_t disk_of(const struct estimate *estimate, const struct recipe_node *node) {
  const struct options *o = &node->options;
  const uint64_t tokens = estimate->input_bytes / TEXT_BYTES_PER_TOKEN;
  if (node->kind == KIND_TOKENIZE) return tokens * TOKEN_BYTES;
  if (node->kind == KIND_EMBED)
    return estimate->input_bytes / TOKEN_BYTES * latent_width(o) * sizeof(uint16_t);
  if (!(IN_TRAINING & (1 << node->kind))) return 0;
  const uint64_t checkpoint =
      estimate->parameters * (uint64_t)(BYTES_PER_PARAMETER + (o->ema > 0 ? AVERAGE_BYTES : 0));
  return checkpoint * ((uint64_t)o->keep_checkpoints + 1); /* one more while it is written */
}

enum status estimate_node(struct estimate *all, const struct run *run, size_t index) {
  const struct recipe_node *node = &run->recipe.nodes[index];
  struct estimate *estimate = &all[index];
  struct run_folder folder;
  *estimate = (struct estimate){0};
  if (node->kind == KIND_TOKENIZE)
    for (size_t i = 0; i < node->options.input.count; i++)
      estimate->input_bytes += bytes_of(node->options.input.values[i]);
  for (size_t i = 0; i < node->input_count; i++)
    estimate->input_bytes += all[node->inputs[i]].disk_bytes;
  estimate->parameters = parameters_of(all, run, node);
  TRY(run_folder_locate(&folder, run->folder, node->name));
  const bool finished = run_folder_is_finished(&folder);
  estimate->disk_bytes = finished ? bytes_of(folder.path) : disk_of(estimate, node);
  return STATUS_OK;
}
