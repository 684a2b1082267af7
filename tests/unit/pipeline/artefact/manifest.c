/* Manifests, scalars, byte planes. */
#include "tests/common/tap.h"

#include "tests/common/put_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/byte_planes.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/file.h"
#include "pipeline/base/random.h"

static const char HASH[] = "0123456789abcdef0123456789abcdef";

static void make(struct manifest *manifest) {
  assert_ok(file_make_folder("node"));
  put_file("node/b.txt", "second", 6);
  put_file("node/a.txt", "first", 5);
  put_file("node/empty", "", 0);
  assert_ok(manifest_set_text(&manifest->kind, "tokenize"));
  assert_ok(manifest_set_text(&manifest->node, "tokens"));
  memcpy(manifest->config_hash, HASH, sizeof HASH);
  manifest->world = 2;
  assert_ok(manifest_add_input(manifest, "corpus", HASH));
  assert_ok(manifest_add_file(manifest, "node", "b.txt"));
  assert_ok(manifest_add_file(manifest, "node", "a.txt"));
  assert_ok(manifest_add_file(manifest, "node", "empty"));
  assert_ok(scalars_set_integer(&manifest->facts, "rows", INT64_MAX));
  assert_ok(scalars_set_text(&manifest->facts, "tokenizer", "gr\xc3\xbc\xc3\x9f"));
  assert_ok(scalars_set_real(&manifest->timings, "total", 0.1));
}

static void manifests_come_back(void **state) {
  (void)state;
  struct manifest made = {0}, read = {0};
  char a[HASH_HEX_BYTES], b[HASH_HEX_BYTES];
  int64_t rows;
  make(&made);
  assert_ok(manifest_write(&made, "node"));
  assert_ok(manifest_read(&read, "node"));
  assert_string_equal(read.kind, "tokenize");
  assert_int_equal(read.world, 2);
  assert_int_equal(read.output_count, 3);
  assert_string_equal(read.outputs[0].path, "a.txt"); /* sorted */
  assert_ok(scalars_get_integer(&read.facts, "rows", &rows));
  assert_int_equal(rows, INT64_MAX);
  assert_ok(manifest_verify(&read, "node", true));
  assert_ok(manifest_identity(a, &made));
  assert_ok(manifest_identity(b, &read));
  assert_string_equal(a, b);
  read.world = 4;
  assert_ok(scalars_set_real(&read.timings, "total", 7));
  assert_ok(manifest_identity(b, &read));
  assert_string_equal(a, b); /* where and how long it ran is not its identity */
  read.outputs[1].blocks.hashes[0] ^= 1;
  assert_ok(manifest_identity(b, &read));
  assert_string_not_equal(a, b);
  manifest_free(&made);
  manifest_free(&read);
}

static void changed_outputs_are_found(void **state) {
  (void)state;
  struct manifest manifest = {0};
  make(&manifest);
  put_file("node/b.txt", "secund", 6);
  assert_ok(manifest_verify(&manifest, "node", false));
  assert_status(STATUS_DAMAGED, manifest_verify(&manifest, "node", true));
  assert_non_null(strstr(error_message(), "node/b.txt' is damaged in block 0"));
  put_file("node/b.txt", "sec", 3);
  assert_status(STATUS_DAMAGED, manifest_verify(&manifest, "node", false));
  assert_non_null(strstr(error_message(), "has 3 bytes, the manifest says 6"));
  assert_ok(file_remove("node/b.txt"));
  assert_status(STATUS_DAMAGED, manifest_verify(&manifest, "node", false));
  assert_non_null(strstr(error_message(), "missing"));
  manifest_free(&manifest);
}

/* What is read from a changed text is refused, or says the same (a blank, a last digit). */
static void damaged_manifests_are_refused(void **state) {
  (void)state;
  struct manifest made = {0}, read = {0};
  struct text text = {0}, again = {0};
  make(&made);
  assert_ok(manifest_format(&text, &made));
  assert_status(STATUS_MISMATCH, manifest_read(&read, "nowhere"));
  for (size_t at = 0; at + 2 < text.length; at++) {
    assert_status(STATUS_DAMAGED, manifest_parse(&read, text.bytes, at, "m"));
    text.bytes[at] ^= 1;
    const enum status status = manifest_parse(&read, text.bytes, text.length, "m");
    text.bytes[at] ^= 1;
    if (status != STATUS_OK) continue;
    text_clear(&again);
    assert_ok(manifest_format(&again, &read));
    assert_string_equal(again.bytes, text.bytes);
    manifest_free(&read);
  }
  text_free(&text);
  text_free(&again);
  manifest_free(&made);
}

static void side_files_become_a_manifest(void **state) {
  (void)state;
  struct manifest manifest = {0};
  struct blocks blocks;
  assert_ok(file_make_folder("side"));
  for (int i = 2; i >= 0; i--) {
    const char name[] = {(char)('a' + i), 0}, path[] = {'s', 'i', 'd', 'e', '/', name[0], 0};
    put_file(path, name, 1);
    assert_false(manifest_is_done("side", name));
    assert_ok(blocks_of_file(&blocks, path));
    assert_ok(manifest_write_done("side", name, &blocks));
    assert_true(manifest_is_done("side", name));
    blocks_free(&blocks);
  }
  assert_ok(manifest_collect(&manifest, "side"));
  assert_int_equal(manifest.output_count, 3);
  assert_string_equal(manifest.outputs[0].path, "a");
  assert_ok(manifest_verify(&manifest, "side", true));
  put_file("side/b", "longer", 6);
  assert_false(manifest_is_done("side", "b"));
  assert_ok(manifest_forget(&manifest, "side"));
  assert_false(manifest_is_done("side", "a"));
  manifest_free(&manifest);
}

static void reals_keep_every_bit(void **state) {
  (void)state;
  const double values[] = {0.1, 1e300, -5e-324, 1.0, INFINITY, -INFINITY, NAN};
  struct manifest made = {0}, read = {0};
  struct text text = {0};
  char name[16];
  for (int i = 0; i < 7; i++) {
    snprintf(name, sizeof name, "v%d", i);
    assert_ok(scalars_set_real(&made.state, name, values[i]));
  }
  assert_ok(manifest_format(&text, &made));
  assert_ok(manifest_parse(&read, text.bytes, text.length, "m"));
  for (int i = 0; i < 7; i++) {
    double value;
    snprintf(name, sizeof name, "v%d", i);
    assert_ok(scalars_get_real(&read.state, name, &value));
    assert_true(memcmp(&value, &values[i], sizeof value) == 0 || (isnan(value) && i == 6));
  }
  int64_t integer;
  assert_status(STATUS_MISMATCH, scalars_get_integer(&read.state, "v0", &integer));
  assert_status(STATUS_MISMATCH, scalars_get_integer(&read.state, "other", &integer));
  text_free(&text);
  manifest_free(&made);
  manifest_free(&read);
}

static void byte_planes_lose_nothing(void **state) {
  (void)state;
  enum { ELEMENTS = 1001 };
  for (size_t width = 1; width <= 8; width *= 2) {
    unsigned char in[ELEMENTS * 8], planes[ELEMENTS * 8], out[ELEMENTS * 8];
    const struct random_stream stream = random_open(width, "test", 0, 0);
    for (size_t i = 0; i < ELEMENTS * width; i++) in[i] = (unsigned char)random_bits(stream, i);
    byte_planes_split(planes, in, ELEMENTS, width);
    byte_planes_join(out, planes, ELEMENTS, width);
    assert_memory_equal(in, out, ELEMENTS * width);
    assert_int_equal(planes[1], in[width]);
  }
}

static uint64_t compressed_size(const char *path, const struct safetensors_tensor *declared,
                                const void *bytes, const struct safetensors_pair *pair) {
  struct safetensors_tensor tensor = *declared;
  struct safetensors_writer writer;
  uint64_t size;
  const struct safetensors_layout layout = {
      .path = path, .tensors = &tensor, .count = 1, .pairs = pair, .pair_count = pair ? 1 : 0};
  assert_ok(safetensors_writer_open(&writer, &layout));
  assert_ok(safetensors_writer_append(&writer, bytes, tensor.bytes));
  assert_ok(safetensors_writer_close(&writer, NULL));
  assert_ok(file_size(&size, path));
  return size;
}

static void byte_planes_compress_embeddings(void **state) {
  (void)state;
  enum { ROWS = 4, ELEMENTS = 65536 };
  const struct safetensors_tensor plain = {
      .name = "x", .dtype = DTYPE_BF16, .dimensions = 3, .shape = {ROWS, 64, ELEMENTS / 64}};
  struct safetensors_tensor filtered, found;
  struct safetensors file;
  struct text value = {0};
  bool is_filtered;
  bf16 *in = malloc(ROWS * ELEMENTS * sizeof *in), *out = malloc(ROWS * ELEMENTS * sizeof *out);
  const struct random_stream stream = random_open(1, "test", 0, 0);
  for (uint64_t i = 0; i < ROWS * ELEMENTS; i++)
    in[i] = bf16_from_float((float)random_normal(stream, i));
  for (int r = 0; r < ROWS; r++)
    byte_planes_split((unsigned char *)(out + r * ELEMENTS), (unsigned char *)(in + r * ELEMENTS),
                      ELEMENTS, 2);
  assert_ok(byte_planes_declare(&filtered, &value, &plain));
  assert_string_equal(value.bytes, "BF16 [4, 64, 1024]");
  char key[] = "planes.x";
  const struct safetensors_pair pair = {.key = key, .value = value.bytes};
  const uint64_t without = compressed_size("p.safetensors.zst", &plain, in, NULL);
  const uint64_t with = compressed_size("f.safetensors.zst", &filtered, out, &pair);
  print_message("# normal values in bf16: %llu bytes plain, %llu in planes\n",
                (unsigned long long)without, (unsigned long long)with);
  assert_true(with < without);
  assert_ok(safetensors_open(&file, "f.safetensors.zst", NULL));
  assert_ok(byte_planes_find(&found, &is_filtered, &file, &file.tensors[0]));
  assert_true(is_filtered && found.dtype == DTYPE_BF16 && found.shape[2] == 1024);
  safetensors_close(&file);
  text_free(&value);
  free(in);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(manifests_come_back),
      cmocka_unit_test(changed_outputs_are_found),
      cmocka_unit_test(damaged_manifests_are_refused),
      cmocka_unit_test(side_files_become_a_manifest),
      cmocka_unit_test(reals_keep_every_bit),
      cmocka_unit_test(byte_planes_lose_nothing),
      cmocka_unit_test(byte_planes_compress_embeddings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
