/* The driver's command line: a command, operands and the flags of flags.def in any order. */
#ifndef PIPELINE_DRIVER_ARGUMENTS_H
#define PIPELINE_DRIVER_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

enum { ARGUMENT_ITEMS = 128 };

struct argument_list {
  size_t count;
  const char *items[ARGUMENT_ITEMS];
};

#define FLAG_MEMBER_TEXT const char *
#define FLAG_MEMBER_INTEGER int64_t
#define FLAG_MEMBER_SWITCH bool
#define FLAG_MEMBER_LIST struct argument_list

/* Texts are borrowed from argv; what was not given is NULL, 0 or false. */
struct arguments {
  struct argument_list operands;
#define FLAG(name, member, kind, value, commands, help) FLAG_MEMBER_##kind member;
#include "pipeline/driver/flags.def"
#undef FLAG
};

/* Reads the words after the command: argv[0 .. argc - 1]. Local. USAGE for an unknown flag, one
 * that the command does not read, a flag without its value, or too many of them. */
enum status arguments_parse(struct arguments *arguments, const char *command, int argc,
                            char *const argv[]);

/* Appends the flags with their help. Local. */
enum status arguments_help(struct text *text);

#endif
