#include "stages/tokenize/line_queue.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Hands the block that was filled to the taker. */
static enum status hand_over(struct line_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  while (queue->full && !queue->closing) pthread_cond_wait(&queue->changed, &queue->lock);
  const bool closing = queue->closing;
  const struct text empty = queue->ready;
  queue->ready = queue->filling;
  queue->filling = empty;
  queue->full = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  text_clear(&queue->filling);
  CHECK(!closing, STATUS_STOPPED, "nobody takes the lines any more");
  return STATUS_OK;
}

enum status line_queue_add(struct line_queue *queue, const char *bytes, size_t count) {
  TRY(text_add_bytes(&queue->filling, &count, sizeof count));
  TRY(text_add_bytes(&queue->filling, bytes, count));
  return queue->filling.length < LINE_QUEUE_BLOCK ? STATUS_OK : hand_over(queue);
}

static void *run(void *argument) {
  struct line_queue *queue = argument;
  enum status status = queue->read(queue->state, queue);
  if (status == STATUS_OK && queue->filling.length) status = hand_over(queue);
  if (status != STATUS_OK) snprintf(queue->message, LINE_QUEUE_MESSAGE, "%s", error_message());
  pthread_mutex_lock(&queue->lock);
  queue->status = status;
  queue->ended = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

enum status line_queue_open(struct line_queue *queue) {
  sigset_t all, before;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&queue->thread, NULL, run, queue);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  CHECK(!failed, STATUS_ENVIRONMENT, "cannot start a reading thread: %s", strerror(failed));
  return STATUS_OK;
}

/* Waits for the next block; `taken` stays empty at the end. */
static enum status take_block(struct line_queue *queue) {
  text_clear(&queue->taken);
  queue->place = 0;
  pthread_mutex_lock(&queue->lock);
  while (!queue->full && !queue->ended) pthread_cond_wait(&queue->changed, &queue->lock);
  if (queue->full) {
    const struct text empty = queue->taken;
    queue->taken = queue->ready;
    queue->ready = empty;
    queue->full = false;
    pthread_cond_broadcast(&queue->changed);
  }
  pthread_mutex_unlock(&queue->lock);
  if (queue->taken.length) return STATUS_OK;
  CHECK(queue->status == STATUS_OK, queue->status, "%s", queue->message);
  return STATUS_OK;
}

enum status line_queue_next(struct line_queue *queue, const char **bytes, size_t *count) {
  *bytes = NULL;
  *count = 0;
  if (queue->place == queue->taken.length) TRY(take_block(queue));
  if (!queue->taken.length) return STATUS_OK;
  memcpy(count, queue->taken.bytes + queue->place, sizeof *count);
  *bytes = queue->taken.bytes + queue->place + sizeof *count;
  queue->place += sizeof *count + *count;
  return STATUS_OK;
}

void line_queue_close(struct line_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  text_free(&queue->filling);
  text_free(&queue->ready);
  text_free(&queue->taken);
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->lock);
}
