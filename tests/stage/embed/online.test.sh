#!/usr/bin/env bash
# `embed: online`: a training that computes its embeddings has the losses and weights, bit for bit, of
# one that reads them from shards (R-IO-2), on another number of ranks and after a stop; `plan` says
# which of both is cheaper.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
millrace=$OUT/millrace

awk 'BEGIN {srand(5); n = split("eins zwei drei vier rot blau", de, " "); split("one two three four red blue", en, " ")
  for (i = 0; i < 160; i++) {a = b = ""; for (j = 0; j < 2; j++) {k = int(rand() * n) + 1; a = a de[k] " "; b = b en[k] " "}
    print a i >"text.de"; print b i >"text.en"}}'
cat >g.yaml <<'EOT'
name: toy
seed: 3
ranks: 1
defaults: {width: 32, depth: 1, heads: 2, batch: 8, micro_shards: 4, steps: 6, threads: 1, validate_rows: 5,
  validate_every: 3, checkpoint_every: 2, encoder: random, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
nodes:
  pairs: {run: tokenize, input: text.de, target: text.en, boundary: line, packing: pairs, tokenizer: byte,
    sequence_length: 32, source_length: 14, held_out: 0.1}
  stored: {run: embed, from: pairs, embed_rows: 40, embed_normalise: channels}
  online: {run: embed, from: pairs, embed_rows: 40, embed_normalise: channels, embed: online}
  pair: {run: pretrain, method: elf, from: [pairs, stored]}
  pair2: {run: pretrain, method: elf, from: [pairs, online]}
EOT
stop_at g.yaml pair2 1
check "a training is stopped in the middle" [ $? -eq 75 ]
"$millrace" run g.yaml --set pair2.ranks=2 >output 2>&1
check "every node runs" [ $? -eq 0 ]
check "an online embed node leaves no shards" [ -z "$(ls runs/toy/online/*.zst 2>/dev/null)" ]
check "computed while training, stopped and gone on with on 2 ranks: the same bits (R-IO-2)" same_numbers pair pair2
check "the time goes to a phase of its own" grep -Eq '"embed":[0-9.e-]*[1-9]' runs/toy/pair2/metrics.jsonl
check "the log says what the encoder takes" grep -q "memory of rank 0: .*encoder " runs/toy/pair2.log

rm -r runs/toy/pair runs/toy/stored
"$millrace" plan g.yaml --storage-rate 1kB >output 2>&1
check "slow storage: online is cheaper" grep -q "embeddings: online is cheaper.*--set stored.embed=online" output
"$millrace" plan g.yaml --storage-rate 500GB --set stored.encoder_depth=400 --set pair.steps=100000 >output 2>&1
check "a large encoder and many epochs: shards are cheaper" \
  grep -q "embeddings: shards are cheaper, .*; the recipe takes them" output
check "plan says why" grep -q "embeddings in shards: .* s to encode once, .* s to write, .* s to read in 2e+04 epochs" output
"$millrace" plan g.yaml --storage-rate fast >output 2>&1
check "a rate that is none is refused" says "found 'fast'"
finish
