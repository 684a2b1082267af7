/* The input files of a tokenize node, and their division into units of work.
 *
 * Files are taken in the order of the recipe; a folder stands for all files below it in byte order
 * of their paths (names that begin with a dot are left out). A unit is a range of bytes of a plain
 * file, or a whole archive or compressed file. The units depend on the input and on `unit_bytes`
 * alone, never on ranks, so that what is made of them is the same for any number of workers.
 */
#ifndef STAGES_TOKENIZE_INPUTS_H
#define STAGES_TOKENIZE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/config/options.h"
#include "stages/tokenize/splitter.h"

enum { UNIT_BYTES = 4 << 20 };

struct input_file {
  char *path; /* owned */
  uint64_t bytes;
  int64_t input; /* which of the paths of the request it is, or lies below */
  bool packed;   /* an archive or a compressed file, read from start to end through libarchive */
};

struct unit {
  size_t file;         /* and, for pairs by line, the target of the same number */
  uint64_t begin, end; /* documents that begin in [begin, end); all of a packed file or a pair */
};

struct inputs {
  struct input_file *files;   /* owned */
  struct input_file *targets; /* owned; as many as files, whose lines they answer; NULL: none */
  size_t file_count, file_capacity;
  struct unit *units; /* owned */
  size_t unit_count, unit_capacity;
  bool keeps_damaged; /* files that cannot be read are listed, and refused when they are read */
};

struct inputs_request {
  const struct option_texts *paths;   /* borrowed */
  const struct option_texts *targets; /* of pairs by line, borrowed; NULL: none */
  const char *entries; /* shell pattern of the files to take from folders; NULL: all */
  enum boundary_choice boundary;
  uint64_t unit_bytes;
  bool keeps_damaged;
};

/* The request that a node's options make. Borrows from them. Local. */
struct inputs_request inputs_request_of(const struct options *options);

/* Lists files and units. Local. MISMATCH for a path that does not exist or a folder without files,
 * DAMAGED for a file that is neither text nor a known archive, unless such are kept. On failure
 * there is nothing to free. */
enum status inputs_list(struct inputs *inputs, const struct inputs_request *request);

/* Gives all documents of a unit to the splitter's sink; `splitter` has boundary, text_key and sink
 * set, and may be used for one unit after another. Local. MISMATCH when the file is gone, DAMAGED
 * for a broken archive (names entry and byte) unless the sink takes refusals, and as splitter_feed.
 */
enum status inputs_read(const struct inputs *inputs, const struct unit *unit,
                        struct splitter *splitter);

/* Accepts zeroed inputs. Local. */
void inputs_free(struct inputs *inputs);

#endif
