#include "stages/tokenize/duplicates.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/appear.h"
#include "pipeline/base/file.h"

enum status duplicates_init(struct duplicates *seen, int64_t entries) {
  uint64_t slots = 64;
  while (slots < 2 * (uint64_t)entries) slots *= 2;
  seen->slots = calloc(slots, sizeof *seen->slots);
  CHECK(seen->slots, STATUS_ENVIRONMENT, "out of memory: %llu hashes of documents",
        (unsigned long long)slots);
  seen->mask = slots - 1;
  return STATUS_OK;
}

void duplicates_free(struct duplicates *seen) {
  free(seen->slots);
  *seen = (struct duplicates){0};
}

bool duplicates_seen(struct duplicates *seen, struct hash128 hash) {
  if (!hash.low && !hash.high) hash.low = 1;
  uint64_t at = hash.low & seen->mask;
  for (;; at = (at + 1) & seen->mask) {
    const struct hash128 *slot = &seen->slots[at];
    if (slot->low == hash.low && slot->high == hash.high) return true;
    if (!slot->low && !slot->high) break;
  }
  seen->slots[at] = hash;
  return false;
}

int64_t duplicates_buckets(int64_t documents) {
  /* hashes spread evenly; a quarter of room takes up what unevenness is left */
  return documents / ((int64_t)DUPLICATES_ENTRIES / 4 * 3) + 1;
}

int64_t duplicates_bucket(struct hash128 hash, int64_t buckets) {
  return (int64_t)((hash.high >> 16) % (uint64_t)buckets);
}

int duplicates_compare(const void *a, const void *b) {
  const struct duplicate *x = a, *y = b;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static enum status name_list(char path[PATH_MAX], const char *folder, int64_t bucket) {
  const int length =
      snprintf(path, PATH_MAX, "%s/parts/duplicates-%08lld", folder, (long long)bucket);
  CHECK(length < PATH_MAX, STATUS_WRITE, "path too long: '%s/parts'", folder);
  return STATUS_OK;
}

enum status duplicates_write(const struct text *list, const char *folder, int64_t bucket) {
  char path[PATH_MAX];
  TRY(name_list(path, folder, bucket));
  return file_write(path, list->bytes, list->length);
}

static bool read_at(struct duplicate *duplicate, FILE *file, int64_t i) {
  return fseeko(file, (off_t)(i * (int64_t)sizeof *duplicate), SEEK_SET) == 0 &&
         fread(duplicate, sizeof *duplicate, 1, file) == 1;
}

/* Leaves the file where the duplicates of a part begin, or would. */
static bool seek_part(FILE *file, int64_t part) {
  struct duplicate middle;
  if (fseeko(file, 0, SEEK_END) != 0) return false;
  int64_t first = 0, end = (int64_t)ftello(file) / (int64_t)sizeof middle;
  while (first < end) {
    const int64_t at = first + (end - first) / 2;
    if (!read_at(&middle, file, at)) return false;
    if (middle.part < part)
      first = at + 1;
    else
      end = at;
  }
  return fseeko(file, (off_t)(first * (int64_t)sizeof middle), SEEK_SET) == 0;
}

enum status duplicates_read(struct text *list, const char *folder, int64_t bucket, int64_t part) {
  char path[PATH_MAX];
  struct duplicate duplicate;
  enum status status = STATUS_OK;
  TRY(name_list(path, folder, bucket));
  FILE *file = appear_stream(path);
  CHECK(file, STATUS_DAMAGED, "%s: the list of duplicates is gone; run again", path);
  if (!seek_part(file, part))
    status = error_raise(STATUS_DAMAGED, __FILE__, __LINE__, __func__,
                         "%s: the list of duplicates cannot be read; run again", path);
  while (status == STATUS_OK && fread(&duplicate, sizeof duplicate, 1, file) == 1 &&
         duplicate.part == part)
    status = text_add_bytes(list, &duplicate, sizeof duplicate);
  fclose(file);
  TRY(status);
  return STATUS_OK;
}
