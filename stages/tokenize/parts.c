#include "stages/tokenize/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/appear.h"
#include "pipeline/base/file.h"

struct header {
  uint64_t magic;
  struct hash128 key;
  int64_t unit, piece, last, width, documents, tokens;
  struct tally tally;
  uint64_t documents_hash, tokens_hash;
  uint64_t header_hash; /* of all before it */
};

static const uint64_t magic = 0x325452504c52494dull; /* "MIRLPRT2" as bytes */

static enum status name_part(char path[PATH_MAX], const struct part *part, const char *folder) {
  const int length = snprintf(path, PATH_MAX, "%s/parts/%08lld-%04lld", folder,
                              (long long)part->unit, (long long)part->piece);
  CHECK(length < PATH_MAX, STATUS_WRITE, "path too long: '%s/parts'", folder);
  return STATUS_OK;
}

int64_t part_count(const struct part *part) {
  return (int64_t)(part->documents.length / sizeof(struct part_document));
}

const struct part_document *part_document(const struct part *part, int64_t i) {
  return (const struct part_document *)(const void *)part->documents.bytes + i;
}

int64_t part_tokens(const struct part *part) {
  return part->width ? (int64_t)part->tokens.length / part->width : 0;
}

/* Appends ids as 16-bit integers; the vocabulary fits. All that is there are such, so the end is
 * aligned. */
static enum status add_narrow(struct text *tokens, const int32_t *restrict ids, size_t count) {
  TRY(text_reserve(tokens, count * sizeof(uint16_t)));
  uint16_t *const restrict narrow = (uint16_t *)(void *)(tokens->bytes + tokens->length);
  for (size_t i = 0; i < count; i++) narrow[i] = (uint16_t)ids[i];
  tokens->length += count * sizeof *narrow;
  tokens->bytes[tokens->length] = '\0';
  return STATUS_OK;
}

enum status part_add(struct part *part, struct part_document document, const int32_t *ids) {
  const size_t count = (size_t)document.tokens;
  TRY(text_add_bytes(&part->documents, &document, sizeof document));
  if (part->width == sizeof(uint16_t)) return add_narrow(&part->tokens, ids, count);
  return text_add_bytes(&part->tokens, ids, count * sizeof *ids);
}

static struct header make_header(const struct part *part) {
  struct header header = {.magic = magic,
                          .key = part->key,
                          .unit = part->unit,
                          .piece = part->piece,
                          .last = part->last,
                          .width = part->width,
                          .documents = part_count(part),
                          .tokens = part_tokens(part),
                          .tally = part->tally};
  header.documents_hash = hash_bytes(part->documents.bytes, part->documents.length);
  header.tokens_hash = hash_bytes(part->tokens.bytes, part->tokens.length);
  header.header_hash = hash_bytes(&header, offsetof(struct header, header_hash));
  return header;
}

static bool write_bytes(const struct text *text, FILE *file) {
  return text->length == 0 || fwrite(text->bytes, text->length, 1, file) == 1;
}

static bool write_all(const struct part *part, const struct header *header, FILE *file) {
  setvbuf(file, NULL, _IONBF, 0);
  return fwrite(header, sizeof *header, 1, file) == 1 && write_bytes(&part->documents, file) &&
         write_bytes(&part->tokens, file);
}

/* Written beside and renamed, without waiting for storage. */
static enum status write_file(const char *path, const struct part *part) {
  char temporary[PATH_MAX];
  const struct header header = make_header(part);
  CHECK(snprintf(temporary, sizeof temporary, "%s.tmp", path) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", path);
  FILE *file = fopen(temporary, "wb");
  CHECK(file, STATUS_WRITE, "cannot create '%s': %s", temporary, strerror(errno));
  const bool wrote = write_all(part, &header, file);
  const bool whole = fclose(file) == 0 && wrote;
  CHECK(whole, STATUS_WRITE, "cannot write '%s': %s", temporary, strerror(errno));
  CHECK(rename(temporary, path) == 0, STATUS_WRITE, "cannot rename '%s': %s", temporary,
        strerror(errno));
  return STATUS_OK;
}

enum status part_write(const struct part *part, const char *folder) {
  char path[PATH_MAX];
  TRY(name_part(path, part, folder));
  return write_file(path, part);
}

static bool is_sound(const struct header *header, const struct part *part) {
  return header->magic == magic &&
         header->header_hash == hash_bytes(header, offsetof(struct header, header_hash)) &&
         header->unit == part->unit && header->piece == part->piece &&
         memcmp(&header->key, &part->key, sizeof part->key) == 0;
}

static bool header_exists(const struct part *part, const char *path, bool *last) {
  struct header header;
  uint64_t bytes = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  const size_t got = fread(&header, sizeof header, 1, file);
  fclose(file);
  if (got != 1 || !is_sound(&header, part) || file_size(&bytes, path) != STATUS_OK) return false;
  *last = header.last == 1;
  return bytes == sizeof header + (uint64_t)header.documents * sizeof(struct part_document) +
                      (uint64_t)(header.tokens * header.width);
}

bool part_exists(struct part *part, const char *folder, bool thoroughly, bool *last) {
  char path[PATH_MAX];
  if (name_part(path, part, folder) != STATUS_OK || !header_exists(part, path, last)) return false;
  const bool sound = !thoroughly || part_read(part, folder, true) == STATUS_OK;
  error_clear();
  return sound;
}

int64_t parts_of_unit(const char *folder, struct hash128 key, int64_t unit, bool thoroughly) {
  struct part part = {.key = key, .unit = unit};
  bool last = false;
  while (!last && part_exists(&part, folder, thoroughly, &last)) part.piece++;
  part_free(&part);
  return last ? part.piece : 0;
}

/* Reads so many bytes, as far as there are any. */
static enum status read_text(struct text *text, FILE *file, int64_t bytes) {
  TRY(text_reserve(text, (size_t)bytes));
  text->length = fread(text->bytes, 1, (size_t)bytes, file);
  return STATUS_OK;
}

static enum status read_open(struct part *part, FILE *file, const char *path, bool with_tokens) {
  static const char advice[] = "remove the file and run again";
  struct header header;
  setvbuf(file, NULL, _IONBF, 0);
  CHECK(fread(&header, sizeof header, 1, file) == 1 && is_sound(&header, part), STATUS_DAMAGED,
        "%s: not the part that was written here; %s", path, advice);
  part->last = header.last;
  part->width = header.width;
  part->tally = header.tally;
  TRY(read_text(&part->documents, file, header.documents * (int64_t)sizeof(struct part_document)));
  CHECK(hash_bytes(part->documents.bytes, part->documents.length) == header.documents_hash,
        STATUS_DAMAGED, "%s: the list of documents has another hash; %s", path, advice);
  if (!with_tokens) return STATUS_OK;
  TRY(read_text(&part->tokens, file, header.tokens * header.width));
  CHECK(hash_bytes(part->tokens.bytes, part->tokens.length) == header.tokens_hash, STATUS_DAMAGED,
        "%s: the tokens have another hash; %s", path, advice);
  return STATUS_OK;
}

enum status part_read(struct part *part, const char *folder, bool with_tokens) {
  char path[PATH_MAX];
  part_clear(part);
  TRY(name_part(path, part, folder));
  FILE *file = appear_stream(path);
  CHECK(file, STATUS_DAMAGED, "%s: the part is gone; run again", path);
  const enum status status = read_open(part, file, path, with_tokens);
  fclose(file);
  TRY(status);
  return STATUS_OK;
}

void part_clear(struct part *part) {
  text_clear(&part->documents);
  text_clear(&part->tokens);
  part->tally = (struct tally){0};
  part->last = 0;
}

void part_free(struct part *part) {
  text_free(&part->documents);
  text_free(&part->tokens);
}
