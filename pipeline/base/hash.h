/* Content hashes: XXH3 (64 and 128 bits), one-shot and streaming. Not cryptographic. */
#ifndef PIPELINE_BASE_HASH_H
#define PIPELINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_HEX_BYTES = 33 }; /* 32 hexadecimal digits and the final zero */

struct hash128 {
  uint64_t low, high;
};

/* A running 128-bit hash; opaque because the state of xxHash is over 500 bytes and aligned. */
struct hash_stream;

/* 64-bit hash of `bytes` bytes, with and without a seed. Local. */
uint64_t hash_bytes(const void *data, size_t bytes);
uint64_t hash_bytes_seeded(const void *data, size_t bytes, uint64_t seed);

/* 128-bit hash of `bytes` bytes. Local. */
struct hash128 hash_bytes128(const void *data, size_t bytes);

/* Streaming: open returns NULL when memory is out; close accepts NULL. Local. */
struct hash_stream *hash_open(void);
void hash_add(struct hash_stream *stream, const void *data, size_t bytes);
struct hash128 hash_result(const struct hash_stream *stream);
void hash_close(struct hash_stream *stream);

/* Writes the 32 lower-case hexadecimal digits of `hash`, most significant first. Local. */
void hash_to_hex(char hex[HASH_HEX_BYTES], struct hash128 hash);

#endif
