#!/usr/bin/env bash
# R-CKP-6: the newest checkpoints stay, each k-th, and the one with the least held-out loss, also of
# a start before; the newest two are never removed.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 40
often="checkpoint_every: 2, validate_every: 4"
cat >>g.yaml <<END
  few: {run: pretrain, method: ar, from: tokens, $often}
  kept: {run: pretrain, method: ar, from: tokens, $often, keep_every: 10, keep_best: true}
END
# The rate is such that the loss rises again: the best is neither the first step nor the last.
rising="--set kept.learning_rate=2 --set kept.warmup_steps=24 --set kept.schedule=constant"
steps() { (cd "$1" && ls -d step-* | sed 's/step-//' | sort -n | tr '\n' ' '); }
losses() { sed -nE 's/^\{"event":"validation","step":([0-9]+),"loss":([0-9.e+]+),.*/\2 \1/p' "$1"; }

"$millrace" run g.yaml --node few >output 2>&1
check "it trains" test $? -eq 0
check "no checkpoint outlives it where none is asked for" test ! -e runs/toy/few/checkpoints -a -d runs/toy/few/weights

# shellcheck disable=SC2086
stop_at g.yaml kept 18 $rising
check "it is stopped on the way" test $? -eq 75
# shellcheck disable=SC2086
"$millrace" run g.yaml --node kept $rising >output 2>&1
check "and goes on to its end" says "resumes after step"
folder=runs/toy/kept/checkpoints
best=$(losses runs/toy/kept/metrics.jsonl | sort -g | head -1 | cut -d' ' -f2)
check "the best is on the way, before the stop: $best" test "$best" -gt 0 -a "$best" -lt 18
stopped=$(sed -n 's/.*resumes after step \([0-9]*\).*/\1/p' output)
# A stop saves as well: where it came late, its checkpoint is the newest but one.
expected=$(printf '%s\n' "$best" 10 20 30 $((stopped > 38 ? stopped : 38)) 40 | sort -nu | tr '\n' ' ')
check "the newest two, each tenth and the best stay (R-CKP-6): $(steps $folder)" test "$(steps $folder)" = "$expected"
"$millrace" ckpt list $folder >output 2>&1
check "ckpt list names the best" says "best: step-$best, held-out loss"
check "a checkpoint takes the inodes that are documented, 3 and one for a GiB (R-FS-5)" test "$(find $folder/step-40 | wc -l)" -le 4
"$millrace" ckpt verify $folder >output 2>&1
check "all of them are whole" test $? -eq 0
echo "block 0" >"$folder/step-$best.damaged"
"$millrace" ckpt list $folder >output 2>&1
check "a best one that is marked damaged is said to be" grep -q "^best: step-$best, held-out loss [0-9.]*, marked damaged\$" output
finish
