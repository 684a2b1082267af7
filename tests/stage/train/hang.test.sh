#!/usr/bin/env bash
# R-MPI-4: a rank that hangs, fails or dies alone inside a step ends the job, with the exit code that
# the documents name and a message that says which rank, which step and which exchange.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 100000
common="run: pretrain, method: ar, from: tokens, ranks: 2, log_every: 1000, checkpoint_every: 100000,
  validate_every: 100000, hang_seconds: 3"
for node in stopped slow dying; do echo "  $node: {$common}" >>g.yaml; done
sed -i "/^  slow/s/log_every: 1000/log_every: 5/" g.yaml

tells() { grep -qE -- "$1" output; }
start() { # start NODE: trains it in the background until it has made some steps
  "$millrace" run g.yaml --node "$1" >output 2>&1 &
  driver=$!
  for _ in $(seq 600); do
    [ "$(last_step "runs/toy/$1.partial/metrics.jsonl")" -ge 12 ] 2>/dev/null && return
    sleep 0.05
  done
}
pid_of() { # pid_of NODE RANK
  for pid in $(pgrep -f "millrace-stage pretrain .*--node $1( |\$)"); do
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$pid"
  done | tail -1
}

start stopped
victim=$(pid_of stopped 1)
kill -STOP "$victim"
wait $driver
check "a stopped rank ends the job with exit 74 (R-MPI-4)" test $? -eq 74
check "the message names the rank" says "hang in rank 1"
check "... the step and the exchange" tells "rank 0 on .*step [0-9]+, .*last exchange [0-9]+ \([a-z_]+\)"
check "the stack of a rank that answers is written" grep -q millrace-stage runs/toy/stopped.partial/hang/rank-0
for _ in $(seq 200); do [ -d "/proc/$victim" ] && sleep 0.1; done
check "nothing of the job is left" test ! -d "/proc/$victim"

start slow
slow=$(pid_of slow 1)
for _ in $(seq 40); do
  kill -STOP "$slow"
  sleep 0.2
  kill -CONT "$slow"
  sleep 0.05
done
kill -TERM $driver
wait $driver
check "a rank that holds the others up is named, with phase and ratio (R-MPI-5)" \
  tells "step [0-9]+/.*slowest rank 1 on .*: (data|forward|backward|optimizer) [0-9.e+]+ ms, [0-9.]+x median"

start dying
kill -ABRT "$(pid_of dying 1)"
wait $driver
check "a rank that aborts does not leave the other one waiting" test $? -ne 0

mpirun --quiet --bind-to none -np 2 "$OUT/tests/tools/fail_alone" >output 2>&1
check "a rank that fails alone ends all with its own exit code (R-CKP-3)" test $? -eq 65
check "... and says so" tells "rank 1 failed alone in step 7, after exchange [0-9]+ \([a-z_]+\): no such row"
finish
