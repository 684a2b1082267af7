/* Options of a node: a struct with one typed member per row of options.def, and the table behind
 * it. A struct options is plain data and may be copied; texts in it are borrowed from literals or
 * from the recipe it was read with.
 *
 * In code that has no recipe (tests): options_defaults(&options), then assign members.
 */
#ifndef PIPELINE_CONFIG_OPTIONS_H
#define PIPELINE_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/choices.def"
#include "pipeline/config/kinds.h"

enum { OPTION_ITEMS = 64 }; /* the longest list */

#define CHOICE_CONSTANT(constant, word) constant,
#define CHOICE_ENUM(list) enum list##_choice{CHOICES_##list(CHOICE_CONSTANT)};
CHOICE_LISTS(CHOICE_ENUM)
#undef CHOICE_CONSTANT
#undef CHOICE_ENUM

struct option_integers {
  size_t count;
  int64_t values[OPTION_ITEMS];
};

struct option_reals {
  size_t count;
  double values[OPTION_ITEMS];
};

struct option_texts {
  size_t count;
  const char *values[OPTION_ITEMS]; /* borrowed */
};

/* Settings of other nodes, "node.key=value" each. */
struct option_settings {
  size_t count;
  const char *const *values; /* borrowed */
};

#define OPTION_MEMBER_INTEGER int64_t
#define OPTION_MEMBER_REAL double
#define OPTION_MEMBER_BOOLEAN bool
#define OPTION_MEMBER_TEXT const char *
#define OPTION_MEMBER_PATH const char *
#define OPTION_MEMBER_CHOICE(list) enum list##_choice
#define OPTION_MEMBER_INTEGERS struct option_integers
#define OPTION_MEMBER_REALS struct option_reals
#define OPTION_MEMBER_PATHS struct option_texts
#define OPTION_MEMBER_SETTINGS struct option_settings

struct options {
#define OPTION(key, type, fallback, min, max, unit, kinds, when, effect, help)                     \
  OPTION_MEMBER_##type key;
#include "pipeline/config/options.def"
#undef OPTION
};

enum option {
#define OPTION(key, type, fallback, min, max, unit, kinds, when, effect, help) OPTION_##key,
#include "pipeline/config/options.def"
#undef OPTION
  OPTION_COUNT
};

enum option_type {
  OPTION_TYPE_INTEGER,
  OPTION_TYPE_REAL,
  OPTION_TYPE_BOOLEAN,
  OPTION_TYPE_TEXT,
  OPTION_TYPE_PATH,
  OPTION_TYPE_CHOICE,
  OPTION_TYPE_INTEGERS,
  OPTION_TYPE_REALS,
  OPTION_TYPE_PATHS,
  OPTION_TYPE_SETTINGS
};

/* One row of the table. */
struct option_row {
  const char *key;
  enum option_type type;
  const char *const *choices; /* ended by NULL; NULL for other types */
  const char *fallback;       /* NULL: required */
  double min, max;
  const char *unit;
  unsigned kinds;
  const char *when;
  bool changes_result;
  const char *help;
  size_t offset; /* of the member in struct options */
};

/* A value as written: one scalar, or the items of a list. `where` names the place in errors. */
struct option_text {
  const char *const *items; /* borrowed, and so is what options_set stores of it */
  size_t count;
  bool is_list;
  const char *where; /* "demo.yaml:12" or "--set elf.steps=x" */
};

/* The rows, in the order of options.def. Borrowed. Local. */
const struct option_row *options_row(enum option option);

/* The option called `key`; OPTION_COUNT when there is none. Local. */
enum option options_find(const char *key);

/* The key nearest to `key` among the options that nodes of these kinds read, or NULL. Borrowed.
 * Local. */
const char *options_nearest(const char *key, unsigned kinds);

/* Sets every member to the default of its row; required ones to zero, empty, or the first choice.
 * Local. */
void options_defaults(struct options *options);

/* Sets one member from its written form. Local. MISMATCH on wrong type, unknown choice or a value
 * out of range. */
enum status options_set(struct options *options, enum option option, struct option_text value);

/* Whether a node of this kind with these options reads `option`: its kind is in the row's and the
 * row's conditions hold. `why`, unless NULL, receives the conditions when they are what fails, and
 * NULL otherwise. Local. */
bool options_applies(const struct options *options, enum kind kind, enum option option,
                     const char **why);

/* The word of a CHOICE option's present value, such as "adamw". Borrowed. Local. */
const char *options_choice(const struct options *options, enum option option);

/* Appends the value as a recipe would write it. Reading it back gives the same bits. Local. */
enum status options_format(struct text *text, const struct options *options, enum option option);

/* Rules over several options of one node (options_check.c). `where` and `node` are for the
 * message. Local. MISMATCH. */
enum status options_check(const struct options *options, enum kind kind, const char *node,
                          const char *where);

/* Appends the options of a kind with type, default, range, unit and help, for --help (plain) or
 * for the documentation (a Markdown table). Local. */
enum status options_help(struct text *text, enum kind kind);
enum status options_document(struct text *text);

#endif
