#!/usr/bin/env bash
# Held-out loss falls below that of a unigram model of the same tokens: what learns nothing shows.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 600
make_recipe g.yaml 120
echo "  ar: {run: pretrain, method: ar, from: tokens, checkpoint_every: 60, validate_every: 120}" >>g.yaml
"$millrace" run g.yaml --dry-run >output 2>&1
check "a dry run shows the plan and makes nothing" test $? -eq 0 -a ! -e runs/toy/tokens -a -s output
"$millrace" run g.yaml >output 2>&1
check "it trains" test $? -eq 0
unigram=$(sed -nE 's/.*"unigram_loss_nats": *([0-9.]+).*/\1/p' runs/toy/tokens/manifest.json | head -1)
loss=$(sed -nE 's/.*"event":"validation".*"loss":([0-9.]+).*/\1/p' runs/toy/ar/metrics.jsonl | tail -1)
echo "# held-out loss $loss, unigram $unigram"
check "held-out loss is below the unigram's" awk -v a="$loss" -v b="$unigram" 'BEGIN {exit !(b > 0 && a < 0.8 * b)}'

# The average is kept beside the weights, and only weights are left.
check "weights are published" test -f runs/toy/ar/weights/step-120/tensors-00000.safetensors
check "checkpoints are gone" test ! -e runs/toy/ar/checkpoints
finish
