/* `millrace tokenize`: ids of a text, or the text of ids, for a person at a shell. */
#ifndef STAGES_TOKENIZE_TOKENIZE_COMMAND_H
#define STAGES_TOKENIZE_TOKENIZE_COMMAND_H

#include <stdbool.h>

#include "pipeline/base/text.h"

/* Whether these arguments (behind the word tokenize) are for this command and not for a stage.
 * Local. */
bool tokenize_command_is_meant(int argc, char *const argv[]);

/* Carries out `--tokenizer SPEC --text TEXT | --decode IDS [--pieces]`; what to print is appended
 * to `output`. SPEC as for tokenizer_open. Local. USAGE for wrong flags; as tokenizer_open. */
enum status tokenize_command(struct text *output, int argc, char *const argv[]);

#endif
