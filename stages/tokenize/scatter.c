#include "stages/tokenize/scatter.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/appear.h"

struct header {
  uint64_t magic;
  struct hash128 key;
  int64_t group, buckets;
  uint64_t hash; /* of all before it */
};

struct segment {
  int64_t documents, token_bytes;
  int64_t at; /* in the file */
  uint64_t hash;
};

static const uint64_t magic = 0x315443535c52494dull;

static enum status name_file(char path[PATH_MAX], const struct scatter_place *place) {
  const int length =
      snprintf(path, PATH_MAX, "%s/parts/scatter-%08lld", place->folder, (long long)place->group);
  CHECK(length < PATH_MAX, STATUS_WRITE, "path too long: '%s/parts'", place->folder);
  return STATUS_OK;
}

static struct header header_of(const struct scatter_place *place) {
  struct header header = {
      .magic = magic, .key = place->key, .group = place->group, .buckets = place->buckets};
  header.hash = hash_bytes(&header, offsetof(struct header, hash));
  return header;
}

int64_t scatter_count(const struct scatter *scatter) {
  return (int64_t)(scatter->records.length / sizeof(struct scatter_record));
}

const struct scatter_record *scatter_at(const struct scatter *scatter, int64_t i) {
  return (const struct scatter_record *)(const void *)scatter->records.bytes + i;
}

const void *scatter_ids(const struct scatter *scatter, int64_t i, size_t *bytes) {
  const struct scatter_record *record = scatter_at(scatter, i);
  *bytes = (size_t)(record->about.tokens * scatter->width);
  return *bytes ? scatter->tokens.bytes + record->token : NULL;
}

enum status scatter_add(struct scatter *scatter, int64_t position,
                        const struct part_document *about, const void *ids) {
  const struct scatter_record record = {position, (int64_t)scatter->tokens.length, *about};
  const size_t bytes = (size_t)(about->tokens * scatter->width);
  TRY(text_add_bytes(&scatter->records, &record, sizeof record));
  return bytes ? text_add_bytes(&scatter->tokens, ids, bytes) : STATUS_OK;
}

static int by_position(const void *a, const void *b) {
  const struct scatter_record *x = a, *y = b;
  return (x->position > y->position) - (x->position < y->position);
}

void scatter_sort(struct scatter *scatter) {
  const size_t count = (size_t)scatter_count(scatter);
  if (count) qsort(scatter->records.bytes, count, sizeof(struct scatter_record), by_position);
}

static uint64_t hash_segment(const struct text *bytes, const struct scatter_place *place,
                             int64_t bucket) {
  const uint64_t seed = place->key.low ^ (uint64_t)place->group << 32 ^ (uint64_t)bucket;
  return hash_bytes_seeded(bytes->bytes ? bytes->bytes : "", bytes->length, seed);
}

/* The documents [first, end) as they stand in the file: records, whose tokens count from the first,
 * then ids. */
static enum status join_segment(struct text *out, struct segment *segment,
                                const struct scatter *scatter, int64_t first, int64_t end) {
  int64_t token = 0;
  text_clear(out);
  for (int64_t i = first; i < end; i++) {
    struct scatter_record record = *scatter_at(scatter, i);
    record.token = token;
    token += record.about.tokens * scatter->width;
    TRY(text_add_bytes(out, &record, sizeof record));
  }
  for (int64_t i = first; i < end; i++) {
    size_t bytes;
    const void *ids = scatter_ids(scatter, i, &bytes);
    if (bytes) TRY(text_add_bytes(out, ids, bytes));
  }
  segment->documents = end - first;
  segment->token_bytes = token;
  return STATUS_OK;
}

static enum status write_segments(FILE *file, const char *path, const struct scatter *scatter,
                                  const struct scatter_place *place, const int64_t *ends,
                                  struct segment *segments) {
  const struct header header = header_of(place);
  const size_t table = (size_t)place->buckets * sizeof *segments;
  struct text bytes = {0};
  int64_t at = (int64_t)(sizeof header + table);
  enum status status = STATUS_OK;
  bool wrote = fseek(file, (long)at, SEEK_SET) == 0;
  for (int64_t b = 0; status == STATUS_OK && wrote && b < place->buckets; b++) {
    status = join_segment(&bytes, &segments[b], scatter, b ? ends[b - 1] : 0, ends[b]);
    segments[b].at = at;
    segments[b].hash = hash_segment(&bytes, place, b);
    at += (int64_t)bytes.length;
    wrote = !bytes.length || fwrite(bytes.bytes, bytes.length, 1, file) == 1;
  }
  text_free(&bytes);
  TRY(status);
  wrote = wrote && fseek(file, 0, SEEK_SET) == 0 && fwrite(&header, sizeof header, 1, file) == 1 &&
          fwrite(segments, table, 1, file) == 1;
  CHECK(wrote, STATUS_WRITE, "cannot write '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

static enum status write_file(const char *path, const struct scatter *scatter,
                              const struct scatter_place *place, const int64_t *ends,
                              struct segment *segments) {
  char temporary[PATH_MAX];
  CHECK(snprintf(temporary, sizeof temporary, "%s.tmp", path) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", path);
  FILE *file = fopen(temporary, "wb");
  CHECK(file, STATUS_WRITE, "cannot create '%s': %s", temporary, strerror(errno));
  const enum status status = write_segments(file, temporary, scatter, place, ends, segments);
  const bool whole = fclose(file) == 0;
  TRY(status);
  CHECK(whole, STATUS_WRITE, "cannot write '%s': %s", temporary, strerror(errno));
  CHECK(rename(temporary, path) == 0, STATUS_WRITE, "cannot rename '%s': %s", temporary,
        strerror(errno));
  return STATUS_OK;
}

enum status scatter_write(const struct scatter *scatter, const struct scatter_place *place,
                          const int64_t *ends) {
  char path[PATH_MAX];
  TRY(name_file(path, place));
  struct segment *segments = calloc((size_t)place->buckets, sizeof *segments);
  CHECK(segments, STATUS_ENVIRONMENT, "out of memory: %lld buckets", (long long)place->buckets);
  const enum status status = write_file(path, scatter, place, ends, segments);
  free(segments);
  TRY(status);
  return STATUS_OK;
}

/* Reads so many bytes onto the end of `text`. */
static enum status read_onto(struct text *text, FILE *file, int64_t bytes) {
  TRY(text_reserve(text, (size_t)bytes));
  text->length += fread(text->bytes + text->length, 1, (size_t)bytes, file);
  return STATUS_OK;
}

static bool is_possible(const struct segment *segment, int64_t size) {
  return segment->documents >= 0 && segment->token_bytes >= 0 && segment->at >= 0 &&
         segment->at <= size && segment->token_bytes <= size &&
         segment->documents <= size / (int64_t)sizeof(struct scatter_record);
}

/* The segment as it stands in the file. */
static enum status read_segment(struct text *out, struct segment *segment, FILE *file,
                                const struct scatter_place *place, int64_t bucket) {
  static const char advice[] = "remove the file and run again";
  struct header header;
  const struct header expected = header_of(place);
  const long at = (long)(sizeof header + (size_t)bucket * sizeof *segment);
  text_clear(out);
  *segment = (struct segment){0};
  CHECK(fread(&header, sizeof header, 1, file) == 1 &&
            memcmp(&header, &expected, sizeof header) == 0,
        STATUS_DAMAGED, "scatter-%08lld: not the file that was written here; %s",
        (long long)place->group, advice);
  bool sound = fseek(file, 0, SEEK_END) == 0;
  const int64_t size = ftell(file);
  sound = sound && fseek(file, at, SEEK_SET) == 0 &&
          fread(segment, sizeof *segment, 1, file) == 1 && is_possible(segment, size) &&
          fseek(file, (long)segment->at, SEEK_SET) == 0;
  const int64_t records = segment->documents * (int64_t)sizeof(struct scatter_record);
  if (sound) TRY(read_onto(out, file, records + segment->token_bytes));
  CHECK(sound && hash_segment(out, place, bucket) == segment->hash, STATUS_DAMAGED,
        "scatter-%08lld: bucket %lld has another hash; %s", (long long)place->group,
        (long long)bucket, advice);
  return STATUS_OK;
}

static enum status open_file(FILE **file, const struct scatter_place *place, bool made) {
  char path[PATH_MAX];
  TRY(name_file(path, place));
  *file = made ? appear_stream(path) : fopen(path, "rb");
  CHECK(*file, STATUS_DAMAGED, "%s is gone; run again", path);
  setvbuf(*file, NULL, _IONBF, 0);
  return STATUS_OK;
}

bool scatter_exists(const struct scatter_place *place) {
  struct text bytes = {0};
  struct segment segment;
  FILE *file;
  enum status status = open_file(&file, place, false);
  for (int64_t b = 0; status == STATUS_OK && b < place->buckets; b++) {
    rewind(file);
    status = read_segment(&bytes, &segment, file, place, b);
    if (status != STATUS_OK || b == place->buckets - 1) fclose(file);
  }
  text_free(&bytes);
  error_clear();
  return status == STATUS_OK;
}

static enum status append(struct scatter *scatter, const struct text *bytes,
                          const struct segment *segment) {
  const size_t first = (size_t)scatter_count(scatter);
  const size_t records = (size_t)segment->documents * sizeof(struct scatter_record);
  const int64_t before = (int64_t)scatter->tokens.length;
  if (!bytes->length) return STATUS_OK;
  TRY(text_add_bytes(&scatter->records, bytes->bytes, records));
  struct scatter_record *added = (struct scatter_record *)(void *)scatter->records.bytes + first;
  for (int64_t i = 0; i < segment->documents; i++) added[i].token += before;
  return text_add_bytes(&scatter->tokens, bytes->bytes + records, bytes->length - records);
}

enum status scatter_read(struct scatter *scatter, const struct scatter_place *place,
                         int64_t bucket) {
  struct text bytes = {0};
  struct segment segment;
  FILE *file;
  TRY(open_file(&file, place, true));
  enum status status = read_segment(&bytes, &segment, file, place, bucket);
  fclose(file);
  if (status == STATUS_OK) status = append(scatter, &bytes, &segment);
  text_free(&bytes);
  TRY(status);
  return STATUS_OK;
}

void scatter_clear(struct scatter *scatter) {
  text_clear(&scatter->records);
  text_clear(&scatter->tokens);
}

void scatter_free(struct scatter *scatter) {
  text_free(&scatter->records);
  text_free(&scatter->tokens);
}
