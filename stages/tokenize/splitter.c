#include "stages/tokenize/splitter.h"

#include <fnmatch.h>
#include <string.h>

#include "stages/tokenize/record.h"

static bool is_blank(const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != ' ' && (bytes[i] < '\t' || bytes[i] > '\r')) return false;
  return true;
}

static enum status give(struct splitter *splitter, const char *bytes, size_t count) {
  if (splitter->every_line || !is_blank(bytes, count))
    return splitter->sink.add(splitter->sink.state, bytes, count);
  splitter->empty++;
  return STATUS_OK;
}

enum status splitter_give_pair(struct splitter *splitter, const struct document_pair *pair) {
  if (!is_blank(pair->source, pair->source_count) && !is_blank(pair->target, pair->target_count))
    return splitter->sink.add_pair(splitter->sink.state, pair);
  splitter->empty++;
  return STATUS_OK;
}

enum status splitter_give_gathered(struct splitter *splitter) {
  const struct text *source = &splitter->document, *target = &splitter->target;
  if (!splitter->sink.add_pair) return give(splitter, source->bytes, source->length);
  return splitter_give_pair(splitter, &(struct document_pair){.source = source->bytes,
                                                              .source_count = source->length,
                                                              .target = target->bytes,
                                                              .target_count = target->length});
}

enum status splitter_refuse(struct splitter *splitter, enum status status, struct refusal refusal) {
  const bool damage = status == STATUS_DAMAGED || (refusal.document && status == STATUS_MISMATCH);
  if (!damage || !splitter->sink.refuse) return status;
  text_clear(&splitter->line);
  text_clear(&splitter->record);
  splitter->sample.refused = true;
  refusal.reason = error_message();
  return splitter->sink.refuse(splitter->sink.state, &refusal);
}

static enum status read_json(struct splitter *splitter, const char *bytes, size_t count) {
  TRY(record_json(&splitter->document, bytes, count, splitter->text_key, splitter->name,
                  splitter->begun));
  if (!splitter->sink.add_pair) return STATUS_OK;
  text_clear(&splitter->target);
  return record_json(&splitter->target, bytes, count, splitter->target_key, splitter->name,
                     splitter->begun);
}

/* The paragraphs are the source, the synopsis before them is the target. */
static enum status give_package(struct splitter *splitter) {
  const struct text *document = &splitter->document;
  const char *end = document->bytes + document->length;
  const char *blank = strstr(document->bytes, "\n\n"), *source = blank ? blank + 2 : end;
  return splitter_give_pair(
      splitter,
      &(struct document_pair){.source = source,
                              .source_count = (size_t)(end - source),
                              .target = document->bytes,
                              .target_count = (size_t)((blank ? blank : end) - document->bytes)});
}

static enum status give_record(struct splitter *splitter, const char *bytes, size_t count) {
  text_clear(&splitter->document);
  if (splitter->boundary == BOUNDARY_PACKAGE) {
    TRY(record_package(&splitter->document, bytes, count));
    if (splitter->sink.add_pair) return give_package(splitter);
    return splitter_give_gathered(splitter);
  }
  const enum status status = read_json(splitter, bytes, count);
  if (status == STATUS_OK) return splitter_give_gathered(splitter);
  return splitter_refuse(
      splitter, status,
      (struct refusal){.name = splitter->name, .offset = splitter->begun, .document = true});
}

/* Hands on what was gathered; the line break at its end is not part of it. */
static enum status flush(struct splitter *splitter, const char *bytes, size_t count) {
  if (!count && splitter->boundary != BOUNDARY_SAMPLE) return STATUS_OK;
  if (splitter->boundary == BOUNDARY_PACKAGE || splitter->boundary == BOUNDARY_KEY)
    return give_record(splitter, bytes, count);
  if (splitter->boundary == BOUNDARY_SAMPLE) return sample_take(splitter, bytes, count);
  if (splitter->boundary != BOUNDARY_FILE && bytes[count - 1] == '\n') count--;
  if (splitter->boundary != BOUNDARY_FILE && count && bytes[count - 1] == '\r') count--;
  return give(splitter, bytes, count);
}

static enum status gather(struct splitter *splitter, struct text *into, const char *bytes,
                          size_t count) {
  CHECK(into->length + count <= DOCUMENT_BYTES, STATUS_MISMATCH,
        "%s: the document at byte %llu is larger than %d MiB; choose another boundary",
        splitter->name, (unsigned long long)splitter->begun, DOCUMENT_BYTES >> 20);
  return text_add_bytes(into, bytes, count);
}

static enum status end_record(struct splitter *splitter) {
  const enum status status = flush(splitter, splitter->record.bytes, splitter->record.length);
  text_clear(&splitter->record);
  return status;
}

/* One whole line that began at `begin`, with its line break unless the stream ends. */
static enum status take_line(struct splitter *splitter, uint64_t begin, const char *bytes,
                             size_t count) {
  const bool by_record = boundary_needs_blank_line(splitter->boundary);
  const bool blank = is_blank(bytes, count);
  if (by_record && blank) return end_record(splitter);
  if (blank && !splitter->every_line) return STATUS_OK;
  if (!splitter->record.length) {
    if (begin >= splitter->limit) splitter->done = true;
    if (splitter->done) return STATUS_OK;
    splitter->begun = begin;
  }
  if (by_record) return gather(splitter, &splitter->record, bytes, count);
  return flush(splitter, bytes, count);
}

static enum status take_gathered_line(struct splitter *splitter) {
  struct text *line = &splitter->line;
  TRY(take_line(splitter, splitter->offset - line->length, line->bytes, line->length));
  text_clear(line);
  return STATUS_OK;
}

static enum status feed_lines(struct splitter *splitter, const char *bytes, size_t count) {
  const char *const end = bytes + count;
  while (bytes < end && !splitter->done) {
    const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
    const size_t length = (size_t)((stop ? stop + 1 : end) - bytes);
    const uint64_t begin = splitter->offset;
    splitter->offset += length;
    if (stop && !splitter->line.length) {
      TRY(take_line(splitter, begin, bytes, length));
    } else {
      TRY(gather(splitter, &splitter->line, bytes, length));
      if (stop) TRY(take_gathered_line(splitter));
    }
    bytes += length;
  }
  return STATUS_OK;
}

struct splitter splitter_for(const struct options *options, struct document_sink sink) {
  return (struct splitter){.boundary = options->boundary,
                           .text_key = options->text_key,
                           .target_key = options->target_key,
                           .entries = options->entries,
                           .sink = sink};
}

enum status splitter_feed(struct splitter *splitter, const char *bytes, size_t count) {
  if (boundary_divides(splitter->boundary)) return feed_lines(splitter, bytes, count);
  TRY(gather(splitter, &splitter->record, bytes, count));
  splitter->offset += count;
  return STATUS_OK;
}

bool splitter_wants(const char *entries, const char *name) {
  if (!entries || !*entries) return true;
  const char *slash = strrchr(name, '/');
  return fnmatch(entries, slash ? slash + 1 : name, 0) == 0;
}

enum status splitter_finish(struct splitter *splitter) {
  if (splitter->line.length && !splitter->done) TRY(take_gathered_line(splitter));
  return end_record(splitter);
}

void splitter_free(struct splitter *splitter) {
  text_free(&splitter->line);
  text_free(&splitter->record);
  text_free(&splitter->document);
  text_free(&splitter->target);
  sample_free(&splitter->sample);
}
