#include "tests/common/fuzz_change.h"

#include <string.h>

#include "pipeline/base/random.h"
#include "tests/common/fuzz.h"

struct draw {
  struct random_stream stream;
  uint64_t position;
};

static size_t below(struct draw *draw, size_t bound) {
  return bound ? (size_t)random_below(draw->stream, draw->position++, bound) : 0;
}

/* Replaces `old` bytes at `at` by `count` bytes, which are not of the input itself. */
static void splice(struct text *input, size_t at, size_t old, const char *bytes, size_t count) {
  struct text rest = {0};
  fuzz_require(text_add_bytes(&rest, input->bytes + at + old, input->length - at - old) ==
                   STATUS_OK,
               "memory suffices");
  input->length = at;
  fuzz_require(text_add_bytes(input, bytes, count) == STATUS_OK &&
                   text_add_bytes(input, rest.bytes ? rest.bytes : "", rest.length) == STATUS_OK,
               "memory suffices");
  text_free(&rest);
}

static void change_bit(struct text *input, struct draw *draw) {
  if (input->length) input->bytes[below(draw, input->length)] ^= (char)(1 << below(draw, 8));
}

static void change_byte(struct text *input, struct draw *draw) {
  static const char likely[] = "\0\1\x7f\x80\xff \n\"{}[]:,.-/\\0123456789eE+_#'&*!|>%@`";
  if (!input->length) return;
  const size_t at = below(draw, input->length);
  input->bytes[at] =
      below(draw, 2) ? likely[below(draw, sizeof likely - 1)] : (char)below(draw, 256);
}

/* A little-endian number of 2, 4 or 8 bytes at a border of its range. */
static void change_number(struct text *input, struct draw *draw) {
  static const uint64_t borders[] = {0,          1,          0x7f,       0xff,
                                     0x7fff,     0xffff,     0x7fffffff, 0xffffffff,
                                     1ull << 31, 1ull << 40, INT64_MAX,  UINT64_MAX};
  const uint64_t value = borders[below(draw, sizeof borders / sizeof *borders)];
  const size_t width = (size_t)2 << below(draw, 3);
  if (input->length < width) return;
  const size_t at = below(draw, input->length - width + 1);
  for (size_t i = 0; i < width; i++) input->bytes[at + i] = (char)(value >> (8 * i));
}

static void remove_piece(struct text *input, struct draw *draw) {
  const size_t at = below(draw, input->length + 1);
  splice(input, at, below(draw, input->length - at + 1), "", 0);
}

static void cut(struct text *input, struct draw *draw) {
  input->length = below(draw, input->length + 1);
}

/* Puts in a piece of a seed, most often a short one, over or between what is there. */
static void take_piece(struct text *input, const struct fuzz_seeds *seeds, struct draw *draw) {
  const struct text *from = &seeds->items[below(draw, seeds->count)];
  const size_t begin = below(draw, from->length + 1);
  size_t count = below(draw, from->length - begin + 1);
  if (below(draw, 4)) count = count < 32 ? count : below(draw, 32);
  const size_t at = below(draw, input->length + 1);
  const size_t left = input->length - at;
  splice(input, at,
         below(draw, 2) ? 0
         : count < left ? count
                        : left,
         from->bytes ? from->bytes + begin : "", count);
}

static void repeat_piece(struct text *input, struct draw *draw) {
  struct text piece = {0};
  const size_t at = below(draw, input->length + 1);
  size_t count = below(draw, input->length - at + 1);
  if (count > 64) count = below(draw, 64);
  const size_t times = 1 + below(draw, 16);
  for (size_t i = 0; i < times; i++)
    fuzz_require(text_add_bytes(&piece, input->bytes + at, count) == STATUS_OK, "memory suffices");
  splice(input, at, 0, piece.bytes ? piece.bytes : "", piece.length);
  text_free(&piece);
}

/* A decimal number in text, replaced by another one. */
static void change_digits(struct text *input, struct draw *draw) {
  static const char *const numbers[] = {"0",
                                        "-1",
                                        "1e308",
                                        "1e999",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "0.5"};
  size_t at = below(draw, input->length + 1);
  while (at < input->length && (input->bytes[at] < '0' || input->bytes[at] > '9')) at++;
  size_t end = at;
  while (end < input->length && input->bytes[end] >= '0' && input->bytes[end] <= '9') end++;
  const char *number = numbers[below(draw, sizeof numbers / sizeof *numbers)];
  if (end > at) splice(input, at, end - at, number, strlen(number));
}

static void change_once(struct text *input, const struct fuzz_seeds *seeds, struct draw *draw) {
  switch (below(draw, 12)) {
  case 0:
  case 1:
    change_bit(input, draw);
    return;
  case 2:
  case 3:
    change_byte(input, draw);
    return;
  case 4:
    change_number(input, draw);
    return;
  case 5:
    remove_piece(input, draw);
    return;
  case 6:
    cut(input, draw);
    return;
  case 7:
  case 8:
    take_piece(input, seeds, draw);
    return;
  case 9:
    repeat_piece(input, draw);
    return;
  default:
    change_digits(input, draw);
  }
}

void fuzz_change(struct text *input, const struct fuzz_seeds *seeds, uint64_t seed,
                 uint64_t index) {
  struct draw draw = {.stream = random_open(seed, "fuzz", index, 0)};
  const struct text *from = &seeds->items[below(&draw, seeds->count)];
  text_clear(input);
  fuzz_require(text_add_bytes(input, from->bytes ? from->bytes : "", from->length) == STATUS_OK,
               "memory suffices");
  const size_t changes = (size_t)1 << below(&draw, 5);
  for (size_t i = 0; i < changes; i++) change_once(input, seeds, &draw);
  if (input->length > FUZZ_BYTES) input->length = FUZZ_BYTES;
}
