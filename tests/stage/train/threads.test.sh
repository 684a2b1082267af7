#!/usr/bin/env bash
# R-SLM-7: a training has threads and no helper processes, and of its threads one alone takes the
# signals that ask it to stop.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 20000
echo "  ar: {run: pretrain, method: ar, from: tokens, threads: 2, validate_every: 100000}" >>g.yaml
"$millrace" run g.yaml --node ar >output 2>&1 &
driver=$!
for _ in $(seq 500); do
  [ "$(last_step runs/toy/ar.partial/metrics.jsonl)" -ge 4 ] && break
  sleep 0.02
done
rank=$(pgrep -n -f "millrace-stage pretrain --run $PWD/runs/toy --node ar")
listening() { # listening SIGNAL: threads that have it not blocked
  sed -nE 's/^SigBlk:\s*//p' /proc/"$rank"/task/*/status | while read -r mask; do
    [ $((0x$mask >> ($1 - 1) & 1)) -eq 0 ] && echo thread
  done | wc -l
}
threads=$(find /proc/"$rank"/task -mindepth 1 -maxdepth 1 | wc -l)
echo "# $threads threads"
check "threads read ahead, compute and watch" [ "$threads" -ge 5 ]
for signal in INT USR1 USR2 TERM; do
  check "one thread listens to $signal (R-SLM-7)" [ "$(listening "$(kill -l $signal)")" -eq 1 ]
done
check "there is no helper process (R-SLM-7)" [ -z "$(pgrep -P "$rank")" ]
kill -USR1 "${rank:-$driver}"
wait $driver
check "a rank that is asked alone stops all: exit 75 (R-SLM-1)" [ $? -eq 75 ]
finish
