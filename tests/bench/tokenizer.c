/* Speed of the tokenizers on one thread: English documents with a cold cache of words, and inputs
 * made to be slow. Rows of the SentencePiece kinds stand beside libsentencepiece on the same text,
 * the worst cases beside the normal rate of their own tokenizer. Needs the models of
 * ../shared/data. With the name of a tokenizer: its row alone, for races with others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/tokenizer.h"
#include "tests/common/bench.h"

enum { ROUNDS = 3, TEXT_BYTES = 24 << 20, LIBRARY_BYTES = 2 << 20, LONG_BYTES = 10 << 20 };

struct bench {
  char data[1024]; /* the folder of models and texts */
  char spec[1200];
  struct text text; /* documents, each ended by a zero byte */
  size_t bytes;     /* of it that are encoded */
};

/* Opens the tokenizer, which empties its cache, and encodes every document. */
static void encode_all(void *context) {
  struct bench *bench = context;
  struct tokenizer *tokenizer;
  struct tokens ids = {0};
  const char *at = bench->text.bytes, *end = at + bench->bytes;
  if (tokenizer_open(&tokenizer, bench->spec) != STATUS_OK) exit(EXIT_FAILURE);
  while (at < end) {
    const size_t length = strnlen(at, (size_t)(end - at));
    ids.count = 0;
    if (tokenizer_encode(tokenizer, &ids, at, length) != STATUS_OK) exit(EXIT_FAILURE);
    at += length + 1;
  }
  tokens_free(&ids);
  tokenizer_close(tokenizer);
}

static void open_only(void *context) {
  const struct bench *bench = context;
  struct tokenizer *tokenizer;
  if (tokenizer_open(&tokenizer, bench->spec) != STATUS_OK) exit(EXIT_FAILURE);
  tokenizer_close(tokenizer);
}

/* MB/s without the time that opening takes. */
static double rate(struct bench *bench, const char *kind, const char *model, size_t bytes) {
  snprintf(bench->spec, sizeof bench->spec, "%s:%s/tokenizers/%s", kind, bench->data, model);
  bench->bytes = bytes < bench->text.length ? bytes : bench->text.length;
  const double opening = bench_seconds(open_only, bench, ROUNDS);
  return (double)bench->bytes / 1e6 / (bench_seconds(encode_all, bench, ROUNDS) - opening);
}

/* Documents: the paragraphs of tiny Shakespeare, over and over, each time with other numbers, so
 * that words repeat as in real text of this length. */
static enum status make_documents(struct bench *bench) {
  struct text play = {0};
  char path[1200];
  snprintf(path, sizeof path, "%s/text/tinyshakespeare.txt", bench->data);
  TRY(file_read(&play, path));
  for (int round = 0; bench->text.length < TEXT_BYTES; round++) {
    for (const char *at = play.bytes, *stop; (stop = strstr(at, "\n\n")); at = stop + 2) {
      TRY(text_add_bytes(&bench->text, at, (size_t)(stop - at)));
      TRY(text_format(&bench->text, " %d", round));
      TRY(text_add_bytes(&bench->text, "", 1));
    }
  }
  text_free(&play);
  return STATUS_OK;
}

static void fill(struct bench *bench, const char *unit) {
  text_clear(&bench->text);
  while (bench->text.length < LONG_BYTES)
    if (text_add(&bench->text, unit) != STATUS_OK) exit(EXIT_FAILURE);
}

/* A tokenizer and its rate on prose. */
static struct normal {
  const char *kind, *model;
  double rate;
} normals[] = {{.kind = "t5", .model = "t5-spiece.model"},
               {.kind = "gpt2", .model = "gpt2.tiktoken"},
               {.kind = "o200k", .model = "o200k_base.tiktoken"}};

enum { NORMALS = sizeof normals / sizeof *normals };

static void row(const struct normal *normal, double library) {
  char name[64];
  snprintf(name, sizeof name, "tok_%s", normal->kind);
  bench_row(name, normal->rate, "MB/s", library > 0 ? normal->rate / library : 1,
            library > 0 ? "tok_sentencepiece" : "");
}

static void worst_cases(struct bench *bench, const struct normal *normal) {
  static const char *const units[] = {"abcdefghij", " ", "a"};
  static const char *const names[] = {"long_word", "spaces", "one_letter"};
  for (int i = 0; i < 3; i++) {
    char name[64], against[64];
    fill(bench, units[i]);
    const double worst = rate(bench, normal->kind, normal->model, LONG_BYTES);
    snprintf(name, sizeof name, "tok_worst_case_%s_%s", normal->kind, names[i]);
    snprintf(against, sizeof against, "tok_%s", normal->kind);
    bench_row(name, worst, "MB/s", worst / normal->rate, against);
  }
}

/* The whole table. */
static void all(struct bench *bench) {
  const double library = rate(bench, "sentencepiece", "t5-spiece.model", LIBRARY_BYTES);
  bench_row("tok_sentencepiece", library, "MB/s", 1, "");
  for (int i = 0; i < NORMALS; i++) {
    normals[i].rate = rate(bench, normals[i].kind, normals[i].model, TEXT_BYTES);
    row(&normals[i], library);
  }
  for (int i = 0; i < NORMALS; i++) worst_cases(bench, &normals[i]);
}

/* The row of one tokenizer, for races with others. */
static void one(struct bench *bench, const char *kind) {
  for (int i = 0; i < NORMALS; i++)
    if (strcmp(kind, normals[i].kind) == 0) {
      normals[i].rate = rate(bench, kind, normals[i].model, TEXT_BYTES);
      row(&normals[i], 0);
    }
}

int main(int argc, char **argv) {
  static struct bench bench;
  const char *root = getenv("ROOT");
  snprintf(bench.data, sizeof bench.data, "%s/../shared/data", root ? root : ".");
  bench_head();
  if (!file_exists(bench.data)) return EXIT_SUCCESS;
  if (make_documents(&bench) != STATUS_OK) return EXIT_FAILURE;
  if (argc > 1)
    one(&bench, argv[1]);
  else
    all(&bench);
  text_free(&bench.text);
  return EXIT_SUCCESS;
}
