/* The verbs of `millrace data` that look at whole nodes; they print to stdout. Local. */
#ifndef PIPELINE_DRIVER_DATA_COMMANDS_H
#define PIPELINE_DRIVER_DATA_COMMANDS_H

#include "pipeline/base/error.h"

/* Counts of a finished tokenize node: rows, tokens, lengths, use of the vocabulary, compression.
 * MISMATCH for another folder, DAMAGED names what cannot be read. */
enum status data_stat(const char *folder);

/* Looks for faults: hashes, ids outside the vocabulary, rows without text, documents on both sides,
 * counts that differ from the manifest's. DAMAGED when there are any, each of them printed. */
enum status data_audit(const char *folder);

/* Compares two finished nodes or two files of tensors: options, facts, and where the tokens differ
 * first. MISMATCH when they differ. */
enum status data_diff(const char *a, const char *b);

#endif
