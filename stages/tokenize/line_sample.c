#include "stages/tokenize/line_sample.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"

/* Order of the sample: by hash; equal hashes by content, so that no order of work can show. */
static int compare(const struct line_sample_line *a, const struct line_sample_line *b) {
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  return memcmp(a->bytes, b->bytes, a->count);
}

static int compare_for_sort(const void *a, const void *b) {
  return compare(a, b);
}

static void swap(struct line_sample_line *a, struct line_sample_line *b) {
  const struct line_sample_line kept = *a;
  *a = *b;
  *b = kept;
}

static void sift_up(struct line_sample_line *lines, size_t at) {
  for (; at > 0 && compare(&lines[(at - 1) / 2], &lines[at]) < 0; at = (at - 1) / 2)
    swap(&lines[(at - 1) / 2], &lines[at]);
}

static void sift_down(struct line_sample_line *lines, size_t count) {
  for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && compare(&lines[child], &lines[child + 1]) < 0) child++;
    if (compare(&lines[at], &lines[child]) >= 0) return;
    swap(&lines[at], &lines[child]);
  }
}

static void drop_largest(struct line_sample *sample) {
  sample->bytes -= sample->lines[0].count;
  free(sample->lines[0].bytes);
  sample->count--;
  if (!sample->count) return;
  sample->lines[0] = sample->lines[sample->count];
  sift_down(sample->lines, sample->count);
}

static enum status push(struct line_sample *sample, struct line_sample_line line) {
  if (sample->count == sample->capacity) {
    const size_t capacity = sample->capacity ? 2 * sample->capacity : 1024;
    struct line_sample_line *lines = realloc(sample->lines, capacity * sizeof *lines);
    CHECK(lines, STATUS_ENVIRONMENT, "out of memory: a sample of %zu lines", capacity);
    sample->lines = lines;
    sample->capacity = capacity;
  }
  char *bytes = malloc(line.count);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: a line of %u bytes", line.count);
  memcpy(bytes, line.bytes, line.count);
  line.bytes = bytes;
  sample->lines[sample->count++] = line;
  sample->bytes += line.count;
  sift_up(sample->lines, sample->count - 1);
  return STATUS_OK;
}

void line_sample_lower(struct line_sample *sample, int64_t bar) {
  if (bar < sample->bar) sample->bar = bar;
  while (sample->count && sample->lines[0].hash >= sample->bar) drop_largest(sample);
}

enum status line_sample_offer(struct line_sample *sample, const char *bytes, size_t count) {
  if (!count || count > LINE_SAMPLE_LINE_BYTES) return STATUS_OK;
  const struct line_sample_line line = {(int64_t)(hash_bytes(bytes, count) >> 1), (uint32_t)count,
                                        (char *)bytes};
  if (line.hash >= sample->bar) return STATUS_OK;
  TRY(push(sample, line));
  while (sample->bytes > sample->limit_bytes) line_sample_lower(sample, sample->lines[0].hash);
  return STATUS_OK;
}

/* Where to cut a line that is too long: behind the last space that fits. */
static size_t cut(const char *bytes, size_t count) {
  if (count <= LINE_SAMPLE_LINE_BYTES) return count;
  for (size_t at = LINE_SAMPLE_LINE_BYTES; at > 0; at--)
    if (bytes[at - 1] == ' ') return at;
  return count;
}

enum status line_sample_offer_text(struct line_sample *sample, const char *bytes, size_t count) {
  const char *const end = bytes + count;
  while (bytes < end) {
    const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
    const size_t line = (size_t)((stop ? stop : end) - bytes);
    const size_t now = cut(bytes, line);
    TRY(line_sample_offer(sample, bytes, now));
    bytes += now + (now == line && stop);
  }
  return STATUS_OK;
}

enum status line_sample_write(struct text *text, const struct line_sample *sample) {
  for (size_t i = 0; i < sample->count; i++) {
    TRY(text_add_bytes(text, sample->lines[i].bytes, sample->lines[i].count));
    TRY(text_add(text, "\n"));
  }
  return STATUS_OK;
}

void line_sample_sort(struct line_sample *sample) {
  if (sample->count) qsort(sample->lines, sample->count, sizeof *sample->lines, compare_for_sort);
}

static bool next_line(void *state, const char **bytes, size_t *count) {
  struct line_sample_reader *reader = state;
  if (reader->next == reader->sample->count) return false;
  const struct line_sample_line *line = &reader->sample->lines[reader->next++];
  *bytes = line->bytes;
  *count = line->count;
  return true;
}

struct sentences line_sample_sentences(struct line_sample_reader *reader) {
  return (struct sentences){next_line, reader};
}

void line_sample_free(struct line_sample *sample) {
  for (size_t i = 0; i < sample->count; i++) free(sample->lines[i].bytes);
  free(sample->lines);
  *sample = (struct line_sample){0};
}
