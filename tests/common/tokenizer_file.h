/* Small tokenizer.json files, as Hugging Face's library writes them. */
#ifndef TESTS_COMMON_TOKENIZER_FILE_H
#define TESTS_COMMON_TOKENIZER_FILE_H

#include <stdbool.h>

#include "pipeline/base/text.h"

/* Appends a byte as the byte-level alphabet writes it. */
enum status tokenizer_file_byte(struct text *text, unsigned char byte);

/* Appends a byte-level BPE: ids 0 to 255 are the bytes, 256 is <|endoftext|>, 257 to 262 are he,
 * ll, hell, hello, " w" and " wo". `pre_tokenizer`: its object; `pairs`: merges as arrays of two.
 */
enum status tokenizer_file_bpe(struct text *file, const char *pre_tokenizer, bool pairs);

/* Appends a unigram model: <pad>, </s>, <unk>, a space, " the", t, h, e, he, and T5's sentinels if
 * wanted. Its normaliser maps nothing. */
enum status tokenizer_file_unigram(struct text *file, bool sentinels);

#endif
