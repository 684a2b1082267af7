/* The stage `embed`: tokens through a frozen encoder to shards of latents. */
#ifndef STAGES_EMBED_EMBED_H
#define STAGES_EMBED_EMBED_H

#include "pipeline/base/error.h"
#include "stages/stage.h"

/* Row r (of the first embed_rows) of side "train" or "held_out" of the tokenize node upstream
 * becomes row r of the store of the same name: column "embeddings", BF16 [positions, width], the
 * encoder's final hidden states at every position (padding too, which is never a key), divided by
 * one number for all of them: the option embed_scale, or the root mean square over the first rows.
 * Shards have the same bytes for any number of ranks and any batch. With `embed: online` there are
 * none: the scale is decided, and readers encode (stages/flow/latents.h). Facts of the manifest:
 * embed, encoder, encoder_hash, tokens, width, positions, scale, train_rows, held_out_rows.
 * Collective over stage->comm. STOPPED, after finished shards, when asked to stop. */
enum status embed_stage(struct stage *stage);

#endif
