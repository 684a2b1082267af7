/* Lines of a file, read by a thread and taken one by one, in blocks of bounded size. */
#ifndef STAGES_TOKENIZE_LINE_QUEUE_H
#define STAGES_TOKENIZE_LINE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "pipeline/base/text.h"

enum { LINE_QUEUE_BLOCK = 256 << 10, LINE_QUEUE_MESSAGE = 1024 };

struct line_queue {
  /* set by the caller: reads everything, and gives each line to line_queue_add */
  enum status (*read)(void *state, struct line_queue *queue);
  void *state;
  /* kept by the queue */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct text filling, ready, taken; /* lines: a size_t and so many bytes each */
  size_t place;                      /* of the next line in `taken` */
  bool full, ended, closing;         /* of `ready`; of the reading; nobody takes any more */
  enum status status;                /* of the reading */
  char message[LINE_QUEUE_MESSAGE];
};

/* Starts the thread, which blocks all signals; the queue must not move. Local. ENVIRONMENT. */
enum status line_queue_open(struct line_queue *queue);

/* For the reader: adds a line. Local. STOPPED when the queue is being closed. */
enum status line_queue_add(struct line_queue *queue, const char *bytes, size_t count);

/* Takes the next line, borrowed until the next call; *bytes = NULL at the end. Local. The status
 * of the reader, with its message. */
enum status line_queue_next(struct line_queue *queue, const char **bytes, size_t *count);

/* Ends the thread wherever it is. Local. */
void line_queue_close(struct line_queue *queue);

#endif
