/* manifest.json: what is read is written and read again as the same. The checksum is put right, so
 * that what lies behind it is reached. */
#include "tests/common/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/manifest.h"

static void add(struct manifest *manifest) {
  struct text text = {0};
  fuzz_require(manifest_format(&text, manifest) == STATUS_OK, "a seed can be made");
  fuzz_seed(text.bytes, text.length);
  text_free(&text);
  manifest_free(manifest);
}

static void add_findings(void);

void fuzz_make_seeds(void) {
  struct manifest manifest = {.world = 2};
  struct blocks plain = {.file_bytes = 10, .first_bytes = 4, .block_bytes = 1 << 20};
  struct blocks seekable = {.file_bytes = 99, .block_bytes = 1 << 20};
  add(&manifest);
  fuzz_require(manifest_set_text(&manifest.kind, "checkpoint") == STATUS_OK &&
                   manifest_set_text(&manifest.node, "elf") == STATUS_OK &&
                   manifest_add_input(&manifest, "tokens", "00112233445566778899aabbccddeeff") ==
                       STATUS_OK &&
                   blocks_add_hash(&plain, 1) == STATUS_OK &&
                   blocks_add_hash(&plain, UINT64_MAX) == STATUS_OK &&
                   blocks_add_hash(&seekable, 7) == STATUS_OK &&
                   manifest_add_output(&manifest, "b.bin", &plain) == STATUS_OK &&
                   manifest_add_output(&manifest, "a.zst", &seekable) == STATUS_OK &&
                   scalars_set_integer(&manifest.facts, "rows", -5) == STATUS_OK &&
                   scalars_set_text(&manifest.facts, "tokenizer", "t5") == STATUS_OK &&
                   scalars_set_real(&manifest.timings, "total", 1.5) == STATUS_OK,
               "a seed can be made");
  add(&manifest);
  add_findings();
}

/* Lists that were refused late, and lost memory, or were taken for our own fault. */
static void add_findings(void) {
  static const char head[] = "{\"format\":\"millrace.manifest\",\"version\":1,\"kind\":\"k\","
                             "\"node\":\"n\",\"build\":\"b\",\"config_hash\":\"\",\"world\":1,";
  static const char *const lists[] = {
      "\"inputs\":[{\"name\":\"a\",\"hash\":\"1\"}],\"outputs\":[]",
      "\"inputs\":[],\"outputs\":[{\"path\":\"a\",\"bytes\":9,\"first_bytes\":0,"
      "\"block_bytes\":1,\"blocks\":\"00112233445566778\"}]",
      "\"inputs\":[],\"outputs\":[{\"path\":\"a\",\"bytes\":9,\"first_bytes\":0,\"block_bytes\":1,"
      "\"blocks\":\"\"},{\"path\":\"a\",\"bytes\":9,\"first_bytes\":0,\"block_bytes\":1,"
      "\"blocks\":\"\"}]"};
  struct text seed = {0};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    text_clear(&seed);
    fuzz_require(text_format(&seed, "%s%s,\"facts\":{},\"timings\":{},\"state\":{}}", head,
                             lists[i]) == STATUS_OK,
                 "memory suffices");
    fuzz_seed(seed.bytes, seed.length);
  }
  text_free(&seed);
}

/* The same JSON with a sound checksum; NULL when it is no object. */
static char *put_right(const uint8_t *bytes, size_t count) {
  json_t *root = json_loadb((const char *)bytes, count, JSON_REJECT_DUPLICATES, NULL);
  char hex[HASH_HEX_BYTES], *text = NULL;
  if (json_is_object(root)) {
    json_object_del(root, "checksum");
    char *compact = json_dumps(root, JSON_COMPACT);
    hash_to_hex(hex, hash_bytes128(compact, strlen(compact)));
    free(compact);
    json_object_set_new(root, "checksum", json_string(hex));
    text = json_dumps(root, JSON_INDENT(1));
  }
  json_decref(root);
  return text;
}

static void check(const char *bytes, size_t count) {
  struct manifest first = {0}, second = {0};
  struct text one = {0}, two = {0};
  const enum status status = manifest_parse(&first, bytes, count, "fuzz");
  fuzz_require(status == STATUS_OK || status == STATUS_DAMAGED || status == STATUS_MISMATCH,
               "what is wrong is the file's fault");
  if (status == STATUS_OK) {
    fuzz_require(manifest_format(&one, &first) == STATUS_OK, "what was read can be written");
    fuzz_require(manifest_parse(&second, one.bytes, one.length, "fuzz") == STATUS_OK,
                 "what was written can be read");
    fuzz_require(manifest_format(&two, &second) == STATUS_OK && !strcmp(one.bytes, two.bytes),
                 "what was read is written as it was");
  }
  manifest_free(&first);
  manifest_free(&second);
  text_free(&one);
  text_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  check((const char *)bytes, count);
  char *right = put_right(bytes, count);
  if (right) check(right, strlen(right));
  free(right);
  return 0;
}
