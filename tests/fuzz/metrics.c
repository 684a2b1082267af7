/* metrics.jsonl: a resumed run finds whole lines of its past only, and the second opening changes
 * nothing. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "monitoring/metric_file.h"
#include "pipeline/base/file.h"

void fuzz_make_seeds(void) {
  fuzz_seed_text("2\n{\"event\":\"step\",\"step\":1,\"loss\":2.5,\"parts\":{\"a\":\"nan\"}}\n"
                 "{\"event\":\"step\",\"step\":2,\"loss\":2.25}\n"
                 "{\"event\":\"validate\",\"step\":2,\"loss\":2}\n"
                 "{\"event\":\"step\",\"step\":3,\"lo");
  fuzz_seed_text("-1\n{\"event\":\"step\",\"step\":1}\n");
}

static void open_and_read(struct text *out, const char *path, int64_t step) {
  struct metric_file file;
  text_clear(out);
  fuzz_require(metric_file_open(&file, path, step) == STATUS_OK, "any file can be resumed");
  metric_file_close(&file);
  fuzz_require(file_read(out, path) == STATUS_OK, "the file is there");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct fuzz_input input = {bytes, count};
  struct text line = {0}, first = {0}, second = {0};
  int64_t step = 0;
  fuzz_take_line(&line, &input);
  (void)text_parse_integer(&step, line.bytes);
  const char *path = fuzz_file("metrics.jsonl", input.bytes, input.count);
  open_and_read(&first, path, step);
  fuzz_require(first.length <= input.count && !memcmp(first.bytes, input.bytes, first.length),
               "what is kept is a beginning");
  fuzz_require(!first.length || first.bytes[first.length - 1] == '\n', "of whole lines");
  fuzz_require(strlen(first.bytes) == first.length, "without zero bytes");
  open_and_read(&second, path, step);
  fuzz_require(first.length == second.length, "the second opening keeps all");
  text_free(&line);
  text_free(&first);
  text_free(&second);
  return 0;
}
