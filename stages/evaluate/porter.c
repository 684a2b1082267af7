#include "stages/evaluate/porter.h"

#include <stdbool.h>
#include <string.h>

/* A word being stemmed. */
struct word {
  char *at; /* room for PORTER_BYTES */
  size_t count;
};

static bool is_vowel(char c) {
  return c && strchr("aeiou", c);
}

/* Whether letter i of a word is a consonant; y is one at the beginning and behind a vowel. */
static bool is_consonant(const char *word, size_t i) {
  if (is_vowel(word[i])) return false;
  if (word[i] != 'y') return true;
  return i == 0 || !is_consonant(word, i - 1);
}

/* Changes from vowels to consonants in the first `count` letters. */
static int measure(const char *word, size_t count) {
  int changes = 0;
  for (size_t i = 1; i < count; i++) changes += !is_consonant(word, i - 1) && is_consonant(word, i);
  return changes;
}

static bool has_vowel(const char *word, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!is_consonant(word, i)) return true;
  return false;
}

static bool ends_double(const char *word, size_t count) {
  return count >= 2 && word[count - 1] == word[count - 2] && is_consonant(word, count - 1);
}

/* Consonant, vowel, consonant other than w, x and y; or a vowel and a consonant alone. */
static bool ends_short(const char *word, size_t count) {
  if (count == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
  return count >= 3 && is_consonant(word, count - 3) && !is_consonant(word, count - 2) &&
         is_consonant(word, count - 1) && !strchr("wxy", word[count - 1]);
}

static bool ends(const struct word *word, const char *suffix) {
  const size_t length = strlen(suffix);
  return word->count >= length && !memcmp(word->at + word->count - length, suffix, length);
}

/* Replaces the last `length` letters. */
static void replace(struct word *word, size_t length, const char *replacement) {
  word->count -= length;
  memcpy(word->at + word->count, replacement, strlen(replacement));
  word->count += strlen(replacement);
}

/* The first suffix that fits decides, whether or not its stem measures more than `least`. */
struct rule {
  const char *suffix, *replacement;
};

static void apply(struct word *word, const struct rule *rules, size_t count, int least) {
  for (size_t i = 0; i < count; i++) {
    if (!ends(word, rules[i].suffix)) continue;
    const size_t length = strlen(rules[i].suffix);
    if (measure(word->at, word->count - length) > least)
      replace(word, length, rules[i].replacement);
    return;
  }
}

static void step_1a(struct word *word) {
  static const struct rule rules[] = {{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}};
  if (ends(word, "ies") && word->count == 4)
    replace(word, 3, "ie");
  else
    apply(word, rules, 4, -1);
}

/* What is left of a word behind -ed or -ing. */
static void mend(struct word *word) {
  const char last = word->at[word->count - 1];
  if (ends(word, "at") || ends(word, "bl") || ends(word, "iz")) {
    replace(word, 0, "e");
  } else if (ends_double(word->at, word->count)) {
    if (!strchr("lsz", last)) word->count--;
  } else if (measure(word->at, word->count) == 1 && ends_short(word->at, word->count)) {
    replace(word, 0, "e");
  }
}

static void step_1b(struct word *word) {
  if (ends(word, "ied")) {
    replace(word, 3, word->count == 4 ? "ie" : "i");
    return;
  }
  if (ends(word, "eed")) {
    if (measure(word->at, word->count - 3) > 0) word->count--;
    return;
  }
  const size_t length = ends(word, "ed") ? 2 : ends(word, "ing") ? 3 : 0;
  if (length == 0 || !has_vowel(word->at, word->count - length)) return;
  word->count -= length;
  mend(word);
}

static void step_1c(struct word *word) {
  const size_t stem = word->count - 1;
  if (ends(word, "y") && stem > 1 && is_consonant(word->at, stem - 1)) replace(word, 1, "i");
}

static void step_2(struct word *word) {
  static const struct rule rules[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},
                                      {"anci", "ance"},   {"izer", "ize"},    {"bli", "ble"},
                                      {"alli", "al"},     {"entli", "ent"},   {"eli", "e"},
                                      {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                                      {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"},
                                      {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},
                                      {"iviti", "ive"},   {"biliti", "ble"},  {"fulli", "ful"}};
  if (ends(word, "alli") && measure(word->at, word->count - 4) > 0) replace(word, 4, "al");
  if (ends(word, "logi")) {
    if (measure(word->at, word->count - 3) > 0) word->count--;
    return;
  }
  apply(word, rules, sizeof rules / sizeof *rules, 0);
}

static void step_3(struct word *word) {
  static const struct rule rules[] = {{"icate", "ic"}, {"ative", ""},  {"alize", "al"},
                                      {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""},
                                      {"ness", ""}};
  apply(word, rules, sizeof rules / sizeof *rules, 0);
}

static void step_4(struct word *word) {
  static const struct rule rules[] = {
      {"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
      {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
      {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};
  const bool ion = ends(word, "sion") || ends(word, "tion");
  if (!ion)
    apply(word, rules, sizeof rules / sizeof *rules, 1);
  else if (measure(word->at, word->count - 3) > 1)
    word->count -= 3;
}

static void step_5(struct word *word) {
  if (ends(word, "e")) {
    const size_t stem = word->count - 1;
    const int size = measure(word->at, stem);
    if (size > 1 || (size == 1 && !ends_short(word->at, stem))) word->count--;
  }
  if (ends(word, "ll") && measure(word->at, word->count - 1) > 1) word->count--;
}

static const struct irregular {
  const char *form, *stem;
} irregulars[] = {
    {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},
    {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
    {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
    {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};

static bool take_irregular(struct word *word) {
  for (size_t i = 0; i < sizeof irregulars / sizeof *irregulars; i++) {
    if (strlen(irregulars[i].form) != word->count || !ends(word, irregulars[i].form)) continue;
    replace(word, word->count, irregulars[i].stem);
    return true;
  }
  return false;
}

size_t porter_stem(char *word, size_t count) {
  struct word stem = {word, count};
  if (count <= 2 || count >= PORTER_BYTES || take_irregular(&stem)) return stem.count;
  step_1a(&stem);
  step_1b(&stem);
  step_1c(&stem);
  step_2(&stem);
  step_3(&stem);
  step_4(&stem);
  step_5(&stem);
  return stem.count;
}
