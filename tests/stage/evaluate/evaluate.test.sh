#!/usr/bin/env bash
# The stage evaluate: the same record for any number of ranks (R-EVA-2), perplexities that do not
# depend on the batch, rows of uneven length without their padding, and an untrained judge that
# knows no more than that all tokens are alike.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 2
sed -i 's/sequence_length: 32/sequence_length: 100, packing: paragraph/' g.yaml
cat >>g.yaml <<'END'
  ar: {run: pretrain, method: ar, from: tokens, learning_rate: 1e-9}
  codes: {run: autoencode, from: tokens}
  text: {run: sample, from: ar, samples: 40}
  scores: {run: evaluate, from: [text, ar, codes]}
END
"$millrace" run g.yaml >output 2>&1
check "it runs" [ $? -eq 0 ]
record=runs/toy/scores/evaluation.json
cp $record one.json
again() {
  rm -r runs/toy/scores
  "$millrace" run g.yaml --node scores "$@" >output 2>&1
}
again --set scores.ranks=2 --set scores.batch=2
cp $record two.json
again --set scores.ranks=4 --set scores.batch=2
check "2 and 4 ranks find the same (R-EVA-2)" cmp -s two.json $record
judged() { grep -E 'perplexity|entropy|distinct' "$1"; }
same_judged() { [ -n "$(judged one.json)" ] && cmp -s <(judged one.json) <(judged two.json); }
check "perplexities do not depend on the batch" same_judged

numbers() { sed -nE "s/.*\"$1\": *([0-9.eE+-]+).*/\1/p" one.json; }
check "a judge that learnt nothing finds the vocabulary's size, padding left out" awk -v p="$(numbers judge_perplexity | head -1)" \
  'BEGIN {exit !(p > 245 && p < 270)}'
expected=$(sed -nE 's/.*"row_entropy_nats": *([0-9.]+).*/\1/p' runs/toy/tokens/statistics.json | tail -1)
check "the entropy of held-out text is that which tokenize found" awk -v a="$(numbers token_entropy | head -1)" \
  -v b="$expected" 'BEGIN {exit !(b > 0 && (a - b) ^ 2 < 1e-18)}'
finish
