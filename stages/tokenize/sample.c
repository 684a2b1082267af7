#include "stages/tokenize/sample.h"

#include <string.h>

#include "stages/tokenize/record.h"
#include "stages/tokenize/splitter.h"

static const char *key_of(const struct splitter *splitter, int side) {
  if (side == 0) return splitter->text_key;
  return splitter->sink.add_pair ? splitter->target_key : NULL;
}

/* The extension of an entry: what follows the first dot behind the last slash, or "". */
static const char *find_extension(const char *entry) {
  const char *slash = strrchr(entry, '/');
  const char *dot = strchr(slash ? slash + 1 : entry, '.');
  return dot ? dot + 1 : entry + strlen(entry);
}

/* Whether `key` names this extension, or (*inside) a key of such an entry in JSON. */
static bool names(const char *key, const char *extension, const char **inside) {
  *inside = NULL;
  if (strcmp(key, extension) == 0) return true;
  if (strcmp(extension, "json") != 0 || strncmp(key, "json.", 5) != 0) return false;
  *inside = key + 5;
  return true;
}

static enum status check_whole(const struct splitter *splitter) {
  for (int side = 0; side < 2; side++) {
    const char *key = key_of(splitter, side);
    CHECK(!key || splitter->sample.sides[side].found, STATUS_MISMATCH,
          "the sample '%s' has no entry for %s '%s'", splitter->sample.stem.bytes,
          side ? "target_key" : "text_key", key);
  }
  return STATUS_OK;
}

static void forget(struct splitter *splitter) {
  struct sample *sample = &splitter->sample;
  text_clear(&sample->stem);
  sample->refused = sample->sides[0].found = sample->sides[1].found = false;
  text_clear(&splitter->document);
  text_clear(&splitter->target);
}

enum status sample_end(struct splitter *splitter) {
  const struct sample *sample = &splitter->sample;
  if (!sample->stem.length) return STATUS_OK;
  enum status status = sample->refused ? STATUS_OK : check_whole(splitter);
  if (status != STATUS_OK)
    status = splitter_refuse(splitter, status,
                             (struct refusal){.name = sample->stem.bytes, .document = true});
  else if (!sample->refused)
    status = splitter_give_gathered(splitter);
  forget(splitter);
  return status;
}

static enum status choose_sides(struct splitter *splitter, const char *name,
                                const char *extension) {
  for (int side = 0; side < 2; side++) {
    struct sample_side *chosen = &splitter->sample.sides[side];
    const char *key = key_of(splitter, side);
    chosen->wanted = key && names(key, extension, &chosen->key);
    CHECK(!chosen->wanted || !chosen->found, STATUS_DAMAGED,
          "%s: the sample has an entry with this extension already", name);
    chosen->found |= chosen->wanted;
  }
  return STATUS_OK;
}

enum status sample_begin(struct splitter *splitter, const char *name, size_t prefix, bool *wanted) {
  struct sample *sample = &splitter->sample;
  const char *extension = find_extension(name + prefix);
  const size_t length = (size_t)(extension - name);
  *wanted = false;
  if (sample->stem.length != length || memcmp(sample->stem.bytes, name, length) != 0) {
    TRY(sample_end(splitter));
    TRY(text_add_bytes(&sample->stem, name, length));
  }
  TRY(choose_sides(splitter, name, extension));
  *wanted = sample->sides[0].wanted || sample->sides[1].wanted;
  return STATUS_OK;
}

static enum status take_side(struct splitter *splitter, int side, const char *bytes, size_t count) {
  const struct sample_side *chosen = &splitter->sample.sides[side];
  struct text *into = side ? &splitter->target : &splitter->document;
  if (!chosen->wanted) return STATUS_OK;
  if (!chosen->key) return text_add_bytes(into, bytes, count);
  return record_json(into, bytes, count, chosen->key, splitter->name, 0);
}

enum status sample_take(struct splitter *splitter, const char *bytes, size_t count) {
  CHECK(splitter->sample.stem.length, STATUS_MISMATCH,
        "'%s' is no archive; boundary: sample reads the entries of archives", splitter->name);
  for (int side = 0; side < 2; side++) {
    const enum status status = take_side(splitter, side, bytes, count);
    if (status != STATUS_OK)
      return splitter_refuse(splitter, status,
                             (struct refusal){.name = splitter->name, .document = true});
  }
  return STATUS_OK;
}

void sample_free(struct sample *sample) {
  text_free(&sample->stem);
}
