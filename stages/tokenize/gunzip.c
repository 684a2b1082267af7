#include "stages/tokenize/gunzip.h"

#include <stdlib.h>
#include <zlib.h>

enum { BLOCK = 128 << 10, GZIP_WINDOW = 15 + 16 }; /* 16: a gzip header and trailer */

struct gunzip {
  struct gunzip_source source;
  z_stream stream;
  bool between; /* a member ended, and no other one has begun */
  bool ended;   /* the source is exhausted */
  unsigned char block[BLOCK];
};

bool gunzip_is_gzip(const char *head, size_t count) {
  return count >= 2 && head[0] == '\x1f' && head[1] == '\x8b';
}

enum status gunzip_open(struct gunzip **gunzip, struct gunzip_source source) {
  struct gunzip *opened = calloc(1, sizeof *opened);
  if (opened && inflateInit2(&opened->stream, GZIP_WINDOW) != Z_OK) {
    free(opened);
    opened = NULL;
  }
  CHECK(opened, STATUS_ENVIRONMENT, "out of memory: a gzip reader");
  opened->source = source;
  *gunzip = opened;
  return STATUS_OK;
}

void gunzip_close(struct gunzip *gunzip) {
  if (!gunzip) return;
  inflateEnd(&gunzip->stream);
  free(gunzip);
}

static enum status refill(struct gunzip *gunzip) {
  const char *bytes = NULL;
  size_t count = 0;
  TRY(gunzip->source.next(gunzip->source.state, &bytes, &count));
  gunzip->stream.next_in = (z_const Bytef *)bytes;
  gunzip->stream.avail_in = (uInt)count;
  gunzip->ended = count == 0;
  return STATUS_OK;
}

/* Behind a member: zeros are left out, and another member is begun. */
static enum status begin_member(struct gunzip *gunzip) {
  z_stream *stream = &gunzip->stream;
  while (stream->avail_in && !*stream->next_in) stream->next_in++, stream->avail_in--;
  if (!stream->avail_in) return STATUS_OK;
  CHECK(*stream->next_in == 0x1f, STATUS_DAMAGED,
        "something that is not gzip follows the gzip stream");
  CHECK(inflateReset(stream) == Z_OK, STATUS_INTERNAL, "zlib cannot begin again");
  gunzip->between = false;
  return STATUS_OK;
}

static enum status inflate_some(struct gunzip *gunzip) {
  const int result = inflate(&gunzip->stream, Z_NO_FLUSH);
  gunzip->between = result == Z_STREAM_END;
  if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return STATUS_OK;
  FAIL(STATUS_DAMAGED, "the gzip stream is damaged: %s",
       gunzip->stream.msg ? gunzip->stream.msg : "zlib gives no reason");
}

enum status gunzip_next(struct gunzip *gunzip, const char **bytes, size_t *count) {
  z_stream *stream = &gunzip->stream;
  stream->next_out = gunzip->block;
  stream->avail_out = BLOCK;
  while (stream->avail_out == BLOCK) {
    if (!stream->avail_in && !gunzip->ended) TRY(refill(gunzip));
    if (gunzip->between && stream->avail_in) TRY(begin_member(gunzip));
    if (gunzip->ended && (gunzip->between || !stream->avail_in)) break;
    if (!gunzip->between) TRY(inflate_some(gunzip));
  }
  *bytes = (const char *)gunzip->block;
  *count = BLOCK - stream->avail_out;
  CHECK(*count || gunzip->between, STATUS_DAMAGED, "the gzip stream was cut off");
  return STATUS_OK;
}
