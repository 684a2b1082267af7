#include "tests/common/tokenizer_file.h"

#include "tests/common/strings.h"

static bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

enum status tokenizer_file_byte(struct text *text, unsigned char byte) {
  uint32_t others = 0;
  for (unsigned i = 0; i < byte; i++) others += !is_printable(i);
  return strings_add(text, is_printable(byte) ? byte : 256 + others);
}

/* "TEXT": ID for every byte. */
static enum status add_bytes(struct text *file) {
  for (int byte = 0; byte < 256; byte++) {
    TRY(text_add(file, byte == '"' || byte == '\\' ? "\"\\" : "\""));
    TRY(tokenizer_file_byte(file, (unsigned char)byte));
    TRY(text_format(file, "\": %d, ", byte));
  }
  return STATUS_OK;
}

enum status tokenizer_file_bpe(struct text *file, const char *pre_tokenizer, bool pairs) {
  TRY(text_format(file,
                  "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, "
                  "\"added_tokens\": [{\"id\": 256, \"content\": \"<|endoftext|>\", "
                  "\"special\": true}], \"normalizer\": null, \"pre_tokenizer\": %s, "
                  "\"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\"}, "
                  "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                  "\"fuse_unk\": false, \"byte_fallback\": false, \"vocab\": {",
                  pre_tokenizer));
  TRY(add_bytes(file));
  TRY(text_add(file, "\"he\": 257, \"ll\": 258, \"hell\": 259, \"hello\": 260, "
                     "\"\xc4\xa0w\": 261, \"\xc4\xa0wo\": 262}, \"merges\": ["));
  return text_add(file, pairs ? "[\"h\", \"e\"], [\"l\", \"l\"], [\"he\", \"ll\"], "
                                "[\"hell\", \"o\"], [\"\xc4\xa0\", \"w\"], [\"\xc4\xa0w\", "
                                "\"o\"]]}}"
                              : "\"h e\", \"l l\", \"he ll\", \"hell o\", \"\xc4\xa0 w\", "
                                "\"\xc4\xa0w o\"]}}");
}

static enum status add_sentinels(struct text *file, const char *format) {
  for (int i = 99; i >= 0; i--) TRY(text_format(file, format, 108 - i, i));
  return STATUS_OK;
}

enum status tokenizer_file_unigram(struct text *file, bool sentinels) {
  TRY(text_add(file, "{\"version\": \"1.0\", \"added_tokens\": ["));
  if (sentinels)
    TRY(add_sentinels(file, "{\"id\": %d, \"content\": \"<extra_id_%d>\", \"special\": true}, "));
  return text_add(
      file,
      "{\"id\": 0, \"content\": \"<pad>\", \"special\": true}, "
      "{\"id\": 1, \"content\": \"</s>\", \"special\": true}, "
      "{\"id\": 2, \"content\": \"<unk>\", \"special\": true}], "
      "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Precompiled\", "
      "\"precompiled_charsmap\": \"BAAAAAAAAABhAA==\"}, {\"type\": \"Strip\", \"strip_left\": "
      "false, \"strip_right\": true}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, "
      "\"content\": \"\xe2\x96\x81\"}]}, \"pre_tokenizer\": {\"type\": \"Metaspace\", "
      "\"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": \"always\", \"split\": true}, "
      "\"model\": {\"type\": \"Unigram\", \"unk_id\": 2, \"vocab\": [[\"<pad>\", 0.0], "
      "[\"</s>\", 0.0], [\"<unk>\", 0.0], [\"\xe2\x96\x81\", -2.0], [\"\xe2\x96\x81the\", -3], "
      "[\"t\", -4.0], [\"h\", -4.5], [\"e\", -4.25], [\"he\", -6.0]], \"byte_fallback\": false}}");
}
