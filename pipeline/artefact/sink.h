/* A file written front to back, plain or seekable by its name, whose blocks are hashed on the way.
 *
 * The first write is the head: it is one block by itself, and may be written again with the same
 * size before the sink is closed (safetensors headers carry the hash of the data that follows).
 */
#ifndef PIPELINE_ARTEFACT_SINK_H
#define PIPELINE_ARTEFACT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/blocks.h"
#include "pipeline/artefact/seekable.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

enum { SINK_LEVEL = 1 }; /* zstd level where the caller has no wish */

struct sink_options {
  int level;            /* of zstd, below 0 with coded literals; 0: SINK_LEVEL */
  uint64_t frame_bytes; /* content of a frame; divides SEEKABLE_FRAME_BYTES; 0: as much */
};

struct sink {
  char *path; /* owned */
  int fd;
  bool seekable;
  uint64_t frame_bytes;
  uint64_t written;     /* bytes of the file so far */
  uint64_t head_bytes;  /* of content */
  struct text pending;  /* content of the 1 MiB block that is not full yet */
  struct text encoded;  /* scratch */
  struct text frames;   /* array of struct seekable_frame */
  struct text hashes;   /* array of uint64_t: XXH3 of each block of content after the head */
  struct blocks blocks; /* of the stored bytes */
  struct ZSTD_CCtx_s *context;
};

/* Creates or truncates the file and writes its head. The options are ignored for a plain file.
 * Local. WRITE on failure. */
enum status sink_open(struct sink *sink, const char *path, struct sink_options options,
                      const void *head, uint64_t bytes);

/* Appends content. Local. WRITE on failure. */
enum status sink_write(struct sink *sink, const void *bytes, uint64_t count);

/* Writes out the last block. After it, sink_data_hash is final and the head may be replaced. Local.
 */
enum status sink_flush(struct sink *sink);

/* Hash of all content after the head: XXH3-128 over the XXH3-64 of each of its 1 MiB blocks. Local.
 */
struct hash128 sink_data_hash(const struct sink *sink);

/* Replaces the head by as many bytes. Local. WRITE on failure. */
enum status sink_rewrite_head(struct sink *sink, const void *head, uint64_t bytes);

/* Ends the file (seek table), flushes it to storage and closes it; `blocks` (may be NULL) receives
 * the hashes, to be freed by the caller. Local. WRITE on failure. */
enum status sink_close(struct sink *sink, struct blocks *blocks);

/* Gives up: closes, leaving the file as it is. Accepts a zeroed or closed sink. Local. */
void sink_abandon(struct sink *sink);

#endif
