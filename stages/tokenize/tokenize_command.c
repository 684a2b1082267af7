#include "stages/tokenize/tokenize_command.h"

#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/tokenizer.h"

static const char usage[] =
    "expected: millrace tokenize --tokenizer SPEC --text TEXT [--pieces], or --decode 'ID ID ...'; "
    "SPEC is KIND:PATH (byte, unigram, t5, gpt2, huggingface, ...) or the folder of a finished "
    "tokenize node";

struct request {
  const char *tokenizer, *text, *decode;
  bool pieces;
};

bool tokenize_command_is_meant(int argc, char *const argv[]) {
  for (int i = 0; i < argc; i++)
    if (!strcmp(argv[i], "--text") || !strcmp(argv[i], "--decode") ||
        !strcmp(argv[i], "--tokenizer"))
      return true;
  return false;
}

static enum status parse(struct request *request, int argc, char *const argv[]) {
  *request = (struct request){0};
  for (int i = 0; i < argc; i++) {
    const char **value = !strcmp(argv[i], "--tokenizer") ? &request->tokenizer
                         : !strcmp(argv[i], "--text")    ? &request->text
                         : !strcmp(argv[i], "--decode")  ? &request->decode
                                                         : NULL;
    const bool pieces = !strcmp(argv[i], "--pieces");
    CHECK(pieces || (value && i + 1 < argc), STATUS_USAGE, "'%s': %s", argv[i], usage);
    if (pieces)
      request->pieces = true;
    else
      *value = argv[++i];
  }
  CHECK(request->tokenizer && !request->text != !request->decode, STATUS_USAGE, "%s", usage);
  return STATUS_OK;
}

/* The ids on one line, or each with its text on a line of its own. */
static enum status show_ids(struct text *output, const struct tokenizer *tokenizer,
                            const struct tokens *ids, bool pieces) {
  for (size_t i = 0; i < ids->count; i++) {
    TRY(text_format(output, "%s%d", i && !pieces ? " " : "", ids->ids[i]));
    if (!pieces) continue;
    TRY(text_add(output, "\t"));
    TRY(tokenizer_decode(tokenizer, output, &ids->ids[i], 1));
    TRY(text_add(output, "\n"));
  }
  return pieces ? STATUS_OK : text_add(output, "\n");
}

static enum status parse_ids(struct tokens *ids, const char *list) {
  static const char between[] = " ,\t\n";
  for (list += strspn(list, between); *list; list += strspn(list, between)) {
    char *end;
    const long value = strtol(list, &end, 10);
    CHECK(end != list && (!*end || strchr(between, *end)) && value >= 0 && value <= INT32_MAX,
          STATUS_USAGE, "'%s' is not a list of ids", list);
    const int32_t id = (int32_t)value;
    TRY(tokens_add(ids, &id, 1));
    list = end;
  }
  return STATUS_OK;
}

static enum status answer(struct text *output, struct tokenizer *tokenizer,
                          const struct request *request) {
  struct tokens ids = {0};
  enum status status;
  if (request->decode) {
    status = parse_ids(&ids, request->decode);
    if (status == STATUS_OK) status = tokenizer_decode(tokenizer, output, ids.ids, ids.count);
    if (status == STATUS_OK) status = text_add(output, "\n");
  } else {
    status = tokenizer_encode(tokenizer, &ids, request->text, strlen(request->text));
    if (status == STATUS_OK) status = show_ids(output, tokenizer, &ids, request->pieces);
  }
  tokens_free(&ids);
  return status;
}

enum status tokenize_command(struct text *output, int argc, char *const argv[]) {
  struct request request;
  struct tokenizer *tokenizer;
  TRY(parse(&request, argc, argv));
  TRY(tokenizer_open(&tokenizer, request.tokenizer));
  const enum status status = answer(output, tokenizer, &request);
  tokenizer_close(tokenizer);
  TRY(status);
  return STATUS_OK;
}
