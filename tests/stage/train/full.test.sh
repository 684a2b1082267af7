#!/usr/bin/env bash
# R-FS-2, R-CKP-4: on a disk that is full a training goes on, waits for room when told to, and has a
# last checkpoint in the room it kept; with room again it ends with the bits of one that never met it.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
mkdir disk
mount -t tmpfs -o size=16m none disk 2>/dev/null || skip_all "needs the right to mount a file system"
trap 'umount -l disk' EXIT
ln -s disk runs
make_corpus corpus.txt 300
make_recipe g.yaml 60
cat >>g.yaml <<END
  whole: {run: pretrain, method: ar, from: tokens}
  paused: {run: pretrain, method: ar, from: tokens, save_pause: 600}
  reserved: {run: pretrain, method: ar, from: tokens, save_reserve: true}
END
"$millrace" run g.yaml --node whole >output 2>&1
check "the whole training ends" test $? -eq 0

wait_until() { for _ in $(seq 1500); do "$@" && return; sleep 0.02; done; }
fill() { head -c 100M /dev/zero >disk/junk 2>/dev/null; }
start() { # start NODE: in the background, on a disk that is full after its first checkpoint
  saved=runs/toy/$1.partial/checkpoints
  "$millrace" run g.yaml --node "$1" >output 2>&1 &
  driver=$!
  wait_until test -e "$saved/latest"
  fill
  wait_until says "No space left on device"
}

start paused
check "the full disk is named" says "no checkpoint ("
wait_until says "paused for at most 600 s"
check "the training waits for room" says "make the file"
rm disk/junk
touch "$saved/go-on"
wait $driver
check "and goes on when it is told to" test $? -eq 0
check "nothing was lost" same_numbers whole paused

start reserved
wait $driver
check "without a pause it ends with exit 73" test $? -eq 73
check "after a last checkpoint" says "is saved in the room that save_reserve had kept"
step=$(sed -nE 's/.*: step ([0-9]+) is saved in the room.*/\1/p' output | head -1)
check "of the step where it ended: $step" test -d "$saved/step-$step"
check "the room is given up" test ! -e "$saved/reserve"
rm disk/junk
"$millrace" run g.yaml --node reserved >output 2>&1
check "with room it goes on from there" says "resumes after step $step"
check "nothing was lost there either" same_numbers whole reserved
finish
