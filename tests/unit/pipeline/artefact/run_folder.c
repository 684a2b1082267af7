/* The life of a node's folder. */
#include "tests/common/tap.h"

#include "tests/common/put_file.h"

#include <string.h>

#include "pipeline/artefact/run_folder.h"
#include "pipeline/base/file.h"

static void write_output(const struct run_folder *folder, const char *content) {
  char path[PATH_MAX];
  struct blocks blocks;
  assert_ok(manifest_join(path, folder->partial, "out"));
  assert_ok(file_write(path, content, strlen(content)));
  assert_ok(blocks_of_file(&blocks, path));
  assert_ok(manifest_write_done(folder->partial, "out", &blocks));
  blocks_free(&blocks);
}

static void publish(const struct run_folder *folder) {
  struct manifest manifest = {0};
  assert_ok(manifest_collect(&manifest, folder->partial));
  assert_ok(run_folder_publish(folder, &manifest));
  manifest_free(&manifest);
}

static void expect_content(const struct run_folder *folder, const char *content) {
  struct text text = {0};
  char path[PATH_MAX];
  assert_ok(manifest_join(path, folder->path, "out"));
  assert_ok(file_read(&text, path));
  assert_string_equal(text.bytes, content);
  text_free(&text);
}

static void begin(const struct run_folder *folder, const char *fingerprint,
                  enum run_folder_start expected) {
  enum run_folder_start start;
  assert_ok(run_folder_begin(folder, fingerprint, &start));
  assert_int_equal(start, expected);
}

static void partial_is_reused_only_for_the_same(void **state) {
  (void)state;
  struct run_folder folder;
  assert_ok(run_folder_locate(&folder, "runs/x", "tokens"));
  begin(&folder, "one", RUN_FOLDER_FRESH);
  write_output(&folder, "half");
  put_file("runs/x/tokens.partial/out.done.77.tmp", "", 0); /* of an attempt that was killed */
  begin(&folder, "one", RUN_FOLDER_RESUMED);
  assert_false(file_exists("runs/x/tokens.partial/out.done.77.tmp")); /* R-CKP-7 */
  assert_true(manifest_is_done(folder.partial, "out"));
  begin(&folder, "two", RUN_FOLDER_DISCARDED);
  assert_false(manifest_is_done(folder.partial, "out"));
  assert_false(run_folder_is_finished(&folder));
}

static void publication_replaces_the_old(void **state) {
  (void)state;
  struct run_folder folder;
  assert_ok(run_folder_locate(&folder, "runs/y", "tokens"));
  begin(&folder, "one", RUN_FOLDER_FRESH);
  write_output(&folder, "first");
  publish(&folder);
  assert_true(run_folder_is_finished(&folder));
  assert_false(file_exists(folder.partial));
  begin(&folder, "two", RUN_FOLDER_FRESH);
  assert_true(run_folder_is_finished(&folder)); /* the old one stays until the new one is ready */
  write_output(&folder, "second");
  publish(&folder);
  expect_content(&folder, "second");
  assert_false(file_exists(folder.old));
  assert_false(file_exists("runs/y/tokens/out.done"));
}

static void damaged_output_is_not_published(void **state) {
  (void)state;
  struct run_folder folder;
  struct manifest manifest = {0};
  assert_ok(run_folder_locate(&folder, "runs/z", "tokens"));
  begin(&folder, "one", RUN_FOLDER_FRESH);
  write_output(&folder, "right");
  assert_ok(file_write("runs/z/tokens.partial/out", "wrong", 5));
  assert_ok(manifest_collect(&manifest, folder.partial));
  assert_status(STATUS_DAMAGED, run_folder_publish(&folder, &manifest));
  assert_true(file_exists(folder.partial));
  assert_false(run_folder_is_finished(&folder));
  manifest_free(&manifest);
}

/* A crash between any two moves of a publication. */
static void interrupted_publications_are_mended(void **state) {
  (void)state;
  struct run_folder folder;
  struct manifest manifest = {0};
  assert_ok(run_folder_locate(&folder, "runs/w", "tokens"));
  begin(&folder, "one", RUN_FOLDER_FRESH);
  write_output(&folder, "first");
  publish(&folder);
  begin(&folder, "two", RUN_FOLDER_FRESH);
  write_output(&folder, "second");
  assert_ok(manifest_collect(&manifest, folder.partial));
  assert_ok(manifest_write(&manifest, folder.partial)); /* crash 1: nothing moved yet */
  assert_ok(file_rename(folder.path, folder.old));      /* crash 2: the old one moved away */
  manifest_free(&manifest);
  begin(&folder, "two", RUN_FOLDER_FINISHED);
  expect_content(&folder, "second");
  assert_false(file_exists(folder.old));
  assert_ok(file_make_folder(folder.old)); /* crash 3: only the old one is left to remove */
  begin(&folder, "three", RUN_FOLDER_FRESH);
  assert_false(file_exists(folder.old));
  expect_content(&folder, "second");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(partial_is_reused_only_for_the_same),
      cmocka_unit_test(publication_replaces_the_old),
      cmocka_unit_test(damaged_output_is_not_published),
      cmocka_unit_test(interrupted_publications_are_mended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
