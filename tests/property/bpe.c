/* R-TOK-1: pre-tokenisers cut as PCRE2 does with tiktoken's expressions; tokens are those of
 * merging by rank, step by step; every text comes back. R-TOK-3: linear time. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tests/common/tap.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/base/file.h"
#include "pipeline/base/random.h"
#include "stages/tokenize/bpe.h"
#include "stages/tokenize/pretoken.h"
#include "tests/common/strings.h"

enum { STRINGS = 30000, MERGES = 600 };

/* --- pre-tokenisers ------------------------------------------------------------------------- */

static const struct {
  const char *name, *expression;
  pretoken_function *own;
} families[] = {
    {"gpt2",
     "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
     pretoken_gpt2},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
     " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     pretoken_cl100k},
    {"llama3",
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pretoken_llama3},
    {"o200k",
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     pretoken_o200k},
};

struct oracle {
  pcre2_code *code;
  pcre2_match_data *match;
};

static struct oracle oracle_open(const char *expression) {
  int error;
  size_t at;
  struct oracle oracle;
  oracle.code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, NULL);
  assert_non_null(oracle.code);
  pcre2_jit_compile(oracle.code, PCRE2_JIT_COMPLETE);
  oracle.match = pcre2_match_data_create(4, NULL);
  return oracle;
}

static void oracle_close(struct oracle *oracle) {
  pcre2_match_data_free(oracle->match);
  pcre2_code_free(oracle->code);
}

/* End of the match that begins at `at`. */
static size_t oracle_next(struct oracle *oracle, const struct text *text, size_t at) {
  const int found = pcre2_match(oracle->code, (PCRE2_SPTR)text->bytes, text->length, at,
                                PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, oracle->match, NULL);
  assert_true(found > 0);
  return pcre2_get_ovector_pointer(oracle->match)[1];
}

/* Characters that this PCRE2 puts into another class than our tables: it may know an older Unicode.
 */
static void mark_disputed(unsigned char *disputed, const struct unicode *unicode) {
  static const char *const classes[] = {"\\p{Lu}|\\p{Lt}", "\\p{Ll}", "\\p{Lm}|\\p{Lo}",
                                        "\\p{M}",          "\\p{N}",  "\\s"};
  static const uint8_t bits[] = {UNICODE_UPPER, UNICODE_LOWER,  UNICODE_LETTER,
                                 UNICODE_MARK,  UNICODE_NUMBER, UNICODE_SPACE};
  size_t count = 0;
  struct text text = {0};
  for (int i = 0; i < 6; i++) {
    struct oracle oracle = oracle_open(classes[i]);
    for (uint32_t c = 0; c < UNICODE_CODE_POINTS; c++) {
      if (c >= 0xd800 && c < 0xe000) continue;
      text_clear(&text);
      assert_ok(strings_add(&text, c));
      const bool theirs = pcre2_match(oracle.code, (PCRE2_SPTR)text.bytes, text.length, 0,
                                      PCRE2_NO_UTF_CHECK, oracle.match, NULL) > 0;
      if (theirs == ((unicode->classes[c] & bits[i]) != 0)) continue;
      assert_true(!theirs || unicode->classes[c] != UNICODE_OTHER || c == 0x180e);
      count += !disputed[c];
      disputed[c] = 1;
    }
    oracle_close(&oracle);
  }
  assert_true(count < 10000); /* two versions differ by less */
  text_free(&text);
}

static bool is_usable(const struct text *text, const unsigned char *disputed) {
  const unsigned char *b = (const unsigned char *)text->bytes;
  if (text_valid_utf8(text->bytes, text->length) < text->length) return false;
  for (size_t i = 0; i < text->length;) {
    const size_t length = b[i] < 0x80 ? 1 : b[i] < 0xe0 ? 2 : b[i] < 0xf0 ? 3 : 4;
    uint32_t c = length == 1 ? b[i] : b[i] & (0x7fu >> length);
    for (size_t j = 1; j < length; j++) c = c << 6 | (b[i + j] & 0x3fu);
    if (disputed[c]) return false;
    i += length;
  }
  return true;
}

static void compare_cuts(int family, const struct unicode *unicode, const unsigned char *disputed) {
  struct oracle oracle = oracle_open(families[family].expression);
  struct text text = {0};
  size_t used = 0;
  for (uint64_t i = 0; i < STRINGS; i++) {
    text_clear(&text);
    assert_ok(strings_make(&text, 21, i));
    if (!is_usable(&text, disputed)) continue;
    used++;
    for (size_t at = 0; at < text.length;) {
      const size_t own = families[family].own(unicode, text.bytes + at, text.length - at);
      const size_t theirs = oracle_next(&oracle, &text, at) - at;
      if (own != theirs)
        fail_msg("%s: string %d at byte %zu: %zu bytes, expected %zu", families[family].name,
                 (int)i, at, own, theirs);
      at += own;
    }
  }
  assert_true(used > STRINGS / 4);
  text_free(&text);
  oracle_close(&oracle);
}

static void pretokens(void **state) {
  (void)state;
  struct unicode unicode;
  assert_ok(unicode_open(&unicode));
  unsigned char *disputed = calloc(UNICODE_CODE_POINTS, 1);
  mark_disputed(disputed, &unicode);
  for (int i = 0; i < 4; i++) compare_cuts(i, &unicode, disputed);
  free(disputed);
  unicode_close(&unicode);
}

/* --- merging -------------------------------------------------------------------------------- */

/* A vocabulary made by merging the most frequent pair of some text, again and again. */
struct vocabulary {
  struct bpe_token tokens[256 + MERGES];
  unsigned char bytes[256 + MERGES * 64];
  int32_t count;
};

static int32_t lookup(const struct bpe_token *tokens, int32_t count, const unsigned char *bytes,
                      size_t length) {
  for (int32_t i = 0; i < count; i++)
    if (tokens[i].count == length && memcmp(tokens[i].bytes, bytes, length) == 0) return i;
  return -1;
}

/* Replaces the pair by the new token everywhere; returns the new length. */
static size_t merge_all(int32_t *ids, size_t count, int32_t left, int32_t right, int32_t joined) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    const bool hit = i + 1 < count && ids[i] == left && ids[i + 1] == right;
    ids[kept++] = hit ? joined : ids[i];
    i += hit;
  }
  return kept;
}

static void most_frequent(const int32_t *ids, size_t count, int32_t size, int32_t *left,
                          int32_t *right) {
  static int counts[256 + MERGES][256 + MERGES];
  int best = 0;
  memset(counts, 0, sizeof counts);
  for (size_t i = 0; i + 1 < count; i++) counts[ids[i]][ids[i + 1]]++;
  for (int32_t i = 0; i < size; i++)
    for (int32_t j = 0; j < size; j++)
      if (counts[i][j] > best) {
        best = counts[i][j];
        *left = i;
        *right = j;
      }
}

static void train(struct vocabulary *vocabulary, const struct text *text) {
  unsigned char *next = vocabulary->bytes;
  size_t count = text->length;
  int32_t *ids = malloc(count * sizeof *ids);
  for (int i = 0; i < 256; i++) {
    vocabulary->tokens[i] = (struct bpe_token){next, 1};
    *next++ = (unsigned char)i;
  }
  for (size_t i = 0; i < count; i++) ids[i] = (unsigned char)text->bytes[i];
  vocabulary->count = 256;
  while (vocabulary->count < 256 + MERGES) {
    int32_t left = 0, right = 0;
    most_frequent(ids, count, vocabulary->count, &left, &right);
    const struct bpe_token a = vocabulary->tokens[left], b = vocabulary->tokens[right];
    if (a.count + b.count > 64) break;
    memcpy(next, a.bytes, a.count);
    memcpy(next + a.count, b.bytes, b.count);
    vocabulary->tokens[vocabulary->count] = (struct bpe_token){next, a.count + b.count};
    next += a.count + b.count;
    count = merge_all(ids, count, left, right, vocabulary->count++);
  }
  free(ids);
}

/* The definition: of all neighbours whose joined bytes are a token, merge those of the lowest rank,
 * the leftmost first. Token by token it is what tiktoken does. */
static size_t merge_by_rank(const struct vocabulary *v, int32_t *ids, const char *bytes,
                            size_t count) {
  unsigned char joined[128];
  for (size_t i = 0; i < count; i++) ids[i] = (unsigned char)bytes[i];
  for (;;) {
    int32_t best = v->count;
    size_t place = 0;
    for (size_t i = 0; i + 1 < count; i++) {
      const struct bpe_token a = v->tokens[ids[i]], b = v->tokens[ids[i + 1]];
      memcpy(joined, a.bytes, a.count);
      memcpy(joined + a.count, b.bytes, b.count);
      const int32_t found = lookup(v->tokens, best, joined, a.count + b.count);
      if (found < 0) continue;
      best = found;
      place = i;
    }
    if (best == v->count) return count;
    ids[place] = best;
    memmove(ids + place + 1, ids + place + 2, (count - place - 2) * sizeof *ids);
    count--;
  }
}

static void add_random_words(struct text *text, uint64_t seed, size_t bytes, uint32_t letters) {
  const struct random_stream draw = random_open(seed, "bpe", 0, 0);
  for (uint64_t i = 0; text->length < bytes; i++) {
    const char letter = (char)('a' + random_below(draw, i, letters));
    assert_ok(text_add_bytes(text, &letter, 1));
  }
}

static void merging(void **state) {
  (void)state;
  static struct vocabulary vocabulary;
  struct text text = {0};
  struct bpe bpe;
  struct tokens ids = {0};
  int32_t expected[64];
  add_random_words(&text, 1, 6000, 3);
  for (uint64_t i = 0; i < 200; i++) assert_ok(strings_make(&text, 4, i));
  train(&vocabulary, &text);
  assert_true(vocabulary.count > 400);
  assert_ok(bpe_open(&bpe, vocabulary.tokens, vocabulary.count));
  for (size_t at = 0, length; at + 40 < text.length; at += length) {
    length = 1 + at * 7919 % 39;
    ids.count = 0;
    assert_ok(bpe_encode(&bpe, &ids, text.bytes + at, length));
    const size_t count = merge_by_rank(&vocabulary, expected, text.bytes + at, length);
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, expected, count * sizeof *expected);
  }
  bpe_close(&bpe);
  tokens_free(&ids);
  text_free(&text);
}

static double seconds(struct bpe *bpe, struct tokens *ids, const struct text *text) {
  const clock_t begin = clock();
  ids->count = 0;
  assert_ok(bpe_encode(bpe, ids, text->bytes, text->length));
  return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* The best of three runs on a word of `unit`, again and again. */
static double best_seconds(struct bpe *bpe, const char *unit, size_t bytes) {
  struct tokens ids = {0};
  struct text text = {0};
  double best = 1e9;
  while (text.length < bytes) assert_ok(text_add(&text, unit));
  for (int i = 0; i < 3; i++) {
    const double one = seconds(bpe, &ids, &text);
    best = one < best ? one : best;
  }
  tokens_free(&ids);
  text_free(&text);
  return best;
}

/* Eight times the text takes about eight times as long, not 64. */
static void worst_cases(void **state) {
  (void)state;
  static struct vocabulary vocabulary;
  static const char *const units[] = {"a", "ab", "abc", "aab", " ", "\xff"};
  struct text text = {0};
  struct bpe bpe;
  add_random_words(&text, 2, 6000, 3);
  train(&vocabulary, &text);
  assert_ok(bpe_open(&bpe, vocabulary.tokens, vocabulary.count));
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    const double small = best_seconds(&bpe, units[i], 100000);
    const double large = best_seconds(&bpe, units[i], 800000);
    if (large > 25 * small + 0.02) fail_msg("'%s': %g s, then %g s", units[i], small, large);
  }
  bpe_close(&bpe);
  text_free(&text);
}

static void bad_vocabularies(void **state) {
  (void)state;
  struct bpe bpe;
  static const unsigned char bytes[] = "ab";
  static const struct bpe_token few[] = {{bytes, 1}, {bytes + 1, 1}};
  static const struct bpe_token twice[] = {{bytes, 1}, {bytes, 1}};
  assert_status(STATUS_DAMAGED, bpe_open(&bpe, few, 2));
  assert_status(STATUS_DAMAGED, bpe_open(&bpe, twice, 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pretokens),
      cmocka_unit_test(merging),
      cmocka_unit_test(worst_cases),
      cmocka_unit_test(bad_vocabularies),
  };
  return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}
