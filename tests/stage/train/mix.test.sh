#!/usr/bin/env bash
# R-ORD-1, R-ORD-2, R-ORD-3: a training that mixes two inputs by weight sees the same samples when it is
# killed in the middle and goes on with another number of ranks; another mix is another order.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
sed 's/cat/ox/; s/river/sea/' corpus.txt | awk 'NR % 3 == 1 {print $0 " 7.\n"}' >other.txt
make_recipe m.yaml 20
sed -i 's/input: corpus.txt/input: [corpus.txt, other.txt]/' m.yaml
{
  echo "  whole: {run: pretrain, method: ar, from: tokens, mix: [1, 3]}"
  echo "  torn: {run: pretrain, method: ar, from: tokens, mix: [1, 3], ranks: 2}"
  echo "  other: {run: pretrain, method: ar, from: tokens, mix: [3, 1], steps: 3}"
  echo "  plain: {run: pretrain, method: ar, from: tokens, steps: 3}"
  echo "  wrong: {run: pretrain, method: ar, from: tokens, mix: [3, 1, 1]}"
} >>m.yaml
samples() { sed -nE 's/.*"samples":"([0-9a-f]+)".*/\1/p' "runs/toy/$1/metrics.jsonl" | head -3 | tr '\n' ' '; }

"$millrace" run m.yaml --node whole >output 2>&1
check "a mix trains" test $? -eq 0
stop_at m.yaml torn 7
check "it stops in the middle (R-SLM-1)" test $? -eq 75
"$millrace" run m.yaml --node torn --set torn.ranks=4 >output 2>&1
check "and goes on: the same losses and samples (R-ORD-2)" same_numbers whole torn
check "the same weights" test "$(weights whole)" = "$(weights torn)"
"$millrace" run m.yaml --node other >output 2>&1
"$millrace" run m.yaml --node plain >output 2>&1
check "other weights, other samples (R-ORD-3)" test "$(samples whole)" != "$(samples other)"
check "no weights, other samples again" test "$(samples plain)" != "$(samples other)"
"$millrace" run m.yaml --node wrong >output 2>&1
check "three weights for two inputs are refused" test $? -eq 78
check "and both numbers are said" says "mix has 3 weights, but node 'tokens' was made from 2 entries"
finish
