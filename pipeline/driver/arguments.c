#include "pipeline/driver/arguments.h"

#include <string.h>

enum flag_kind { TEXT, INTEGER, SWITCH, LIST };

static const struct flag {
  const char *name, *value, *commands, *help;
  enum flag_kind kind;
  size_t offset;
} flags[] = {
#define FLAG(name, member, kind, value, commands, help)                                            \
  {name, value, commands, help, kind, offsetof(struct arguments, member)},
#include "pipeline/driver/flags.def"
#undef FLAG
};
enum { FLAG_COUNT = sizeof flags / sizeof *flags };

static enum status find_flag(const struct flag **flag, const char *name) {
  const char *names[FLAG_COUNT];
  for (size_t i = 0; i < FLAG_COUNT; i++) {
    names[i] = flags[i].name;
    if (strcmp(name, flags[i].name) != 0) continue;
    *flag = &flags[i];
    return STATUS_OK;
  }
  const char *nearest = text_nearest(name, names, FLAG_COUNT);
  FAIL(STATUS_USAGE, "unknown flag '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
       nearest ? nearest : "", nearest ? "'?" : "");
}

/* Whether `word` is one of the words of a list. */
static bool is_among(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = list; *at; at += strspn(at, " ")) {
    const size_t next = strcspn(at, " ");
    if (next == length && strncmp(at, word, length) == 0) return true;
    at += next;
  }
  return false;
}

static enum status check_command(const struct flag *flag, const char *command) {
  CHECK(!*flag->commands || is_among(flag->commands, command), STATUS_USAGE,
        "'%s' does not read %s, which is for: %s", command, flag->name, flag->commands);
  return STATUS_OK;
}

static enum status push(struct argument_list *list, const char *item) {
  CHECK(list->count < ARGUMENT_ITEMS, STATUS_USAGE, "more than %d of these: '%s'",
        (int)ARGUMENT_ITEMS, item);
  list->items[list->count++] = item;
  return STATUS_OK;
}

static enum status store(void *member, const struct flag *flag, const char *value) {
  if (flag->kind == LIST) return push(member, value);
  if (flag->kind == TEXT) *(const char **)member = value;
  if (flag->kind == INTEGER)
    CHECK(text_parse_integer(member, value) && *(int64_t *)member > 0, STATUS_USAGE,
          "%s: expected a positive integer, found '%s'", flag->name, value);
  return STATUS_OK;
}

enum status arguments_parse(struct arguments *arguments, const char *command, int argc,
                            char *const argv[]) {
  memset(arguments, 0, sizeof *arguments);
  for (int i = 0; i < argc; i++) {
    if (argv[i][0] != '-') {
      TRY(push(&arguments->operands, argv[i]));
      continue;
    }
    const struct flag *flag = NULL;
    TRY(find_flag(&flag, argv[i]));
    TRY(check_command(flag, command));
    char *member = (char *)arguments + flag->offset;
    if (flag->kind == SWITCH) {
      *(bool *)member = true;
      continue;
    }
    CHECK(i + 1 < argc, STATUS_USAGE, "%s needs a value: %s %s", flag->name, flag->name,
          flag->value);
    TRY(store(member, flag, argv[++i]));
  }
  if (!arguments->runs) arguments->runs = "runs";
  return STATUS_OK;
}

enum status arguments_help(struct text *text) {
  for (size_t i = 0; i < FLAG_COUNT; i++)
    TRY(text_format(text, "  %-16s %-16s %s%s%s\n", flags[i].name, flags[i].value,
                    flags[i].commands, *flags[i].commands ? ": " : "", flags[i].help));
  return STATUS_OK;
}
