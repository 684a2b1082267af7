/* Tokens of mteval-v13a.pl as sacreBLEU cuts them: four rules of replacement, one after the other,
 * each of which consumes what it matched. */
#include <stdbool.h>
#include <string.h>

#include "stages/evaluate/bleu.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_stop(char c) {
  return c == '.' || c == ',';
}

/* Symbols that are always tokens by themselves. */
static bool is_symbol(char c) {
  return c && strchr("{|}~[\\]^_` !\"#$%&()*+:;<=>?@/", c);
}

struct entity {
  const char *name, *character;
};

static const struct entity entities[] = {{"<skipped>", ""}, {"-\n", ""},   {"&quot;", "\""},
                                         {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};

/* One text after the other through all bytes that begin with `name`. */
static enum status replace(struct text *out, const struct text *in, const struct entity *entity) {
  const size_t length = strlen(entity->name);
  text_clear(out);
  TRY(text_add(out, ""));
  for (size_t i = 0; i < in->length;) {
    const bool found = in->length - i >= length && !memcmp(in->bytes + i, entity->name, length);
    TRY(found ? text_add(out, entity->character) : text_add_bytes(out, in->bytes + i, 1));
    i += found ? length : 1;
  }
  return STATUS_OK;
}

/* Symbols get spaces around them; line ends are spaces. */
static enum status part_symbols(struct text *out, const struct text *in) {
  for (size_t i = 0; i < in->length; i++) {
    const char c = in->bytes[i] == '\n' ? ' ' : in->bytes[i];
    if (is_symbol(c)) TRY(text_add(out, " "));
    TRY(text_add_bytes(out, &c, 1));
    if (is_symbol(c)) TRY(text_add(out, " "));
  }
  return STATUS_OK;
}

/* A rule on two neighbours: whether it holds, and where its spaces go. */
struct rule {
  bool (*holds)(char first, char second);
  bool before, behind; /* of the pair; there is always one between */
};

static bool stop_behind(char first, char second) {
  return !is_digit(first) && is_stop(second);
}

static bool stop_before(char first, char second) {
  return is_stop(first) && !is_digit(second);
}

static bool dash_behind_digit(char first, char second) {
  return is_digit(first) && second == '-';
}

static const struct rule rules[] = {
    {stop_behind, false, true}, {stop_before, true, false}, {dash_behind_digit, false, true}};

static enum status apply(struct text *out, const struct text *in, const struct rule *rule) {
  for (size_t i = 0; i < in->length; i++) {
    const char *pair = in->bytes + i;
    if (i + 1 == in->length || !rule->holds(pair[0], pair[1])) {
      TRY(text_add_bytes(out, pair, 1));
      continue;
    }
    TRY(text_add(out, rule->before ? " " : ""));
    TRY(text_add_bytes(out, pair, 1));
    TRY(text_add(out, " "));
    TRY(text_add_bytes(out, pair + 1, 1));
    TRY(text_add(out, rule->behind ? " " : ""));
    i++;
  }
  return STATUS_OK;
}

/* Length of white space at `bytes` as Python's str.split sees it; 0 where there is none. */
static size_t space_at(const unsigned char *bytes, size_t count) {
  static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                     "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                     "\xe2\x81\x9f", "\xe3\x80\x80"};
  if ((bytes[0] >= 9 && bytes[0] <= 13) || (bytes[0] >= 28 && bytes[0] <= 32)) return 1;
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (count >= strlen(wide[i]) && !memcmp(bytes, wide[i], strlen(wide[i])))
      return strlen(wide[i]);
  const bool general = count >= 3 && bytes[0] == 0xe2 && bytes[1] == 0x80;
  return general && bytes[2] >= 0x80 && bytes[2] <= 0x8a ? 3 : 0;
}

static enum status squeeze(struct text *out, const struct text *in) {
  bool open = false;
  text_clear(out);
  TRY(text_add(out, ""));
  for (size_t i = 0; i < in->length;) {
    const size_t space = space_at((const unsigned char *)in->bytes + i, in->length - i);
    if (space) {
      open = false;
      i += space;
      continue;
    }
    if (!open && out->length) TRY(text_add(out, " "));
    open = true;
    TRY(text_add_bytes(out, in->bytes + i++, 1));
  }
  return STATUS_OK;
}

static enum status run_rules(struct text *a, struct text *b) {
  for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
    TRY(replace(b, a, &entities[i]));
    const struct text swapped = *a;
    *a = *b;
    *b = swapped;
  }
  text_clear(b);
  TRY(part_symbols(b, a));
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const struct text swapped = *a;
    *a = *b;
    *b = swapped;
    text_clear(b);
    TRY(apply(b, a, &rules[i]));
  }
  return STATUS_OK;
}

enum status bleu_tokenize(struct text *out, const char *bytes, size_t count) {
  struct text a = {0}, b = {0};
  size_t end = count; /* without white space at the end, before anything else */
  while (end > 0 && space_at((const unsigned char *)bytes + end - 1, 1)) end--;
  enum status status = text_add(&a, " ");
  if (status == STATUS_OK) status = text_add_bytes(&a, bytes, end);
  if (status == STATUS_OK) status = text_add(&a, " ");
  if (status == STATUS_OK) status = run_rules(&a, &b);
  if (status == STATUS_OK) status = squeeze(out, &b);
  text_free(&a);
  text_free(&b);
  return status;
}
