/* How the text of byte-level BPE is cut, by the pre_tokenizer of a tokenizer.json: ByteLevel alone,
 * or a Split by one of the known expressions and ByteLevel. */
#include <string.h>

#include "stages/tokenize/huggingface.h"

static const struct {
  const char *expression;
  const struct bpe_cut *cut;
} expressions[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     &bpe_cut_gpt2},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     &bpe_cut_gpt2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     &bpe_cut_llama3},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     &bpe_cut_o200k},
};

static enum status find_expression(const struct bpe_cut **cut, const struct json_place *split) {
  const struct json_place pattern = json_place_member(split, "pattern");
  const struct json_place regex = json_place_member(&pattern, "Regex");
  const struct json_place behaviour = json_place_member(split, "behavior");
  const struct json_place invert = json_place_member(split, "invert");
  TRY(json_place_must_be_unset(&invert));
  CHECK(json_place_is(&behaviour, "Isolated"), STATUS_MISMATCH, "%s: expected \"Isolated\"",
        behaviour.path);
  for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++)
    if (json_place_is(&regex, expressions[i].expression)) *cut = expressions[i].cut;
  CHECK(*cut, STATUS_MISMATCH,
        "%s: this expression is not covered; covered are those of GPT-2, Llama 3 and o200k",
        regex.path);
  return STATUS_OK;
}

static enum status read_byte_level(const struct bpe_cut **cut, const struct json_place *place) {
  const struct json_place prefix = json_place_member(place, "add_prefix_space");
  const struct json_place regex = json_place_member(place, "use_regex");
  TRY(json_place_must_be_unset(&prefix));
  const bool cuts = !regex.value || json_is_true(regex.value);
  CHECK(cuts == !*cut, STATUS_MISMATCH,
        "%s: text is to be cut by one expression, here or in a Split", regex.path);
  if (cuts) *cut = &bpe_cut_gpt2;
  return STATUS_OK;
}

enum status huggingface_read_cut(const struct bpe_cut **cut, const struct json_place *top) {
  const struct json_place place = json_place_member(top, "pre_tokenizer");
  const struct json_place list = json_place_member(&place, "pretokenizers");
  const struct json_place first = json_place_item(&list, 0), second = json_place_item(&list, 1);
  const bool pair = strcmp(json_place_type(&place), "Sequence") == 0 &&
                    json_array_size(list.value) == 2 &&
                    strcmp(json_place_type(&first), "Split") == 0;
  const struct json_place *bytes = pair ? &second : &place;
  *cut = NULL;
  if (pair) TRY(find_expression(cut, &first));
  CHECK(strcmp(json_place_type(bytes), "ByteLevel") == 0, STATUS_MISMATCH,
        "pre_tokenizer: '%s' is not covered; covered are ByteLevel, and a Sequence of Split and "
        "ByteLevel",
        json_place_type(bytes));
  return read_byte_level(cut, bytes);
}
