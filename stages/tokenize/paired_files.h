/* Two files that answer each other line by line: a source and its target in each pair of lines.
 * Either may be plain, compressed or an archive. The target is read by a thread of its own, a
 * bounded number of bytes ahead.
 */
#ifndef STAGES_TOKENIZE_PAIRED_FILES_H
#define STAGES_TOKENIZE_PAIRED_FILES_H

#include "stages/tokenize/inputs.h"

/* Gives all pairs of lines to the splitter's sink (add_pair); what has a blank side is counted in
 * splitter->empty. Local. MISMATCH when the files differ in their number of lines, DAMAGED and
 * others as inputs_read. */
enum status paired_files_read(const struct input_file *source, const struct input_file *target,
                              struct splitter *splitter);

#endif
