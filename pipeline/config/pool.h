/* Small pieces of memory with one lifetime: the texts and lists of a recipe. */
#ifndef PIPELINE_CONFIG_POOL_H
#define PIPELINE_CONFIG_POOL_H

#include <stddef.h>

#include "pipeline/base/error.h"

struct pool;

/* Makes an empty pool. Local. ENVIRONMENT when memory is out. */
enum status pool_init(struct pool **pool);

/* Frees every piece. Accepts NULL. Local. */
void pool_free(struct pool *pool);

/* A zeroed piece of `bytes` bytes, aligned for any type. Local. ENVIRONMENT when memory is out. */
enum status pool_take(void **piece, struct pool *pool, size_t bytes);

/* Copies of a text, of `length` bytes made into a text, and of a formatted text. Local.
 * ENVIRONMENT when memory is out. */
enum status pool_text(const char **copy, struct pool *pool, const char *text);
enum status pool_bytes(const char **copy, struct pool *pool, const void *bytes, size_t length);
enum status pool_format(const char **copy, struct pool *pool, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
