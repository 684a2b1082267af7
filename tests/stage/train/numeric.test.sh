#!/usr/bin/env bash
# R-NUM-1, R-NUM-3, R-NUM-6: a step whose loss or gradient is not finite changes nothing, says what
# was not finite, and a training that gets no further ends with exit 71 on all ranks alike.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 60
# Weights grow a thousandfold with every step until squares overflow.
wild="method: ar, from: tokens, learning_rate: 100, weight_decay: 10, warmup_steps: 0, clip: 0"
echo "  one: {run: pretrain, $wild}" >>g.yaml
echo "  two: {run: pretrain, $wild, ranks: 2}" >>g.yaml
"$millrace" run g.yaml --node one >output 2>&1
check "it ends with exit 71 (R-NUM-6)" test $? -eq 71
check "it says that steps changed nothing, and the budget (R-NUM-3)" \
  grep -q "changed nothing: .*not finite first: " output
check "it names the limits" says "10 steps in a row"
mv runs/toy/one.partial/metrics.jsonl one.jsonl
"$millrace" run g.yaml --node two >output 2>&1
check "two ranks end alike (R-NUM-1)" test $? -eq 71
mkdir -p runs/toy/one runs/toy/two
cp one.jsonl runs/toy/one/metrics.jsonl
cp runs/toy/two.partial/metrics.jsonl runs/toy/two/metrics.jsonl
check "with the same numbers" cmp -s <(numbers one) <(numbers two)
check "ten steps were skipped" test "$(grep -c '"skipped":' one.jsonl)" -eq 10
finish
