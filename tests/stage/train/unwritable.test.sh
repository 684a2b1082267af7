#!/usr/bin/env bash
# R-CKP-4, R-FS-1: a checkpoint that cannot be written leaves training running; when the place is writable
# again nothing is lost; when it stays so, the node ends with exit 73 and the last good step is kept.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 60
for node in whole mended broken narrow; do
  echo "  $node: {run: pretrain, method: ar, from: tokens, log_every: 60}" >>g.yaml
done
"$millrace" run g.yaml --node whole >output 2>&1
check "the whole training ends" test $? -eq 0

block() { mv "$1" "$1.away" && echo "in the way" >"$1"; } # no folder can be made there
unblock() { rm "$1" && mv "$1.away" "$1"; }
wait_until() { for _ in $(seq 500); do "$@" && return; sleep 0.02; done; }

start() { # start NODE: in the background, blocked after its first checkpoint
  saved=runs/toy/$1.partial/checkpoints
  "$millrace" run g.yaml --node "$1" >output 2>&1 &
  driver=$!
  wait_until test -e "$saved/latest"
  block "$saved"
  wait_until says "no checkpoint"
}
start mended
unblock "$saved"
wait $driver
check "training goes on when it can be written again" test $? -eq 0
check "the failed tries are told" says "try 1 of 3"
check "nothing was lost" same_numbers whole mended

start broken
wait $driver
check "it ends with exit 73 when it never can" test $? -eq 73
check "the last good step is kept" test -e "$saved.away/latest"

saved=runs/toy/narrow.partial/checkpoints
stop_at g.yaml narrow 20
mkdir "$saved/preflight.part" # the file that is tried at the start cannot be made
"$millrace" run g.yaml --node narrow >output 2>&1
check "a place that takes no file is refused with exit 73 (R-FS-1)" test $? -eq 73
check "by name, before the first step" says "/checkpoints' does not take what is to be saved there"
check "no step was made" test -z "$(grep "held-out loss" output)"
rmdir "$saved/preflight.part"
"$millrace" run g.yaml --node narrow >output 2>&1
check "it goes on when it does" says "resumes after step"
check "and nothing was lost" same_numbers whole narrow
finish
