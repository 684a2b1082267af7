#include "tests/common/strings.h"

#include <string.h>

#include "pipeline/base/random.h"

struct source {
  struct random_stream stream;
  uint64_t position;
};

static uint32_t below(struct source *source, uint32_t bound) {
  return (uint32_t)random_below(source->stream, source->position++, bound);
}

enum status strings_add(struct text *text, uint32_t c) {
  char bytes[4];
  if (c < 0x80) {
    bytes[0] = (char)c;
    return text_add_bytes(text, bytes, 1);
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
  bytes[0] = (char)(leads[more] | c >> (6 * more));
  for (int i = 1; i <= more; i++) bytes[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
  return text_add_bytes(text, bytes, (size_t)more + 1);
}

/* First and last code points of what is drawn from; some have unassigned code points inside. */
static const uint32_t ranges[][2] = {
    {0x20, 0x7e},         {0x61, 0x7a},       {0x41, 0x5a},       {0x30, 0x39},
    {0x00, 0x1f},         {0x80, 0xff},       {0x100, 0x24f},     {0x250, 0x2ff},
    {0x300, 0x36f},       {0x370, 0x3ff},     {0x400, 0x52f},     {0x531, 0x58f},
    {0x590, 0x5ff},       {0x600, 0x6ff},     {0x900, 0x97f},     {0xe00, 0xe7f},
    {0xf00, 0xfff},       {0x10a0, 0x10ff},   {0x1100, 0x11ff},   {0x13a0, 0x13ff},
    {0x1c90, 0x1cbf},     {0x1e00, 0x1eff},   {0x1f00, 0x1fff},   {0x2000, 0x206f},
    {0x2070, 0x209f},     {0x20a0, 0x20cf},   {0x2100, 0x214f},   {0x2150, 0x218f},
    {0x2460, 0x24ff},     {0x2580, 0x259f},   {0x2c00, 0x2c5f},   {0x3000, 0x303f},
    {0x3040, 0x30ff},     {0x3130, 0x318f},   {0x3300, 0x33ff},   {0x4e00, 0x9fff},
    {0xa640, 0xa69f},     {0xac00, 0xd7a3},   {0xe000, 0xe0ff},   {0xf900, 0xfaff},
    {0xfb00, 0xfb4f},     {0xfb50, 0xfdff},   {0xfe00, 0xfe0f},   {0xfe70, 0xfeff},
    {0xff00, 0xffef},     {0xfff0, 0xffff},   {0x10400, 0x1044f}, {0x1d400, 0x1d7ff},
    {0x1f1e6, 0x1f1ff},   {0x1f300, 0x1f6ff}, {0x20000, 0x2a6df}, {0xe0000, 0xe01ef},
    {0x10fff0, 0x10ffff},
};

static const uint32_t spaces[] = {
    0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x20,   0x85,   0xa0,   0x1680, 0x180e, 0x2000,
    0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x200b,
    0x200c, 0x200d, 0x2028, 0x2029, 0x202f, 0x205f, 0x2060, 0x2581, 0x3000, 0xfeff,
};

static const char *const words[] = {
    "the",
    "The",
    "THE",
    "isn't",
    "ISN'T",
    "we'll",
    "WE'LL",
    "'s",
    "'RE",
    "'ve",
    "don\xe2\x80\x99t",
    "<extra_id_0>",
    "<extra_id_99>",
    "</s>",
    "<unk>",
    "12345678",
    "3.14",
    "1,000",
    "http://a.b/c?d",
    "foo_bar",
    "!!!",
    "...",
    "--",
    "(x)",
    ("Stra\xc3\x9f"
     "e"),
    "na\xc3\xafve",
    "<|endoftext|>",
    "a\xcc\x81",
    "\xef\xac\x81x",
    "internationalization",
};

static const char *const broken[] = {
    "\x80",         "\xff",         "\xc3",         "\xe2\x82",
    "\xf0\x9f\x98", "\xc0\x80",     "\xed\xa0\x80", "\xf4\x90\x80\x80",
    "\xfe",         "\xe0\x80\x80",
};

enum { RANGES = sizeof ranges / sizeof *ranges, SPACES = sizeof spaces / sizeof *spaces };
enum { WORDS = sizeof words / sizeof *words, BROKEN = sizeof broken / sizeof *broken };

static enum status add_run(struct text *text, struct source *source) {
  const uint32_t *range = ranges[below(source, RANGES)];
  const uint32_t long_run = below(source, 200) == 0 ? 300 : 6;
  for (uint32_t left = 1 + below(source, long_run); left > 0; left--)
    TRY(strings_add(text, range[0] + below(source, range[1] - range[0] + 1)));
  return STATUS_OK;
}

static enum status add_element(struct text *text, struct source *source) {
  const uint32_t kind = below(source, 16);
  if (kind < 5) return add_run(text, source);
  if (kind < 9) return text_add(text, words[below(source, WORDS)]);
  if (kind < 12) return text_add(text, " ");
  if (kind < 14) return strings_add(text, spaces[below(source, SPACES)]);
  if (kind < 15) return text_add(text, broken[below(source, BROKEN)]);
  for (uint32_t left = 1 + below(source, 5); left > 0; left--)
    TRY(strings_add(text, spaces[below(source, SPACES)]));
  return STATUS_OK;
}

enum status strings_make(struct text *text, uint64_t seed, uint64_t index) {
  struct source source = {random_open(seed, "strings", index, 0), 0};
  for (uint32_t left = 1 + below(&source, 24); left > 0; left--) TRY(add_element(text, &source));
  return STATUS_OK;
}
