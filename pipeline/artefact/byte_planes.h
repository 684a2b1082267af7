/* The byte-plane filter: rows of 2-byte or 4-byte elements are stored as all first bytes, then all
 * second bytes, ... of the row. The bytes of a plane resemble one another (sign and exponent, or
 * mantissa), which a general compressor cannot see in the plain order. Lossless.
 *
 * A filtered array is declared U8 [rows, element bytes, elements per row] under the same name, and
 * the metadata key "planes.NAME" holds its type and shape: "BF16 [1000, 128, 768]".
 */
#ifndef PIPELINE_ARTEFACT_BYTE_PLANES_H
#define PIPELINE_ARTEFACT_BYTE_PLANES_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/text.h"

/* out = the planes of `elements` elements of `width` bytes each, and back. In place is not
 * possible. Local. */
void byte_planes_split(unsigned char *out, const unsigned char *in, size_t elements, size_t width);
void byte_planes_join(unsigned char *out, const unsigned char *in, size_t elements, size_t width);

/* The declaration of the filtered array and the value of its "planes.NAME" key. Local. */
enum status byte_planes_declare(struct safetensors_tensor *filtered, struct text *value,
                                const struct safetensors_tensor *plain);

/* The plain declaration behind a filtered tensor; *is_filtered says whether there is one. `plain`
 * keeps the offset and bytes of the file. Local. DAMAGED when key and tensor do not fit. */
enum status byte_planes_find(struct safetensors_tensor *plain, bool *is_filtered,
                             const struct safetensors *file,
                             const struct safetensors_tensor *tensor);

#endif
