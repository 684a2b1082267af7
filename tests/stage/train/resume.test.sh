#!/usr/bin/env bash
# R-CKP, R-SLM-1, R-ORD-2: a training that is killed or stopped at any moment and started again has
# the losses and weights of one that was not, also on another number of ranks (R-ELA-3).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 40
echo "  whole: {run: pretrain, method: ar, from: tokens}" >>g.yaml
echo "  torn: {run: pretrain, method: ar, from: tokens, ranks: 2}" >>g.yaml
for signal in TERM INT; do
  echo "  on_$signal: {run: pretrain, method: ar, from: tokens, steps: 400, log_every: 100}" >>g.yaml
done
echo "  halted: {run: pretrain, method: ar, from: tokens, ranks: 2}" >>g.yaml
"$millrace" run g.yaml --node whole >output 2>&1
check "the whole training ends" test $? -eq 0

descendants() { for child in $(pgrep -P "$1"); do echo "$child"; descendants "$child"; done; }
wait_for_step() { # wait_for_step NODE STEP: until the node in the making has got there
  for _ in $(seq 400); do
    [ "$(last_step "runs/toy/$1.partial/metrics.jsonl")" -ge "$2" ] 2>/dev/null && return 0
    [ -f "runs/toy/$1/manifest.json" ] && return 1
    sleep 0.02
  done
}

kills=0
for step in 2 5 16 17 33; do
  "$millrace" run g.yaml --node torn >output 2>&1 &
  driver=$!
  wait_for_step torn "$step" || { wait $driver; break; }
  sleep "0.0$((RANDOM % 10))"
  kill -9 $driver $(descendants $driver) 2>/dev/null && kills=$((kills + 1))
  wait $driver 2>/dev/null
done
"$millrace" run g.yaml --node torn >output 2>&1
check "it ends after $kills kills" test $? -eq 0
check "it was killed at least three times" test "$kills" -ge 3
check "killed and resumed: the same losses and samples (R-ORD-2)" same_numbers whole torn
check "killed and resumed: the same weights" test "$(weights whole)" = "$(weights torn)"

"$millrace" run g.yaml --node halted >output 2>&1 &
driver=$!
wait_for_step halted 4
kill -USR1 $driver
wait $driver
check "a stop is answered with exit 75 (R-SLM-1)" test $? -eq 75
stopped=$(last_step runs/toy/halted.partial/metrics.jsonl)
check "it saved where it stopped" test -d "runs/toy/halted.partial/checkpoints/step-$stopped"
"$millrace" run g.yaml --node halted --set halted.ranks=4 >output 2>&1
check "it goes on with another number of ranks (R-ELA-2)" says "resumes after step $stopped"
check "stopped and resumed elsewhere: the same losses (R-ELA-3)" same_numbers whole halted
check "stopped and resumed elsewhere: the same weights" test "$(weights whole)" = "$(weights halted)"

for signal in TERM INT; do # to the stage itself, as a batch system would
  "$OUT/millrace-stage" pretrain --run runs/toy --node on_$signal >output 2>&1 &
  stage=$!
  wait_for_step on_$signal 4
  kill -$signal $stage
  wait $stage
  check "SIG$signal is answered with exit 75 (R-SLM-1)" test $? -eq 75
done
finish
