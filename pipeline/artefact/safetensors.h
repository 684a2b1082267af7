/* Reads safetensors files (github.com/huggingface/safetensors, README "Format"), plain or inside
 * the seekable container: 8 bytes length, a JSON header, then the tensors' bytes.
 *
 * The reader is strict: length within 100 MB and the file, first byte '{', no duplicate keys, known
 * types, sizes without overflow, offsets that cover the data section exactly once, and
 * `__metadata__` of strings only. Nothing but the header is read on opening; tensors are read by
 * byte range.
 */
#ifndef PIPELINE_ARTEFACT_SAFETENSORS_H
#define PIPELINE_ARTEFACT_SAFETENSORS_H

#include <stdint.h>

#include "pipeline/artefact/source.h"
#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"

enum { SAFETENSORS_MAX_DIMENSIONS = 8, SAFETENSORS_MAX_HEADER = 100000000 };

struct safetensors_tensor {
  char *name; /* owned by the file */
  enum dtype dtype;
  int dimensions; /* 0: a single number */
  int64_t shape[SAFETENSORS_MAX_DIMENSIONS];
  uint64_t offset, bytes; /* within the data section */
};

struct safetensors_pair {
  char *key, *value; /* owned by the file, or borrowed when given to a writer */
};

struct safetensors {
  struct source source;
  uint64_t header_bytes;              /* where the data section begins: 8 + JSON */
  int64_t count;                      /* tensors, in the order of their offsets */
  struct safetensors_tensor *tensors; /* owned */
  int64_t pair_count;
  struct safetensors_pair *pairs; /* owned; `__metadata__` */
};

/* Opens a file. `blocks` (may be NULL) are its hashes from a manifest; the file then is checked as
 * it is read. Local. MISMATCH when it does not exist; DAMAGED names the file, the place and what
 * was expected, with a hint when it looks like a truncated download, a web page or an LFS pointer.
 */
enum status safetensors_open(struct safetensors *file, const char *path,
                             const struct blocks *blocks);
void safetensors_close(struct safetensors *file);

/* The tensor called `name`, or NULL. Borrowed. Local. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);

/* As safetensors_find, and checks type and shape; a size of -1 in `shape` fits anything. Local.
 * MISMATCH with what was expected and found, and the nearest name when it is missing. */
enum status safetensors_require(const struct safetensors *file,
                                const struct safetensors_tensor **tensor,
                                const struct safetensors_tensor *expected);

/* The value of a `__metadata__` key, or NULL. Borrowed. Local. */
const char *safetensors_value(const struct safetensors *file, const char *key);

/* Writes "F32 [768, 3072]". Returns `out`. Local. */
enum { SAFETENSORS_DESCRIPTION = 224 };
char *safetensors_describe(char out[SAFETENSORS_DESCRIPTION],
                           const struct safetensors_tensor *tensor);

/* Number of elements, and of bytes per index of the first axis (all of it for a single number).
 * Local. */
int64_t safetensors_elements(const struct safetensors_tensor *tensor);
uint64_t safetensors_row_bytes(const struct safetensors_tensor *tensor);

/* Copies bytes [first, first + bytes) of a tensor, without loading the rest. `cache` as for
 * source_read. Local. DAMAGED as source_read. */
enum status safetensors_read(const struct safetensors *file, struct source_cache *cache,
                             const struct safetensors_tensor *tensor, void *out,
                             struct blocks_range bytes);

/* Copies the whole tensor, converted from F32, F16, BF16 or F64 to float. Local. MISMATCH for other
 * types. */
enum status safetensors_read_floats(const struct safetensors *file, struct source_cache *cache,
                                    const struct safetensors_tensor *tensor, float *out);

/* Compares the data section with the `data_hash` that our writer keeps in the metadata. A file
 * without one passes. Local. DAMAGED names the file. */
enum status safetensors_verify(const struct safetensors *file);

/* Parses `bytes` bytes of header (without the length) for a data section of `data_bytes`: what
 * safetensors_open does after reading. `path` is for messages. Local. */
enum status safetensors_parse(struct safetensors *file, const char *header, uint64_t bytes,
                              uint64_t data_bytes, const char *path);

#endif
