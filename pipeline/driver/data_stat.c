/* millrace data stat */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/driver/data_commands.h"
#include "pipeline/driver/token_rows.h"

enum { BINS = 12, BAR = 40, MOST_USED = 8 };

struct side {
  int64_t rows, tokens, padding, unknown;
  int64_t longest;
  int64_t *lengths; /* owned; [longest + 1], rows by tokens without padding */
  int64_t length_room;
  int64_t *uses; /* owned; [vocabulary] */
  uint64_t stored, content;
  int64_t shards;
};

struct stat {
  struct token_rules rules;
  struct side sides[TOKEN_SIDES];
};

static enum status count_length(struct side *side, int64_t length) {
  if (length >= side->length_room) {
    const int64_t room = length >= 2 * side->length_room ? length + 1 : 2 * side->length_room;
    int64_t *grown = realloc(side->lengths, (size_t)room * sizeof *grown);
    CHECK(grown, STATUS_ENVIRONMENT, "out of memory: a histogram of %" PRId64 " lengths", room);
    memset(grown + side->length_room, 0, (size_t)(room - side->length_room) * sizeof *grown);
    side->lengths = grown;
    side->length_room = room;
  }
  side->lengths[length]++;
  if (length > side->longest) side->longest = length;
  return STATUS_OK;
}

static enum status count_row(void *context, const struct token_row *row) {
  struct stat *stat = context;
  struct side *side = &stat->sides[row->side];
  int64_t padding = 0;
  for (int64_t i = 0; i < row->count; i++) {
    const int64_t id = row->ids[i];
    CHECK(id >= 0 && id < stat->rules.vocabulary_size, STATUS_DAMAGED,
          "'%s': row %" PRId64 " holds the id %" PRId64 ", the vocabulary has %" PRId64
          "; see `millrace data audit`",
          row->shard, row->row, id, stat->rules.vocabulary_size);
    side->uses[id]++;
    side->unknown += id == stat->rules.unk;
    padding += id == stat->rules.pad && stat->rules.pad != stat->rules.eos;
  }
  side->rows++;
  side->tokens += row->count;
  side->padding += padding;
  return count_length(side, row->count - padding);
}

static enum status count_files(struct stat *stat, const char *folder,
                               const struct manifest *manifest) {
  char path[PATH_MAX];
  for (int64_t i = 0; i < manifest->output_count; i++) {
    struct safetensors file;
    enum token_side which;
    const struct manifest_output *output = &manifest->outputs[i];
    if (!token_side_of(&which, output->path)) continue;
    TRY(manifest_join(path, folder, output->path));
    TRY(safetensors_open(&file, path, &output->blocks));
    stat->sides[which].shards++;
    stat->sides[which].stored += output->blocks.file_bytes;
    stat->sides[which].content += file.source.content_bytes;
    safetensors_close(&file);
  }
  return STATUS_OK;
}

static double share(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_lengths(const struct side *side) {
  int64_t counts[BINS] = {0}, most = 1;
  const int64_t width = (side->longest + BINS) / BINS;
  for (int64_t length = 0; length <= side->longest; length++)
    counts[length / width] += side->lengths[length];
  for (int bin = 0; bin < BINS; bin++) most = counts[bin] > most ? counts[bin] : most;
  printf("  tokens of a row, padding left out\n");
  int64_t first = 0;
  while (!counts[first]) first++;
  for (int64_t bin = first; bin <= side->longest / width; bin++) {
    const int bar = (int)((counts[bin] * BAR + most - 1) / most);
    printf("  %7" PRId64 " to %-7" PRId64 " %10" PRId64 " %.*s\n", bin * width,
           (bin + 1) * width - 1, counts[bin], bar, "########################################");
  }
}

/* The ids used most, and how many are used at all. */
static void print_uses(const struct side *side, int64_t vocabulary) {
  int64_t used = 0, best[MOST_USED], count = 0;
  for (int64_t id = 0; id < vocabulary; id++) {
    if (!side->uses[id]) continue;
    used++;
    int64_t at = count < MOST_USED ? count++ : MOST_USED;
    while (at > 0 && side->uses[best[at - 1]] < side->uses[id]) {
      if (at < MOST_USED) best[at] = best[at - 1];
      at--;
    }
    if (at < MOST_USED) best[at] = id;
  }
  printf("  vocabulary: %" PRId64 " of %" PRId64 " ids used (%.1f %%), unknown %.3f %% of tokens\n",
         used, vocabulary, share(used, vocabulary), share(side->unknown, side->tokens));
  printf("  most used (id x times):");
  for (int64_t i = 0; i < count; i++)
    printf(" %" PRId64 " x %" PRId64, best[i], side->uses[best[i]]);
  printf("\n");
}

static void print_side(const struct side *side, const char *name, int64_t vocabulary) {
  char stored[24], content[24];
  printf("%s: %" PRId64 " rows in %" PRId64 " shards, %" PRId64
         " tokens, %.2f %% of them padding\n",
         name, side->rows, side->shards, side->tokens, share(side->padding, side->tokens));
  if (!side->rows) return;
  printf("  %s stored, %s content: %.2fx, %.2f bits a token\n", text_size(stored, side->stored),
         text_size(content, side->content), (double)side->content / (double)side->stored,
         side->tokens ? 8 * (double)side->stored / (double)side->tokens : 0);
  print_lengths(side);
  print_uses(side, vocabulary);
}

/* What statistics.json says of the text: a number is left out when it is not there. */
static enum status print_input(const char *folder) {
  static const char *const names[] = {"documents",         "bytes",          "tokens",
                                      "duplicates",        "empty",          "invalid_documents",
                                      "refused_documents", "refused_entries"};
  char path[PATH_MAX];
  TRY(manifest_join(path, folder, "statistics.json"));
  json_t *json = json_load_file(path, 0, NULL);
  const json_t *input = json_object_get(json, "input");
  printf("input:");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const json_t *value = json_object_get(input, names[i]);
    if (value) printf(" %s %" JSON_INTEGER_FORMAT, names[i], json_integer_value(value));
  }
  const json_int_t tokens = json_integer_value(json_object_get(input, "tokens"));
  const json_int_t bytes = json_integer_value(json_object_get(input, "bytes"));
  if (tokens) printf(", %.3f bytes a token", (double)bytes / (double)tokens);
  printf("\n");
  json_decref(json);
  return STATUS_OK;
}

static enum status allocate(struct stat *stat) {
  for (int i = 0; i < TOKEN_SIDES; i++) {
    stat->sides[i].uses = calloc((size_t)stat->rules.vocabulary_size, sizeof(int64_t));
    CHECK(stat->sides[i].uses, STATUS_ENVIRONMENT, "out of memory: a vocabulary's counts");
  }
  return STATUS_OK;
}

static enum status gather(struct stat *stat, const char *folder) {
  struct manifest manifest = {0};
  TRY(token_rules_read(&stat->rules, folder));
  TRY(allocate(stat));
  TRY(manifest_read(&manifest, folder));
  enum status status = count_files(stat, folder, &manifest);
  if (status == STATUS_OK) status = token_rows_each(folder, &manifest, stat, count_row);
  manifest_free(&manifest);
  return status;
}

enum status data_stat(const char *folder) {
  struct stat stat = {0};
  enum status status = gather(&stat, folder);
  if (status == STATUS_OK) {
    const struct token_rules *rules = &stat.rules;
    printf("%s: tokenizer %s, %" PRId64 " ids, %.12s\n", folder, rules->kind,
           rules->vocabulary_size, rules->hash);
    status = print_input(folder);
    print_side(&stat.sides[TOKEN_TRAIN], "train", rules->vocabulary_size);
    print_side(&stat.sides[TOKEN_HELD_OUT], "held out", rules->vocabulary_size);
  }
  for (int i = 0; i < TOKEN_SIDES; i++) {
    free(stat.sides[i].lengths);
    free(stat.sides[i].uses);
  }
  return status;
}
