#include "stages/tokenize/charsmap.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

/* One unit of a Darts-clone array: a label, an offset to the children, and whether a value ends
 * here; a value is a unit with the highest bit set. */
static inline uint32_t unit_offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static inline uint32_t unit_label(uint32_t unit) {
  return unit & ((1u << 31) | 0xff);
}

static inline bool unit_has_value(uint32_t unit) {
  return (unit >> 8) & 1;
}

static uint32_t read32(const char *bytes) {
  const unsigned char *b = (const unsigned char *)bytes;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* The longest key that `bytes` begins with: its length (0: none) and value. */
static size_t find_longest(const struct charsmap *map, const char *bytes, size_t count,
                           uint32_t *value) {
  size_t longest = 0;
  if (!map->unit_count) return 0;
  uint32_t at = unit_offset(map->units[0]);
  for (size_t i = 0; i < count; i++) {
    at ^= (unsigned char)bytes[i];
    if (at >= map->unit_count) return longest;
    const uint32_t unit = map->units[at];
    if (unit_label(unit) != (unsigned char)bytes[i]) return longest;
    at ^= unit_offset(unit);
    if (at >= map->unit_count) return longest;
    if (!unit_has_value(unit)) continue;
    longest = i + 1;
    *value = map->units[at] & 0x7fffffffu;
  }
  return longest;
}

/* Length of the UTF-8 sequence at the start, 0 when there is none. */
static size_t sequence_length(const char *bytes, size_t count) {
  const unsigned char lead = (unsigned char)bytes[0];
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > count || text_valid_utf8(bytes, length) != length) return 0;
  return length;
}

const char *charsmap_next(const struct charsmap *map, const char *bytes, size_t count,
                          size_t *length, size_t *result_count) {
  uint32_t value = 0;
  *length = find_longest(map, bytes, count, &value);
  if (*length && value < map->replacement_bytes) {
    *result_count = strlen(map->replacements + value);
    return map->replacements + value;
  }
  *length = sequence_length(bytes, count);
  *result_count = *length;
  if (*length) return bytes;
  *length = 1;
  *result_count = 3;
  return "\xef\xbf\xbd";
}

/* Whether a key begins with the ASCII byte `first` and goes on with another ASCII byte. */
static bool has_ascii_pair(const struct charsmap *map, unsigned char first) {
  if (!map->unit_count) return false;
  const uint32_t at = unit_offset(map->units[0]) ^ first;
  if (at >= map->unit_count || unit_label(map->units[at]) != first) return false;
  for (uint32_t second = 1; second < 0x80; second++) {
    const uint32_t child = at ^ unit_offset(map->units[at]) ^ second;
    if (child < map->unit_count && unit_label(map->units[child]) == second) return true;
  }
  return false;
}

static enum charsmap_class classify(const struct charsmap *map, unsigned char byte) {
  const char bytes[2] = {(char)byte, 0};
  size_t length, count;
  if (byte >= 0x80 || has_ascii_pair(map, byte)) return CHARSMAP_OTHER;
  const char *result = charsmap_next(map, bytes, 1, &length, &count);
  if (count != 1) return CHARSMAP_OTHER;
  if (result[0] == ' ') return CHARSMAP_SPACE;
  return result[0] == bytes[0] && byte ? CHARSMAP_PLAIN : CHARSMAP_OTHER;
}

static void classify_all(struct charsmap *map) {
  map->printable_plain = true;
  for (int byte = 0; byte < 256; byte++) {
    map->classes[byte] = (uint8_t)classify(map, (unsigned char)byte);
    if (byte >= '!' && byte <= '~') map->printable_plain &= map->classes[byte] == CHARSMAP_PLAIN;
  }
}

static enum status read_table(struct charsmap *map, const char *bytes, size_t count) {
  CHECK(count > 4, STATUS_DAMAGED, "the normaliser's table has %zu bytes; more than 4 expected",
        count);
  const size_t trie_bytes = read32(bytes);
  CHECK(trie_bytes % 4 == 0 && trie_bytes && trie_bytes < count - 4 && !bytes[count - 1],
        STATUS_DAMAGED, "the normaliser's table of %zu bytes cannot hold a trie of %zu", count,
        trie_bytes);
  map->unit_count = trie_bytes / 4;
  map->units = malloc(trie_bytes);
  CHECK(map->units, STATUS_ENVIRONMENT, "out of memory: a normaliser");
  for (size_t i = 0; i < map->unit_count; i++) map->units[i] = read32(bytes + 4 + 4 * i);
  map->replacements = bytes + 4 + trie_bytes;
  map->replacement_bytes = count - 4 - trie_bytes;
  return STATUS_OK;
}

enum status charsmap_open(struct charsmap *map, const char *bytes, size_t count) {
  *map = (struct charsmap){0};
  if (count) TRY(read_table(map, bytes, count));
  classify_all(map);
  return STATUS_OK;
}

void charsmap_close(struct charsmap *map) {
  free(map->units);
  *map = (struct charsmap){0};
}
