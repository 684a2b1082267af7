#include "pipeline/config/options.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define CHOICE_WORD(constant, word) word,
#define CHOICE_WORDS(list)                                                                         \
  static const char *const list##_words[] = {CHOICES_##list(CHOICE_WORD) NULL};
CHOICE_LISTS(CHOICE_WORDS)

/* A column of options.def each, by the row's type. */
#define TYPE_INTEGER OPTION_TYPE_INTEGER
#define TYPE_REAL OPTION_TYPE_REAL
#define TYPE_BOOLEAN OPTION_TYPE_BOOLEAN
#define TYPE_TEXT OPTION_TYPE_TEXT
#define TYPE_PATH OPTION_TYPE_PATH
#define TYPE_CHOICE(list) OPTION_TYPE_CHOICE
#define TYPE_INTEGERS OPTION_TYPE_INTEGERS
#define TYPE_REALS OPTION_TYPE_REALS
#define TYPE_PATHS OPTION_TYPE_PATHS
#define TYPE_SETTINGS OPTION_TYPE_SETTINGS
#define WORDS_INTEGER NULL
#define WORDS_REAL NULL
#define WORDS_BOOLEAN NULL
#define WORDS_TEXT NULL
#define WORDS_PATH NULL
#define WORDS_CHOICE(list) list##_words
#define WORDS_INTEGERS NULL
#define WORDS_REALS NULL
#define WORDS_PATHS NULL
#define WORDS_SETTINGS NULL
#define REQUIRED NULL

enum effect { NONE, RESULT };

static const struct option_row rows[OPTION_COUNT] = {
#define OPTION(key, type, fallback, min, max, unit, kinds, when, effect, help)                     \
  {#key, TYPE_##type,       WORDS_##type, fallback,         min,  max,                             \
   unit, (unsigned)(kinds), when,         effect == RESULT, help, offsetof(struct options, key)},
#include "pipeline/config/options.def"
#undef OPTION
};

const struct option_row *options_row(enum option option) {
  return &rows[option];
}

enum option options_find(const char *key) {
  int option = 0;
  while (option < OPTION_COUNT && strcmp(rows[option].key, key) != 0) option++;
  return (enum option)option;
}

const char *options_nearest(const char *key, unsigned kinds) {
  const char *keys[OPTION_COUNT];
  size_t count = 0;
  for (int i = 0; i < OPTION_COUNT; i++)
    if (rows[i].kinds & kinds) keys[count++] = rows[i].key;
  return text_nearest(key, keys, count);
}

/* Defaults are written like values of a recipe: "[a, b]" is split at its commas. */
static void set_default(struct options *options, enum option option) {
  static const char *const table[] = {"options.def"};
  const char *fallback = rows[option].fallback;
  if (!fallback || !*fallback) return;
  struct option_text value = {.items = &fallback, .count = 1, .where = table[0]};
  char copy[256];
  const char *items[OPTION_ITEMS];
  if (*fallback == '[') {
    const size_t length = strlen(fallback);
    assert(length < sizeof copy);
    memcpy(copy, fallback + 1, length);
    value = (struct option_text){.items = items, .is_list = true, .where = table[0]};
    char *rest = copy;
    for (char *item = strtok_r(copy, " ,]", &rest); item; item = strtok_r(NULL, " ,]", &rest))
      items[value.count++] = item;
  }
  const enum status status = options_set(options, option, value);
  assert(status == STATUS_OK); /* the table is proved by a test */
  (void)status;
}

static void clear_text(struct options *options, enum option option) {
  if (rows[option].type != OPTION_TYPE_TEXT && rows[option].type != OPTION_TYPE_PATH) return;
  *(const char **)((char *)options + rows[option].offset) = "";
}

void options_defaults(struct options *options) {
  memset(options, 0, sizeof *options);
  for (int i = 0; i < OPTION_COUNT; i++) {
    clear_text(options, (enum option)i);
    set_default(options, (enum option)i);
  }
}

const char *options_choice(const struct options *options, enum option option) {
  unsigned value; /* every enum of choices.def is an int of non-negative values */
  memcpy(&value, (const char *)options + rows[option].offset, sizeof value);
  return rows[option].choices[value];
}

static const char *word_of(const struct options *options, enum option option) {
  if (rows[option].type == OPTION_TYPE_CHOICE) return options_choice(options, option);
  assert(rows[option].type == OPTION_TYPE_BOOLEAN);
  return *(const bool *)((const char *)options + rows[option].offset) ? "true" : "false";
}

/* Whether `word` is one of the |-separated words of `list`, which ends at a space or a zero. */
static bool list_has(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (;; list++) {
    const size_t item = strcspn(list, "| ");
    if (item == length && memcmp(list, word, length) == 0) return true;
    list += item;
    if (*list != '|') return false;
  }
}

static bool condition_holds(const struct options *options, const char *condition) {
  char key[64];
  const size_t length = strcspn(condition, "=");
  assert(length < sizeof key && condition[length] == '=');
  memcpy(key, condition, length);
  key[length] = '\0';
  const enum option option = options_find(key);
  assert(option != OPTION_COUNT);
  return list_has(condition + length + 1, word_of(options, option));
}

bool options_applies(const struct options *options, enum kind kind, enum option option,
                     const char **why) {
  if (why) *why = NULL;
  if (!(rows[option].kinds & (1u << kind))) return false;
  for (const char *when = rows[option].when; *when;) {
    if (!condition_holds(options, when)) {
      if (why) *why = rows[option].when;
      return false;
    }
    when += strcspn(when, " ");
    when += strspn(when, " ");
  }
  return true;
}
