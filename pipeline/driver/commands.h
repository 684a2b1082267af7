/* The commands of commands.def that are carried out here. Each prints to stdout and takes argv as
 * main does, argv[0] being the command's name. Local. USAGE for a wrong command line, and what the
 * command meets. */
#ifndef PIPELINE_DRIVER_COMMANDS_H
#define PIPELINE_DRIVER_COMMANDS_H

#include "pipeline/base/error.h"

#define COMMAND(name, function, operands, help) enum status function(int argc, char **argv);
#define PROGRAM(name, program, operands, help)
#include "pipeline/driver/commands.def"
#undef COMMAND
#undef PROGRAM

#endif
