#include "stages/tokenize/pretoken.h"

#include <stdbool.h>

#include "stages/tokenize/word_scan.h"

enum { LETTER = UNICODE_ANY_LETTER, NUMBER = UNICODE_NUMBER, SPACE = UNICODE_SPACE };
enum { OTHER = UNICODE_OTHER | UNICODE_MARK }; /* [^\s\p{L}\p{N}] */

/* --- pieces that the expressions share ------------------------------------------------------- */

/* Whether `bytes` goes on with a letter of `set` in either case (`any_case`) or in lower case.
 * U+017F is an s in another case. Returns its length. */
static size_t letter_in(const char *bytes, size_t count, const char *set, bool any_case) {
  if (!count) return 0;
  const char lower =
      (char)(any_case && bytes[0] >= 'A' && bytes[0] <= 'Z' ? bytes[0] + 32 : bytes[0]);
  bool has_s = false;
  for (; *set; set++) {
    if (*set == lower) return 1;
    has_s |= *set == 's';
  }
  const bool long_s = count >= 2 && bytes[0] == '\xc5' && bytes[1] == '\xbf';
  return any_case && has_s && long_s ? 2 : 0;
}

size_t pretoken_contraction(const char *bytes, size_t count, bool any_case) {
  if (count < 2 || bytes[0] != '\'') return 0;
  const size_t one = letter_in(bytes + 1, count - 1, "sdmt", any_case);
  if (one) return 1 + one;
  static const char *const pairs[] = {"l", "l", "v", "e", "r", "e"};
  for (int i = 0; i < 6; i += 2)
    if (letter_in(bytes + 1, count - 1, pairs[i], any_case) &&
        letter_in(bytes + 2, count - 2, pairs[i + 1], any_case))
      return 3;
  return 0;
}

/* \s+(?!\S)|\s: a run of white space at the end of the text, or all of it but the last character.
 */
static size_t white_space(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t at = word_scan_spaces(bytes, count), last = at ? at - 1 : 0, length;
  while (at < count && (unicode_class_at(unicode, bytes + at, count - at, &length) & SPACE)) {
    last = at;
    at += length;
  }
  return at == count || !last ? at : last;
}

/* \s*[\r\n]+: a run of white space up to its last line break; 0 when it has none. */
static size_t up_to_line_break(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t end = 0, length;
  for (size_t at = 0; at < count; at += length) {
    const uint8_t class = unicode_class_at(unicode, bytes + at, count - at, &length);
    if (!(class & SPACE)) break;
    if (class & UNICODE_LINE) end = at + length;
  }
  return end;
}

/* \p{N}{1,3} */
static size_t up_to_three_numbers(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t at = 0, length;
  for (int i = 0; i < 3 && at < count; i++, at += length)
    if (!(unicode_class_at(unicode, bytes + at, count - at, &length) & NUMBER)) break;
  return at;
}

/* " ?[^\s\p{L}\p{N}]+" and then bytes of `tail`; 0 when it does not match. */
static size_t symbols(const struct unicode *unicode, const char *bytes, size_t count, bool slash) {
  const size_t lead = bytes[0] == ' ';
  const size_t run = unicode_run(unicode, OTHER, bytes + lead, count - lead);
  if (!run) return 0;
  size_t at = lead + run;
  while (at < count && (bytes[at] == '\r' || bytes[at] == '\n' || (slash && bytes[at] == '/')))
    at++;
  return at;
}

/* A word of ASCII letters, with the space before it: the most frequent case of all expressions. 0
 * when it is something else. */
static inline size_t plain_word(const char *bytes, size_t count) {
  const size_t lead = bytes[0] == ' ';
  const size_t letters = word_scan_letters(bytes + lead, count - lead);
  return letters && word_scan_is_end(bytes, count, lead + letters) ? lead + letters : 0;
}

/* --- gpt2: '(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s ------
 */

size_t pretoken_gpt2(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t length;
  const size_t plain = plain_word(bytes, count);
  if (plain) return plain;
  const size_t short_form = pretoken_contraction(bytes, count, false);
  if (short_form) return short_form;
  const size_t lead = bytes[0] == ' ' && count > 1;
  const uint8_t class = unicode_class_at(unicode, bytes + lead, count - lead, &length);
  if (class & SPACE) return white_space(unicode, bytes, count);
  const unsigned set = class & LETTER ? LETTER : class & NUMBER ? NUMBER : OTHER;
  return lead + length + unicode_run(unicode, set, bytes + lead + length, count - lead - length);
}

/* --- cl100k: '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|
 *             " ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
 * ---------------------------- */

static size_t cl100k_or_llama3(const struct unicode *unicode, const char *bytes, size_t count,
                               bool any_end) {
  size_t length;
  const size_t plain = plain_word(bytes, count);
  if (plain) return plain;
  const size_t short_form = pretoken_contraction(bytes, count, true);
  if (short_form) return short_form;
  const uint8_t class = unicode_class_at(unicode, bytes, count, &length);
  const size_t lead = class & (LETTER | NUMBER | UNICODE_LINE) ? 0 : length;
  const size_t word = unicode_run(unicode, LETTER, bytes + lead, count - lead);
  if (word) return lead + word;
  if (class & NUMBER) return up_to_three_numbers(unicode, bytes, count);
  const size_t run = symbols(unicode, bytes, count, false);
  if (run) return run;
  if (!any_end && unicode_run(unicode, SPACE, bytes, count) == count) return count;
  const size_t lines = up_to_line_break(unicode, bytes, count);
  return lines ? lines : white_space(unicode, bytes, count);
}

size_t pretoken_cl100k(const struct unicode *unicode, const char *bytes, size_t count) {
  return cl100k_or_llama3(unicode, bytes, count, false);
}

/* As cl100k, but for white space with line breaks at the end of the text: \s*[\r\n]+|\s+(?!\S)|\s+
 */
size_t pretoken_llama3(const struct unicode *unicode, const char *bytes, size_t count) {
  return cl100k_or_llama3(unicode, bytes, count, true);
}

/* --- o200k ------------------------------------------------------------------------------------
 *   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|...)?
 * | [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|...)?
 * | \p{N}{1,3} | " ?[^\s\p{L}\p{N}]+[\r\n/]*" | \s*[\r\n]+ | \s+(?!\S) | \s+ */

enum { CAPITAL = UNICODE_UPPER | UNICODE_LETTER | UNICODE_MARK };
enum { SMALL = UNICODE_LOWER | UNICODE_LETTER | UNICODE_MARK };

/* CAPITAL* SMALL+: capitals are given back up to the last one that is small as well. */
static size_t ends_small(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t at = 0, small_end = 0, length;
  while (at < count) {
    const uint8_t class = unicode_class_at(unicode, bytes + at, count - at, &length);
    if (!(class & CAPITAL)) break;
    at += length;
    if (class & SMALL) small_end = at;
  }
  const size_t small = unicode_run(unicode, SMALL, bytes + at, count - at);
  return small ? at + small : small_end;
}

/* CAPITAL+ SMALL* */
static size_t begins_capital(const struct unicode *unicode, const char *bytes, size_t count) {
  const size_t capitals = unicode_run(unicode, CAPITAL, bytes, count);
  if (!capitals) return 0;
  return capitals + unicode_run(unicode, SMALL, bytes + capitals, count - capitals);
}

/* A plain word of small letters, the first one possibly a capital, with a contraction behind it. */
static inline size_t plain_cased_word(const char *bytes, size_t count) {
  const size_t lead = bytes[0] == ' ';
  const size_t capital = count > lead && bytes[lead] >= 'A' && bytes[lead] <= 'Z';
  const size_t small = word_scan_small(bytes + lead + capital, count - lead - capital);
  const size_t end = lead + capital + small;
  if (!small || !word_scan_is_end(bytes, count, end)) return 0;
  return end + pretoken_contraction(bytes + end, count - end, true);
}

/* A word by one of the two rules: with the character before it if possible, else without. */
static size_t cased_word(const struct unicode *unicode, const char *bytes, size_t count,
                         size_t lead,
                         size_t (*rule)(const struct unicode *, const char *, size_t)) {
  const size_t behind = lead && lead < count ? rule(unicode, bytes + lead, count - lead) : 0;
  if (behind) return lead + behind;
  return rule(unicode, bytes, count);
}

size_t pretoken_o200k(const struct unicode *unicode, const char *bytes, size_t count) {
  size_t length;
  const size_t plain = plain_cased_word(bytes, count);
  if (plain) return plain;
  const uint8_t class = unicode_class_at(unicode, bytes, count, &length);
  if (class & NUMBER) return up_to_three_numbers(unicode, bytes, count);
  const size_t lead = class & (LETTER | UNICODE_LINE) ? 0 : length;
  size_t word = cased_word(unicode, bytes, count, lead, ends_small);
  if (!word) word = cased_word(unicode, bytes, count, lead, begins_capital);
  if (word) return word + pretoken_contraction(bytes + word, count - word, true);
  const size_t run = symbols(unicode, bytes, count, true);
  if (run) return run;
  const size_t lines = up_to_line_break(unicode, bytes, count);
  return lines ? lines : white_space(unicode, bytes, count);
}
