#!/usr/bin/env bash
# R-NUM-4: numbers that are not finite once, and are when the step is computed again, cost a warning
# that names the host, not a step: losses and weights have the bits of a run where nothing failed.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 12
for node in whole two four; do
  echo "  $node: {run: pretrain, method: ar, from: tokens}" >>g.yaml
done
"$millrace" run g.yaml --node whole >output 2>&1
check "nothing failed" test $? -eq 0
check "nothing is said of hardware" test -z "$(grep "may be failing" output)"
for ranks in 2 4; do
  node=$([ $ranks = 2 ] && echo two || echo four)
  FLAKY_DECISION=7 "$millrace" run g.yaml --node $node --set $node.ranks=$ranks \
    --stage-program "$OUT/tests/tools/flaky_stage" >output 2>&1
  check "$ranks ranks: it goes on" test $? -eq 0
  step=$(sed -nE 's/^\{"event":"step","step":([0-9]+),.*"vanished":.*/\1/p' runs/toy/$node/metrics.jsonl)
  check "$ranks ranks: once" test "$(grep -c '"vanished":' runs/toy/$node/metrics.jsonl)" -eq 1
  check "$ranks ranks: step and host are named (R-NUM-4)" says "step $step: gradient norm was not finite and is, \
computed again: a processor or memory of host $(uname -n) may be failing"
  check "$ranks ranks: no step was skipped" test -z "$(grep '"skipped":' runs/toy/$node/metrics.jsonl)"
  sed -i 's/,"vanished":"[^"]*"//' runs/toy/$node/metrics.jsonl
  check "$ranks ranks: the losses and weights of a sound run" same_numbers whole $node
done
finish
