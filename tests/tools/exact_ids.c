/* Compares tokenizers, document by document. A document on standard input or output is four bytes
 * that count its bytes, the lowest first, and these bytes.
 *
 *   exact_ids strings SEED COUNT [valid]   writes generated strings; all, or those that are UTF-8
 *   exact_ids ids SPEC                     reads documents; a line each: number of ids and CRC-32
 *   exact_ids compare SPEC SPEC            reads documents; shows the first that differ, and counts
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "stages/tokenize/tokenizer.h"
#include "tests/common/strings.h"

enum { SHOWN = 5, SHOWN_BYTES = 120 };

static void must(enum status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "exact_ids: %s\n", error_message());
  exit(EXIT_FAILURE);
}

static void write_document(const struct text *text) {
  unsigned char head[4];
  for (int i = 0; i < 4; i++) head[i] = (unsigned char)(text->length >> (8 * i));
  fwrite(head, 1, sizeof head, stdout);
  fwrite(text->bytes, 1, text->length, stdout);
}

static bool read_document(struct text *text) {
  unsigned char head[4];
  if (fread(head, 1, sizeof head, stdin) != sizeof head) return false;
  size_t left = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
  text_clear(text);
  while (left) {
    char part[4096];
    const size_t got = fread(part, 1, left < sizeof part ? left : sizeof part, stdin);
    if (!got) return false;
    must(text_add_bytes(text, part, got));
    left -= got;
  }
  must(text_add_bytes(text, "", 0));
  return true;
}

static int write_strings(uint64_t seed, uint64_t count, bool only_valid) {
  struct text text = {0};
  for (uint64_t i = 0; i < count; i++) {
    text_clear(&text);
    must(strings_make(&text, seed, i));
    if (!only_valid || text_valid_utf8(text.bytes, text.length) == text.length)
      write_document(&text);
  }
  text_free(&text);
  return EXIT_SUCCESS;
}

static void encode(struct tokenizer *tokenizer, struct tokens *ids, const struct text *text) {
  ids->count = 0;
  must(tokens_reserve(ids, 1));
  must(tokenizer_encode(tokenizer, ids, text->bytes, text->length));
}

static int write_ids(const char *spec) {
  struct tokenizer *tokenizer;
  struct tokens ids = {0};
  struct text text = {0};
  must(tokenizer_open(&tokenizer, spec));
  while (read_document(&text)) {
    encode(tokenizer, &ids, &text);
    const uLong crc =
        crc32(0, (const Bytef *)(const void *)ids.ids, (uInt)(ids.count * sizeof *ids.ids));
    printf("%zu %08lx\n", ids.count, crc);
  }
  tokens_free(&ids);
  text_free(&text);
  tokenizer_close(tokenizer);
  return EXIT_SUCCESS;
}

static void show(const struct text *text) {
  printf("# differs:");
  for (size_t i = 0; i < text->length && i < SHOWN_BYTES; i++)
    printf(" %02x", (unsigned char)text->bytes[i]);
  printf("%s\n", text->length > SHOWN_BYTES ? " ..." : "");
}

static int compare(const char *own, const char *reference) {
  struct tokenizer *tokenizers[2];
  struct tokens ids[2] = {0};
  struct text text = {0};
  size_t documents = 0, bytes = 0, tokens = 0, differences = 0;
  must(tokenizer_open(&tokenizers[0], own));
  must(tokenizer_open(&tokenizers[1], reference));
  for (; read_document(&text); documents++) {
    for (int i = 0; i < 2; i++) encode(tokenizers[i], &ids[i], &text);
    bytes += text.length;
    tokens += ids[0].count;
    if (ids[0].count == ids[1].count &&
        !memcmp(ids[0].ids, ids[1].ids, ids[0].count * sizeof(int32_t)))
      continue;
    if (differences++ < SHOWN) show(&text);
  }
  printf("%zu documents, %zu bytes, %zu ids: %zu differences\n", documents, bytes, tokens,
         differences);
  for (int i = 0; i < 2; i++) tokens_free(&ids[i]);
  for (int i = 0; i < 2; i++) tokenizer_close(tokenizers[i]);
  text_free(&text);
  return differences || !documents ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  if (argc >= 4 && !strcmp(argv[1], "strings"))
    return write_strings(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argc > 4);
  if (argc == 3 && !strcmp(argv[1], "ids")) return write_ids(argv[2]);
  if (argc == 4 && !strcmp(argv[1], "compare")) return compare(argv[2], argv[3]);
  fprintf(stderr, "see the head of tests/tools/exact_ids.c\n");
  return EXIT_FAILURE;
}
