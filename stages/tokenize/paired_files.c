#include "stages/tokenize/paired_files.h"

#include "stages/tokenize/archive.h"
#include "stages/tokenize/line_queue.h"
#include "stages/tokenize/plain.h"

/* The target, read by the queue's thread. */
struct answers {
  const struct input_file *file;
  const char *entries;
  uint64_t warnings, binary, links;
};

struct questions {
  const struct input_file *source, *target;
  struct line_queue queue;
  struct splitter *splitter; /* of the caller */
  uint64_t lines;
};

static enum status read_lines(const struct input_file *file, struct splitter *splitter) {
  return file->packed ? archive_read(file->path, splitter)
                      : plain_read(file->path, 0, UINT64_MAX, splitter);
}

static struct splitter line_splitter(const char *entries, struct document_sink sink) {
  return (struct splitter){
      .boundary = BOUNDARY_LINE, .every_line = true, .entries = entries, .sink = sink};
}

static enum status add_answer(void *state, const char *bytes, size_t count) {
  return line_queue_add(state, bytes, count);
}

static enum status read_answers(void *state, struct line_queue *queue) {
  struct answers *answers = state;
  struct splitter splitter =
      line_splitter(answers->entries, (struct document_sink){.add = add_answer, .state = queue});
  const enum status status = read_lines(answers->file, &splitter);
  answers->warnings = splitter.warnings;
  answers->binary = splitter.binary;
  answers->links = splitter.links;
  splitter_free(&splitter);
  return status;
}

static enum status ask(void *state, const char *bytes, size_t count) {
  struct questions *questions = state;
  struct document_pair pair = {.source = bytes, .source_count = count};
  TRY(line_queue_next(&questions->queue, &pair.target, &pair.target_count));
  CHECK(pair.target, STATUS_MISMATCH, "'%s' ends after %llu lines, but '%s' goes on",
        questions->target->path, (unsigned long long)questions->lines, questions->source->path);
  questions->lines++;
  return splitter_give_pair(questions->splitter, &pair);
}

static enum status check_end(struct questions *questions) {
  const char *bytes;
  size_t count;
  TRY(line_queue_next(&questions->queue, &bytes, &count));
  CHECK(!bytes, STATUS_MISMATCH, "'%s' ends after %llu lines, but '%s' goes on",
        questions->source->path, (unsigned long long)questions->lines, questions->target->path);
  return STATUS_OK;
}

static enum status read_pairs(struct questions *questions, struct splitter *lines) {
  TRY(read_lines(questions->source, lines));
  return check_end(questions);
}

enum status paired_files_read(const struct input_file *source, const struct input_file *target,
                              struct splitter *splitter) {
  struct answers answers = {.file = target, .entries = splitter->entries};
  struct questions questions = {.source = source,
                                .target = target,
                                .queue = {.read = read_answers, .state = &answers},
                                .splitter = splitter};
  struct splitter lines =
      line_splitter(splitter->entries, (struct document_sink){.add = ask, .state = &questions});
  TRY(line_queue_open(&questions.queue));
  const enum status status = read_pairs(&questions, &lines);
  line_queue_close(&questions.queue);
  splitter->warnings += lines.warnings + answers.warnings;
  splitter->binary += lines.binary + answers.binary;
  splitter->links += lines.links + answers.links;
  splitter_free(&lines);
  TRY(status);
  return STATUS_OK;
}
