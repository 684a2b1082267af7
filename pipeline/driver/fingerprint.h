/* What a node is made from, as text: one line for each option that changes results, each file it
 * reads and each node it is from. Two runs of a node with the same text make the same artefact, so
 * a finished node whose text is still the same need not run again (decision 0002).
 *
 *   format: 1
 *   run: pretrain
 *   steps: 1000
 *   input[0]: 6f1c...                  a PATH counts by content, not by name
 *   from tokens: 93ab...               the identity in the node's manifest
 *
 * The text is kept as `fingerprint` in the node's folder.
 */
#ifndef PIPELINE_DRIVER_FINGERPRINT_H
#define PIPELINE_DRIVER_FINGERPRINT_H

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"
#include "pipeline/driver/content.h"

/* Of the text itself; stages have rules of their own (kinds.def). */
enum { FINGERPRINT_FORMAT = 1 };

/* Appends the text. Every input of the node must be finished. Local. MISMATCH when a file is
 * missing or an input is not finished. */
enum status fingerprint_make(struct text *text, const struct recipe *recipe,
                             const struct recipe_node *node, const char *run_folder,
                             struct content_cache *cache);

/* Appends one line for each difference: "steps: 1000 -> 2000". Nothing when they are equal. Local.
 */
enum status fingerprint_difference(struct text *text, const char *old, const char *new);

#endif
