/* Whole reads and writes on an open descriptor, at a place: short ones are continued, interrupted
 * ones repeated. `path` is for messages.
 */
#ifndef PIPELINE_BASE_DESCRIPTOR_H
#define PIPELINE_BASE_DESCRIPTOR_H

#include <stdint.h>

#include "pipeline/base/error.h"

/* Opens for reading. Local. MISMATCH when nothing is there, ENVIRONMENT otherwise. */
enum status descriptor_open(int *fd, const char *path);

/* Creates or empties a file for reading and writing; opens an existing one, which another host may
 * have made just now (appear.h), without emptying it. Local. WRITE on failure. */
enum status descriptor_create(int *fd, const char *path);
enum status descriptor_reopen(int *fd, const char *path);

/* Bytes of the open file. Local. ENVIRONMENT when it cannot be looked at. */
enum status descriptor_size(uint64_t *bytes, int fd, const char *path);

/* Reads exactly `bytes` bytes from `offset` on. Local. DAMAGED when the file ends before,
 * ENVIRONMENT when it cannot be read. */
enum status descriptor_read(int fd, void *out, uint64_t offset, uint64_t bytes, const char *path);

/* Writes `bytes` bytes from `offset` on. Local. WRITE on failure. */
enum status descriptor_write(int fd, const void *data, uint64_t offset, uint64_t bytes,
                             const char *path);

/* Flushes to storage. Local. WRITE on failure. */
enum status descriptor_sync(int fd, const char *path);

/* Flushes and closes; closes in any case and sets *fd to -1. Local. WRITE on failure. */
enum status descriptor_finish(int *fd, const char *path);

#endif
