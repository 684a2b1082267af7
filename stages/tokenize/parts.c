#include "stages/tokenize/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"

struct header {
  uint64_t magic;
  struct hash128 key;
  int64_t unit, piece, last, documents, tokens;
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

enum status part_add(struct part *part, struct part_document document) {
  return text_add_bytes(&part->documents, &document, sizeof document);
}

static struct header make_header(const struct part *part) {
  struct header header = {.magic = magic,
                          .key = part->key,
                          .unit = part->unit,
                          .piece = part->piece,
                          .last = part->last,
                          .documents = part_count(part),
                          .tokens = (int64_t)part->tokens.count,
                          .tally = part->tally};
  header.documents_hash = hash_bytes(part->documents.bytes, part->documents.length);
  header.tokens_hash = hash_bytes(part->tokens.ids, part->tokens.count * sizeof(int32_t));
  header.header_hash = hash_bytes(&header, offsetof(struct header, header_hash));
  return header;
}

/* Written beside and renamed, without waiting for storage. */
static enum status write_file(const char *path, const struct text *bytes) {
  char temporary[PATH_MAX];
  CHECK(snprintf(temporary, sizeof temporary, "%s.tmp", path) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", path);
  FILE *file = fopen(temporary, "wb");
  CHECK(file, STATUS_WRITE, "cannot create '%s': %s", temporary, strerror(errno));
  const size_t wrote = fwrite(bytes->bytes, 1, bytes->length, file);
  const bool whole = fclose(file) == 0 && wrote == bytes->length;
  CHECK(whole, STATUS_WRITE, "cannot write '%s': %s", temporary, strerror(errno));
  CHECK(rename(temporary, path) == 0, STATUS_WRITE, "cannot rename '%s': %s", temporary,
        strerror(errno));
  return STATUS_OK;
}

enum status part_write(const struct part *part, const char *folder) {
  char path[PATH_MAX];
  struct text bytes = {0};
  const struct header header = make_header(part);
  TRY(name_part(path, part, folder));
  enum status status = text_add_bytes(&bytes, &header, sizeof header);
  if (status == STATUS_OK)
    status = text_add_bytes(&bytes, part->documents.bytes, part->documents.length);
  if (status == STATUS_OK)
    status = text_add_bytes(&bytes, part->tokens.ids, part->tokens.count * sizeof(int32_t));
  if (status == STATUS_OK) status = write_file(path, &bytes);
  text_free(&bytes);
  TRY(status);
  return STATUS_OK;
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
                      (uint64_t)header.tokens * sizeof(int32_t);
}

bool part_exists(struct part *part, const char *folder, bool thoroughly, bool *last) {
  char path[PATH_MAX];
  if (name_part(path, part, folder) != STATUS_OK || !header_exists(part, path, last)) return false;
  const bool sound = !thoroughly || part_read(part, folder, true) == STATUS_OK;
  error_clear();
  return sound;
}

static enum status read_documents(struct part *part, FILE *file, const struct header *header) {
  struct part_document document;
  for (int64_t i = 0; i < header->documents && fread(&document, sizeof document, 1, file) == 1; i++)
    TRY(part_add(part, document));
  return STATUS_OK;
}

static enum status read_tokens(struct part *part, FILE *file, const struct header *header) {
  TRY(tokens_reserve(&part->tokens, (size_t)header->tokens));
  part->tokens.count = fread(part->tokens.ids, sizeof(int32_t), (size_t)header->tokens, file);
  return STATUS_OK;
}

static enum status read_open(struct part *part, FILE *file, const char *path, bool with_tokens) {
  static const char advice[] = "remove the file and run again";
  struct header header;
  CHECK(fread(&header, sizeof header, 1, file) == 1 && is_sound(&header, part), STATUS_DAMAGED,
        "%s: not the part that was written here; %s", path, advice);
  part->last = header.last;
  part->tally = header.tally;
  TRY(read_documents(part, file, &header));
  CHECK(hash_bytes(part->documents.bytes, part->documents.length) == header.documents_hash,
        STATUS_DAMAGED, "%s: the list of documents has another hash; %s", path, advice);
  if (!with_tokens) return STATUS_OK;
  TRY(read_tokens(part, file, &header));
  CHECK(hash_bytes(part->tokens.ids, part->tokens.count * sizeof(int32_t)) == header.tokens_hash,
        STATUS_DAMAGED, "%s: the tokens have another hash; %s", path, advice);
  return STATUS_OK;
}

enum status part_read(struct part *part, const char *folder, bool with_tokens) {
  char path[PATH_MAX];
  part_clear(part);
  TRY(name_part(path, part, folder));
  FILE *file = fopen(path, "rb");
  CHECK(file, STATUS_DAMAGED, "%s: the part is gone; run again", path);
  const enum status status = read_open(part, file, path, with_tokens);
  fclose(file);
  TRY(status);
  return STATUS_OK;
}

void part_clear(struct part *part) {
  text_clear(&part->documents);
  part->tokens.count = 0;
  part->tally = (struct tally){0};
  part->last = 0;
}

void part_free(struct part *part) {
  text_free(&part->documents);
  tokens_free(&part->tokens);
}
