#!/usr/bin/env bash
# R-VOC-1: what `millrace plan` says of the memory of three recipes and the peak that is resident while they
# train agree within 5 %.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
case $OUT in *asan*) skip_all "sanitizers take memory of their own" ;; esac
make_corpus corpus.txt 300
cat >g.yaml <<'EOT'
name: toy
seed: 5
ranks: 1
defaults: {batch: 4, micro_shards: 2, steps: 2, validate_rows: 2, validate_every: 100, threads: 1}
nodes:
  tokens: {run: tokenize, input: corpus.txt, tokenizer: byte, sequence_length: 128, held_out: 0.1}
  ar: {run: pretrain, method: ar, from: tokens, width: 512, depth: 8, heads: 8}
  cfm: {run: pretrain, method: cfm, from: tokens, width: 512, depth: 8, heads: 8, ema: 0,
        moments: bf16, gradients: bf16, recompute: true}
  codes: {run: autoencode, from: tokens, width: 384, depth: 4, heads: 6, optimizer: muon}
EOT
planned() { # MiB of a node
  sed -nE "/^$1: /,/memory of/s/.*memory of a rank ([0-9.]+) MiB.*/\1/p" plan
}
resident() {
  sed -nE 's/.*"resident":([0-9]+).*/\1/p' "runs/toy/$1/metrics.jsonl"
}
near() { awk -v p="$1" -v r="$2" 'BEGIN {r /= 1048576; print p, r; exit !(p > 0.95 * r && p < 1.05 * r)}' >output; }
"$millrace" plan g.yaml >plan
"$millrace" run g.yaml >output 2>&1 && ok "the nodes train" || not_ok "the nodes train" output
for node in ar cfm codes; do
  check "$node: the plan is within 5 % of the peak" near "$(planned $node)" "$(resident $node)"
done
finish
