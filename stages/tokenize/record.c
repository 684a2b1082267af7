#include "stages/tokenize/record.h"

#include <jansson.h>
#include <string.h>

/* The value under "a.b": key b of the object under key a; a key that has dots itself wins. */
static json_t *find_key(json_t *json, const char *key) {
  json_t *whole = json_object_get(json, key);
  const char *dot = strchr(key, '.');
  if (whole || !dot) return whole;
  json_t *inner = json_object_getn(json, key, (size_t)(dot - key));
  return inner ? find_key(inner, dot + 1) : NULL;
}

enum status record_json(struct text *document, const char *bytes, size_t count, const char *key,
                        const char *where, uint64_t offset) {
  json_error_t problem;
  json_t *json = json_loadb(bytes, count, JSON_ALLOW_NUL, &problem);
  CHECK(json, STATUS_DAMAGED, "%s: the line at byte %llu is not JSON: %s", where,
        (unsigned long long)offset, problem.text);
  json_t *value = find_key(json, key);
  enum status status;
  if (json_is_string(value))
    status = text_add_bytes(document, json_string_value(value), json_string_length(value));
  else
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "%s: the line at byte %llu has no string under the key '%s' (text_key)",
                         where, (unsigned long long)offset, key);
  json_decref(json);
  return status;
}

struct span {
  const char *bytes;
  size_t count;
};

/* The next line, without its break. */
static struct span next_line(struct span *rest) {
  const char *stop = memchr(rest->bytes, '\n', rest->count);
  const size_t length = stop ? (size_t)(stop - rest->bytes) : rest->count;
  const struct span line = {rest->bytes, length};
  rest->bytes += length + (stop != NULL);
  rest->count -= length + (stop != NULL);
  return line;
}

/* The value of a description field whose first line is `line`: what follows the colon. */
static bool is_description(struct span *value, struct span line) {
  static const char name[] = "Description";
  const size_t length = sizeof name - 1;
  if (line.count <= length || memcmp(line.bytes, name, length) != 0) return false;
  const char *colon = memchr(line.bytes, ':', line.count);
  if (!colon) return false;
  const size_t suffix = (size_t)(colon - line.bytes) - length;
  if (suffix && line.bytes[length] != '-') return false;
  if (suffix == 4 && memcmp(line.bytes + length, "-md5", 4) == 0) return false;
  *value = (struct span){colon + 1, line.count - (size_t)(colon + 1 - line.bytes)};
  return true;
}

/* Lengthens `value` over the continuation lines at the start of `rest`. */
static void take_continuation(struct span *value, struct span *rest) {
  while (rest->count && rest->bytes[0] == ' ') {
    next_line(rest);
    value->count = (size_t)(rest->bytes - value->bytes);
  }
}

static struct span find_description(struct span stanza) {
  struct span best = {NULL, 0}, value;
  while (stanza.count) {
    if (!is_description(&value, next_line(&stanza))) continue;
    take_continuation(&value, &stanza);
    if (value.count > best.count) best = value;
  }
  return best;
}

static struct span trim(struct span span) {
  while (span.count && span.bytes[0] == ' ') span.bytes++, span.count--;
  while (span.count && strchr(" \r\n", span.bytes[span.count - 1])) span.count--;
  return span;
}

/* One continuation line: " ." ends a paragraph, "  text" is a line of its own, " text" flows on. */
static enum status add_line(struct text *document, struct span line, const char **joint) {
  const struct span text = trim(line);
  if (!text.count || (text.count == 1 && text.bytes[0] == '.')) {
    *joint = "\n\n";
    return STATUS_OK;
  }
  const bool verbatim = line.count > 1 && line.bytes[1] == ' ';
  const bool flows = !verbatim && strcmp(*joint, " ") == 0;
  TRY(text_add(document, strlen(*joint) == 2 ? "\n\n" : flows ? " " : "\n"));
  TRY(text_add_bytes(document, text.bytes, text.count));
  *joint = verbatim ? "\n" : " ";
  return STATUS_OK;
}

enum status record_package(struct text *document, const char *bytes, size_t count) {
  struct span rest = find_description((struct span){bytes, count});
  if (!rest.count) return text_add(document, "");
  const struct span synopsis = trim(next_line(&rest));
  TRY(text_add_bytes(document, synopsis.bytes, synopsis.count));
  const char *joint = "\n\n";
  while (rest.count) TRY(add_line(document, next_line(&rest), &joint));
  return STATUS_OK;
}
