#include "stages/tokenize/near.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/hash.h"

struct near_bands near_bands_for(double threshold) {
  struct near_bands best = {0};
  double least = 2;
  if (threshold <= 0) return best;
  for (int64_t rows = 1; rows <= NEAR_HASHES; rows++) {
    const struct near_bands bands = {NEAR_HASHES / rows, rows};
    const double middle = pow(1 / (double)bands.bands, 1 / (double)rows);
    if (fabs(middle - threshold) >= least) continue;
    least = fabs(middle - threshold);
    best = bands;
  }
  return best;
}

void near_begin(struct near_signature *signature) {
  memset(signature, 0xff, sizeof *signature);
}

static void add_shingle(struct near_signature *signature, uint64_t shingle) {
  uint64_t state = shingle;
  for (int i = 0; i < NEAR_HASHES;
       i++) { /* SplitMix64: each value is a permutation of the shingle */
    uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    const uint32_t value = (uint32_t)(mixed >> 32);
    if (value < signature->least[i]) signature->least[i] = value;
  }
}

static bool is_word(unsigned char byte) {
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z');
}

/* FNV-1a of the next word, 0 at the end of the text. */
static uint64_t next_word(const char **at, const char *end) {
  uint64_t hash = 0xcbf29ce484222325u;
  while (*at < end && !is_word((unsigned char)**at)) ++*at;
  if (*at == end) return 0;
  for (; *at < end && is_word((unsigned char)**at); ++*at) {
    const unsigned char byte = (unsigned char)**at;
    hash = (hash ^ (byte >= 'A' && byte <= 'Z' ? byte | 0x20u : byte)) * 0x100000001b3u;
  }
  return hash ? hash : 1;
}

void near_add(struct near_signature *signature, const char *bytes, size_t count) {
  uint64_t words[NEAR_WORDS] = {0};
  const char *const end = bytes + count;
  int64_t seen = 0;
  for (uint64_t word; (word = next_word(&bytes, end)); seen++) {
    memmove(words, words + 1, sizeof words - sizeof *words);
    words[NEAR_WORDS - 1] = word;
    if (seen >= NEAR_WORDS - 1) add_shingle(signature, hash_bytes(words, sizeof words));
  }
  if (seen < NEAR_WORDS) add_shingle(signature, hash_bytes(words, sizeof words));
}

uint64_t near_key(const struct near_signature *signature, struct near_bands bands, int64_t band) {
  const size_t bytes = (size_t)bands.rows * sizeof *signature->least;
  return hash_bytes_seeded(signature->least + band * bands.rows, bytes, (uint64_t)band);
}

static enum status name_keys(char path[PATH_MAX], const char *folder, int64_t unit, int64_t piece) {
  CHECK(snprintf(path, PATH_MAX, "%s/parts/near-%08lld-%04lld", folder, (long long)unit,
                 (long long)piece) < PATH_MAX,
        STATUS_WRITE, "path too long: '%s/parts'", folder);
  return STATUS_OK;
}

enum status near_write(const struct text *keys, const char *folder, int64_t unit, int64_t piece) {
  char path[PATH_MAX];
  struct text all = {0};
  const uint64_t hash = hash_bytes(keys->bytes ? keys->bytes : "", keys->length);
  TRY(name_keys(path, folder, unit, piece));
  enum status status = text_add_bytes(&all, &hash, sizeof hash);
  if (status == STATUS_OK) status = text_add_bytes(&all, keys->bytes, keys->length);
  if (status == STATUS_OK) status = file_write(path, all.bytes, all.length);
  text_free(&all);
  TRY(status);
  return STATUS_OK;
}

enum status near_read(struct text *keys, const char *folder, int64_t unit, int64_t piece) {
  char path[PATH_MAX];
  uint64_t hash = 0;
  text_clear(keys);
  TRY(name_keys(path, folder, unit, piece));
  TRY(file_read(keys, path));
  const bool whole = keys->length >= sizeof hash;
  if (whole) {
    memcpy(&hash, keys->bytes, sizeof hash);
    keys->length -= sizeof hash;
    memmove(keys->bytes, keys->bytes + sizeof hash, keys->length);
  }
  CHECK(whole && hash_bytes(keys->bytes, keys->length) == hash, STATUS_DAMAGED,
        "%s: the keys of documents have another hash; remove the file and run again", path);
  return STATUS_OK;
}
