#include "stages/tokenize/base64.h"

static int digit_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

enum status base64_decode(struct text *text, const char *digits, size_t count) {
  unsigned bits = 0, held = 0;
  while (count && digits[count - 1] == '=') count--;
  for (size_t i = 0; i < count; i++) {
    const int value = digit_value(digits[i]);
    CHECK(value >= 0, STATUS_DAMAGED, "byte %zu is not a base64 digit", i);
    bits = bits << 6 | (unsigned)value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    const char byte = (char)(bits >> held & 0xff);
    TRY(text_add_bytes(text, &byte, 1));
  }
  return STATUS_OK;
}
