#include "stages/tokenize/pretoken_window.h"

#include <stdbool.h>
#include <string.h>

#include "stages/tokenize/pretoken.h"

enum { BYTES = ASCII_MASKS_BYTES };

/* What is known of a window. Each byte of a character beyond ASCII has the class of the character,
 * so that no boundary falls inside it. */
struct view {
  struct ascii_masks ascii;
  uint64_t upper, lower, either; /* either: letters without case, and marks if they count as such */
  uint64_t number, white, symbol;
  uint64_t mark;   /* among `either` */
  uint64_t inside; /* bytes behind the first one of their character */
  int certain;     /* boundaries up to this place depend on nothing that is not known */
};

/* Boundaries depend on up to two bytes behind them. */
static void doubt(struct view *view, uint64_t places) {
  if (!places) return;
  const int certain = __builtin_ctzll(places) - 3;
  if (certain < view->certain) view->certain = certain;
}

/* Puts the characters beyond ASCII into their classes. */
static void add_beyond(struct view *view, const struct unicode *unicode, const char *bytes,
                       size_t count, bool marks_are_letters) {
  size_t length;
  for (uint64_t left = view->ascii.beyond; left;) {
    const int at = __builtin_ctzll(left);
    const uint8_t class =
        unicode_class_beyond_ascii(unicode, bytes + at, count - (size_t)at, &length);
    const uint64_t place = (((uint64_t)1 << length) - 1) << at;
    left &= ~place;
    view->inside |= place & (place - 1);
    view->mark |= class & UNICODE_MARK && marks_are_letters ? place : 0;
    if (class & UNICODE_UPPER)
      view->upper |= place;
    else if (class & UNICODE_LOWER)
      view->lower |= place;
    else if (class & UNICODE_LETTER || (class & UNICODE_MARK && marks_are_letters))
      view->either |= place;
    else if (class & UNICODE_NUMBER)
      view->number |= place;
    else if (class & UNICODE_SPACE)
      view->white |= place;
  }
}

/* Looks at up to 64 of `count` bytes. Behind the end of the text stand spaces, which cut it as its
 * end does. */
static void look(struct view *view, const struct pretoken_window *window, const char *bytes,
                 size_t count, bool marks_are_letters) {
  char padded[BYTES];
  const char *from = bytes;
  if (count < BYTES) {
    memset(padded, ' ', sizeof padded);
    memcpy(padded, bytes, count);
    from = padded;
  }
  window->masks(&view->ascii, from);
  view->upper = view->ascii.upper;
  view->lower = view->ascii.lower;
  view->number = view->ascii.digit;
  view->white = view->ascii.white;
  view->either = view->mark = view->inside = 0;
  view->certain = count < BYTES ? (int)count : BYTES - 3;
  if (view->ascii.beyond) add_beyond(view, window->unicode, bytes, count, marks_are_letters);
  view->symbol = ~(view->upper | view->lower | view->either | view->number | view->white);
  doubt(view, view->white & view->ascii.beyond);
}

/* Of the boundaries found, those that are certain, and the end of the text. */
static uint64_t certain_starts(const struct view *view, uint64_t starts, size_t count) {
  if (view->certain <= 0) return 0;
  if (count < BYTES) starts |= (uint64_t)1 << count;
  return starts & (((uint64_t)2 << view->certain) - 1) & ~(uint64_t)1;
}

/* White space, all but the last character of a run that something follows; and its last one. */
static uint64_t white_starts(const struct view *view) {
  const uint64_t white = view->white;
  return white & (~(white << 1) | ~white >> 1);
}

/* Makes `length` bytes from `at` on a part of what is before them. */
static uint64_t join(uint64_t starts, size_t at, size_t length) {
  if (at >= BYTES) return starts;
  starts &= ~((((uint64_t)1 << length) - 1) << at);
  return at + length < BYTES ? starts | (uint64_t)1 << (at + length) : starts;
}

/* --- gpt2: '(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s ------
 */

uint64_t pretoken_starts_gpt2(const struct pretoken_window *window, const char *bytes,
                              size_t count) {
  struct view view;
  look(&view, window, bytes, count, false);
  const uint64_t letter = view.upper | view.lower | view.either;
  const uint64_t same =
      (letter & letter << 1) | (view.number & view.number << 1) | (view.symbol & view.symbol << 1);
  uint64_t starts = (~view.white & ~same & ~(view.ascii.space << 1)) | white_starts(&view);
  for (uint64_t left = view.ascii.apostrophe & (starts | 1); left; left &= left - 1) {
    const size_t at = (size_t)__builtin_ctzll(left);
    const size_t length = pretoken_contraction(bytes + at, count - at, false);
    if (length) starts = join(starts, at + 1, length - 1);
  }
  return certain_starts(&view, starts, count);
}

/* --- cl100k and o200k -------------------------------------------------------------------------
 * (expressions: pretoken.c) */

/* Symbols that begin a pre-token, all their bytes: those behind no symbol and no space. */
static uint64_t first_symbols(const struct view *view) {
  uint64_t first =
      view->symbol & ~view->inside & (~(view->symbol << 1 | view->ascii.space << 1) | 1);
  if (view->inside)
    for (int i = 0; i < 3; i++) first |= first << 1 & view->inside;
  return first & view->symbol;
}

/* Every third number of a run, beginning with its first. */
static uint64_t third_numbers(struct view *view) {
  const uint64_t number = view->number, third = number & number << 1 & number << 2;
  uint64_t found = 0;
  for (uint64_t next = number & ~(number << 1); next; next = next << 3 & third) found |= next;
  doubt(view, number & view->ascii.beyond);
  return found;
}

/* Line breaks behind a symbol belong to it, others to the white space before them; what is behind
 * the last line break of a run is cut as in gpt2. */
static uint64_t white_and_line_starts(struct view *view, bool may_end) {
  const uint64_t white = view->white, line = view->ascii.line, plain = white & ~line;
  const uint64_t behind_line = plain & line << 1;
  uint64_t run_ends;
  const bool open = __builtin_add_overflow(behind_line, plain, &run_ends);
  if ((open && !may_end) || (run_ends & ~plain & line)) doubt(view, behind_line);
  return (white & ~(white << 1) & ~(line & view->symbol << 1)) | behind_line |
         (plain & ~white >> 1);
}

/* What both families share; `splits`: boundaries between letters. */
static uint64_t common_starts(struct view *view, uint64_t letter, uint64_t splits, bool may_end) {
  const uint64_t first = first_symbols(view);
  const uint64_t ends_before = view->number | view->ascii.line | (view->symbol & ~first);
  return splits | (letter & ends_before << 1) | third_numbers(view) | (first & ~view->inside) |
         white_and_line_starts(view, may_end);
}

static uint64_t cl100k_or_llama3(const struct pretoken_window *window, const char *bytes,
                                 size_t count, bool may_end) {
  struct view view;
  look(&view, window, bytes, count, false);
  const uint64_t letter = view.upper | view.lower | view.either;
  uint64_t starts = common_starts(&view, letter, 0, may_end);
  for (uint64_t left = view.ascii.apostrophe & (starts | 1); left; left &= left - 1) {
    const size_t at = (size_t)__builtin_ctzll(left);
    const size_t length = pretoken_contraction(bytes + at, count - at, true);
    if (length) starts = join(starts, at + 1, length - 1);
  }
  return certain_starts(&view, starts, count);
}

uint64_t pretoken_starts_cl100k(const struct pretoken_window *window, const char *bytes,
                                size_t count) {
  return cl100k_or_llama3(window, bytes, count, false);
}

uint64_t pretoken_starts_llama3(const struct pretoken_window *window, const char *bytes,
                                size_t count) {
  return cl100k_or_llama3(window, bytes, count, count < BYTES);
}

uint64_t pretoken_starts_o200k(const struct pretoken_window *window, const char *bytes,
                               size_t count) {
  struct view view;
  look(&view, window, bytes, count, true);
  const uint64_t letter = view.upper | view.lower | view.either;
  uint64_t starts = common_starts(&view, letter, view.upper & view.lower << 1, count < BYTES);
  size_t after = BYTES; /* the end of the contraction before, behind which none follows */
  for (uint64_t left = view.ascii.apostrophe & letter << 1; left; left &= left - 1) {
    const size_t at = (size_t)__builtin_ctzll(left);
    const size_t length = at == after ? 0 : pretoken_contraction(bytes + at, count - at, true);
    if (length) starts = join(starts, at, length);
    if (length) after = at + length;
  }
  doubt(&view, view.upper & view.either << 1);
  doubt(&view, view.mark & view.symbol << 1);
  doubt(&view, view.ascii.slash & view.ascii.line << 1);
  return certain_starts(&view, starts, count);
}
