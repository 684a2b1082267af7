/* Reads the fields of a protocol buffers message one after another. */
#ifndef STAGES_TOKENIZE_PROTOBUF_H
#define STAGES_TOKENIZE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf {
  const char *bytes; /* borrowed */
  size_t count, at;
  bool broken; /* what followed `at` is no field */
};

struct protobuf_field {
  uint32_t number;
  uint64_t integer;  /* of a varint, or the bits of a fixed-width value */
  const char *bytes; /* of a length-delimited field; else NULL */
  size_t count;
};

/* Reads the next field; false at the end, and (with `broken`) when the message is damaged. Local.
 */
bool protobuf_next(struct protobuf *message, struct protobuf_field *field);

/* The value of a 32-bit field as a float. Local. */
float protobuf_float(const struct protobuf_field *field);

#endif
