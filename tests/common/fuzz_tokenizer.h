/* The laws of tokenizers whose model comes from a file, for fuzz targets. */
#ifndef TESTS_COMMON_FUZZ_TOKENIZER_H
#define TESTS_COMMON_FUZZ_TOKENIZER_H

#include "tests/common/fuzz.h"

/* The input is a model's file, an empty line, and a text. When the file opens as a tokenizer of
 * `kind`, every text has ids, which are inside the vocabulary, and ids of a lossless one give the
 * text back. */
void fuzz_tokenizer(const char *kind, const uint8_t *bytes, size_t count);

#endif
