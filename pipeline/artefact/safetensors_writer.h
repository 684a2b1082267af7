/* Writes safetensors files front to back, plain or seekable by the file's name.
 *
 * All tensors are declared first; their bytes follow in the same order, in any pieces. The header
 * is padded to a multiple of 8 bytes and carries `data_hash`: XXH3-128 over the XXH3-64 of each
 * 1 MiB of the data section. What the reader would refuse is refused here.
 */
#ifndef PIPELINE_ARTEFACT_SAFETENSORS_WRITER_H
#define PIPELINE_ARTEFACT_SAFETENSORS_WRITER_H

#include "pipeline/artefact/safetensors.h"
#include "pipeline/artefact/sink.h"

struct safetensors_writer {
  struct sink sink;
  struct text header;     /* length and JSON, as in the file */
  size_t hash_at;         /* where the digits of the data hash are in it */
  uint64_t data_bytes;    /* declared */
  uint64_t written_bytes; /* so far */
};

/* What a file will hold. `offset` and `bytes` of the tensors are filled in. Put wide types first:
 * every tensor must start at a multiple of its element size. */
struct safetensors_layout {
  const char *path;
  struct sink_options sink; /* of seekable files */
  size_t alignment;         /* of the data section, with spaces; a multiple of 8; 0: 8 */
  struct safetensors_tensor *tensors;
  int64_t count;
  const struct safetensors_pair *pairs; /* metadata; `data_hash` is added */
  int64_t pair_count;
};

/* Makes the header alone, the data hash being 32 zeros at *hash_at; sets the tensors' places.
 * Local. MISMATCH for what a reader would refuse: duplicate or empty names, sizes that overflow, a
 * tensor that starts at a fraction of its element. */
enum status safetensors_writer_compose(struct text *header, size_t *hash_at,
                                       const struct safetensors_layout *layout);

/* Creates the file with its header. Local. MISMATCH as above, WRITE on failure. */
enum status safetensors_writer_open(struct safetensors_writer *writer,
                                    const struct safetensors_layout *layout);

/* Appends bytes of the current tensor; tensors follow one another without a mark. Local. WRITE on
 * failure, INTERNAL for more bytes than declared. */
enum status safetensors_writer_append(struct safetensors_writer *writer, const void *bytes,
                                      uint64_t count);

/* Completes the header, flushes and closes; `blocks` (may be NULL) receives the file's hashes, to
 * be freed by the caller. Local. WRITE on failure, INTERNAL when bytes are missing. */
enum status safetensors_writer_close(struct safetensors_writer *writer, struct blocks *blocks);

/* Gives up, leaving the file unusable. Accepts a zeroed or finished writer. Local. */
void safetensors_writer_abandon(struct safetensors_writer *writer);

#endif
