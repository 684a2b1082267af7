/* Fingerprints, content hashes, leases, the ledger and the command line of the driver. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/content.h"
#include "pipeline/driver/fingerprint.h"
#include "pipeline/driver/lease.h"
#include "pipeline/driver/ledger.h"

static const char HASH_A[] = "0123456789abcdef0123456789abcdef";
static const char HASH_B[] = "fedcba9876543210fedcba9876543210";

static void differences_name_key_and_values(void **state) {
  (void)state;
  struct text text = {0}, old = {0}, new = {0};
  assert_ok(fingerprint_difference(&text, "a: 1\nb: x\n", "a: 1\nb: x\n"));
  assert_int_equal(text.length, 0);
  assert_ok(fingerprint_difference(&text, "a: 1\nb: x: y\ngone: 1\n", "a: 2\nb: x: z\nnew: 3\n"));
  assert_string_equal(text.bytes, "a: 1 -> 2\nb: x: y -> x: z\nnew: 3 is new\ngone: 1 is gone\n");
  text_clear(&text);
  assert_ok(text_format(&old, "from t: %s\n", HASH_A));
  assert_ok(text_format(&new, "from t: %s\n", HASH_B));
  assert_ok(fingerprint_difference(&text, old.bytes, new.bytes));
  assert_string_equal(text.bytes, "from t: its content changed\n");
  text_free(&text), text_free(&old), text_free(&new);
}

static void write_text(const char *path, const char *text) {
  assert_ok(file_write(path, text, strlen(text)));
}

static void content_counts_and_names_do_not(void **state) {
  (void)state;
  char a[HASH_HEX_BYTES], b[HASH_HEX_BYTES], folder[HASH_HEX_BYTES];
  assert_ok(file_make_folder("texts"));
  write_text("texts/a", "one");
  write_text("texts/b", "one");
  assert_ok(content_identity(a, "texts/a", NULL));
  assert_ok(content_identity(b, "texts/b", NULL));
  assert_string_equal(a, b);
  assert_ok(content_identity(folder, "texts", NULL));
  write_text("texts/b", "two");
  assert_ok(content_identity(b, "texts/b", NULL));
  assert_string_not_equal(a, b);
  assert_ok(content_identity(b, "texts", NULL));
  assert_string_not_equal(folder, b);
  assert_status(STATUS_MISMATCH, content_identity(a, "texts/none", NULL));
}

static void remembered_hashes_are_used_until_a_file_changes(void **state) {
  (void)state;
  char hex[HASH_HEX_BYTES], other[HASH_HEX_BYTES];
  struct content_cache cache = {0};
  write_text("text", "one");
  assert_ok(content_identity(hex, "text", &cache));
  memcpy(cache.lines.bytes, HASH_A, strlen(HASH_A)); /* shows that the cache is asked */
  content_cache_close(&cache, "cache");
  content_cache_read(&cache, "cache");
  assert_ok(content_identity(other, "text", &cache));
  assert_string_equal(other, HASH_A);
  write_text("text", "three");
  assert_ok(content_identity(other, "text", &cache));
  assert_string_not_equal(other, HASH_A);
  assert_string_not_equal(other, hex);
  content_cache_close(&cache, "cache");
}

static void a_lease_is_exclusive_and_outlives_no_holder(void **state) {
  (void)state;
  struct lease lease, second;
  char holder[LEASE_HOLDER_BYTES];
  bool taken;
  assert_ok(file_make_folder("run"));
  assert_ok(lease_locate(&lease, "run", "n"));
  assert_ok(lease_locate(&second, "run", "n"));
  assert_ok(lease_take(&lease, &taken));
  assert_true(taken);
  assert_ok(lease_take(&second, &taken));
  assert_false(taken);
  assert_int_equal(lease_look(&second, holder), LEASE_ALIVE);
  assert_non_null(strstr(holder, "process "));
  lease_release(&lease);
  assert_int_equal(lease_look(&second, NULL), LEASE_FREE);

  const pid_t child = fork(); /* takes the lease and dies without giving it back */
  if (child == 0) _exit(lease_take(&lease, &taken) == STATUS_OK && taken ? 0 : 1);
  int result;
  waitpid(child, &result, 0);
  assert_int_equal(result, 0);
  assert_int_equal(lease_look(&second, NULL), LEASE_DEAD);
  lease_describe(holder, getpid());
  assert_ok(lease_join(&second, holder)); /* a living rank keeps a dead driver's lease */
  assert_int_equal(lease_look(&second, NULL), LEASE_ALIVE);
  assert_ok(file_remove("run/n.lease"));
  write_text("run/n.lease", "elsewhere boot 17 1\n"); /* fresh, on another host: alive */
  assert_int_equal(lease_look(&second, NULL), LEASE_ALIVE);
  assert_ok(file_remove("run/n.lease"));
}

static void the_ledger_counts_and_forgives_cut_lines(void **state) {
  (void)state;
  struct run run = {.folder = "run"};
  struct ledger_entry entry;
  assert_ok(file_make_folder("run"));
  assert_ok(ledger_read(&entry, &run, "elf"));
  assert_int_equal(entry.attempts, 0);
  assert_ok(ledger_start(&run, "elf", 2));
  assert_ok(ledger_end(&run, "elf", 75, 1.5));
  assert_ok(ledger_submit(&run, "elf", "17"));
  assert_ok(ledger_start(&run, "elf", 2));
  assert_ok(ledger_start(&run, "ar", 2));
  FILE *file = fopen("run/ledger.jsonl", "a");
  assert_non_null(file);
  fputs("{\"event\":\"sta", file);
  fclose(file);
  assert_ok(ledger_read(&entry, &run, "elf"));
  assert_int_equal(entry.attempts, 2);
  assert_int_equal(entry.last_exit, -1);
  assert_true(entry.seconds == 1.5);
  assert_string_equal(entry.job, "17");
}

static void the_command_line_is_checked(void **state) {
  (void)state;
  struct arguments arguments;
  char *good[] = {"a.yaml", "--set", "x=1", "-np", "4", "--dry-run", "--set", "y=2"};
  assert_ok(arguments_parse(&arguments, "run", 8, good));
  assert_int_equal(arguments.operands.count, 1);
  assert_int_equal(arguments.settings.count, 2);
  assert_int_equal(arguments.ranks, 4);
  assert_true(arguments.dry_run);
  assert_string_equal(arguments.runs, "runs");
  char *unknown[] = {"--dri-run"}, *number[] = {"-np", "0"}, *missing[] = {"--node"};
  assert_status(STATUS_USAGE, arguments_parse(&arguments, "run", 1, unknown));
  assert_non_null(strstr(error_message(), "did you mean '--dry-run'?"));
  assert_status(STATUS_USAGE, arguments_parse(&arguments, "run", 2, number));
  assert_status(STATUS_USAGE, arguments_parse(&arguments, "run", 1, missing));
  char *others[] = {"--sbatch", "--exclusive"};
  assert_status(STATUS_USAGE, arguments_parse(&arguments, "run", 2, others));
  assert_string_equal(error_message(), "'run' does not read --sbatch, which is for: submit");
  assert_ok(arguments_parse(&arguments, "submit", 2, others));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(differences_name_key_and_values),
      cmocka_unit_test(content_counts_and_names_do_not),
      cmocka_unit_test(remembered_hashes_are_used_until_a_file_changes),
      cmocka_unit_test(a_lease_is_exclusive_and_outlives_no_holder),
      cmocka_unit_test(the_ledger_counts_and_forgives_cut_lines),
      cmocka_unit_test(the_command_line_is_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
