/* Whole files and folders, written so that a crash leaves the old or the new content, never half.
 */
#ifndef PIPELINE_BASE_FILE_H
#define PIPELINE_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Reads a whole file into `text` (appending). Local. MISMATCH when it does not exist, ENVIRONMENT
 * when it cannot be read. */
enum status file_read(struct text *text, const char *path);

/* Writes a file through a temporary neighbour: write, flush, rename, flush the folder. Local.
 * WRITE on any failure. */
enum status file_write(const char *path, const void *bytes, size_t count);

/* Removes what killed calls of file_write left in a folder and below it; nobody may be writing
 * there. A folder that is not there is a success. Local. WRITE on failure. */
enum status file_sweep(const char *path);

/* Makes a file of `bytes` bytes that takes their room on the file system; one of that size stays as
 * it is. Local. WRITE on failure; nothing is left then. */
enum status file_reserve(const char *path, uint64_t bytes);

/* Makes a folder and its parents; one that exists is a success. Local. WRITE on failure. */
enum status file_make_folder(const char *path);

/* Flushes a folder's entries to storage. Local. WRITE on failure. */
enum status file_sync_folder(const char *path);

/* Renames and flushes the target's folder. Local. WRITE on failure. */
enum status file_rename(const char *from, const char *to);

/* Removes a file or a folder with all that it holds; nothing there is a success. Never follows
 * links. Local. WRITE on failure. */
enum status file_remove(const char *path);

/* Whether something is at `path`; its size in bytes. Local. */
bool file_exists(const char *path);
enum status file_size(uint64_t *bytes, const char *path);

#endif
