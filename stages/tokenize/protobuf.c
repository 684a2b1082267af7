#include "stages/tokenize/protobuf.h"

#include <string.h>

static bool read_varint(struct protobuf *message, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && message->at < message->count; shift += 7) {
    const unsigned char byte = (unsigned char)message->bytes[message->at++];
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool read_fixed(struct protobuf *message, uint64_t *value, size_t bytes) {
  *value = 0;
  if (message->count - message->at < bytes) return false;
  for (size_t i = 0; i < bytes; i++)
    *value |= (uint64_t)(unsigned char)message->bytes[message->at + i] << (8 * i);
  message->at += bytes;
  return true;
}

static bool read_delimited(struct protobuf *message, struct protobuf_field *field) {
  uint64_t count;
  if (!read_varint(message, &count) || count > message->count - message->at) return false;
  field->bytes = message->bytes + message->at;
  field->count = (size_t)count;
  message->at += field->count;
  return true;
}

static bool read_value(struct protobuf *message, struct protobuf_field *field, unsigned wire) {
  if (wire == 0) return read_varint(message, &field->integer);
  if (wire == 1) return read_fixed(message, &field->integer, 8);
  if (wire == 2) return read_delimited(message, field);
  if (wire == 5) return read_fixed(message, &field->integer, 4);
  return false;
}

bool protobuf_next(struct protobuf *message, struct protobuf_field *field) {
  uint64_t key;
  *field = (struct protobuf_field){0};
  if (message->broken || message->at == message->count) return false;
  message->broken = true;
  if (!read_varint(message, &key) || key >> 3 == 0 || key >> 35) return false;
  field->number = (uint32_t)(key >> 3);
  message->broken = !read_value(message, field, (unsigned)(key & 7));
  return !message->broken;
}

float protobuf_float(const struct protobuf_field *field) {
  const uint32_t bits = (uint32_t)field->integer;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
