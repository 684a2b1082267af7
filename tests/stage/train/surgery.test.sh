#!/usr/bin/env bash
# Gradient surgery of distillation: the same on any number of ranks, another training than without, and
# without effect where there is nothing to operate on: where all rows jump, or none does.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 4
cat >>g.yaml <<'END'
  cfm: {run: pretrain, method: cfm, from: tokens, steps: 2}
  plain: {run: distill, from: cfm}
  one: {run: distill, from: cfm, distill_surgery: true}
  two: {run: distill, from: cfm, distill_surgery: true, ranks: 2, vocabulary_group: 2}
  apart: {run: distill, from: cfm, distill_surgery: true, ranks: 2, zero: 3}
  jumps: {run: distill, from: cfm, distill_share: 1}
  jumps_cut: {run: distill, from: cfm, distill_share: 1, distill_surgery: true}
  still: {run: distill, from: cfm, distill_share: 0}
  still_cut: {run: distill, from: cfm, distill_share: 0, distill_surgery: true}
END
run() { "$millrace" run g.yaml --node "$1" >output 2>&1; }
same_weights() { [ -n "$(weights "$1")" ] && [ "$(weights "$1")" = "$(weights "$2")" ]; }
parts() { sed -nE 's/.*"event":"step".*("parts":\{[^}]*\}).*/\1/p' "runs/toy/$1/metrics.jsonl" | head -1; }
run plain && run one
check "surgery ends" [ $? -eq 0 ]
check "the first losses are those of both parts together" [ "$(parts plain)" = "$(parts one)" ]
check "the angle is recorded" grep -q '"cosine":-*0\.[0-9]*[1-9]' runs/toy/one/metrics.jsonl
check "the weights are others than without" eval '! same_weights plain one'
run two && run apart
check "two ranks end" [ $? -eq 0 ]
check "two ranks that share the vocabulary make the same" same_numbers one two
check "and two that keep the layers apart" same_numbers one apart
run jumps && run jumps_cut
check "where all rows jump there is nothing to cut" same_weights jumps jumps_cut
run still && run still_cut
check "nor where none does" same_weights still still_cut
finish
