#!/usr/bin/env bash
# A teacher that is the student's average: with an average that keeps nothing it is the student itself
# (in F32, where the average has no other rounding than the weights); it is the same on any number of ranks and after a stop, and it needs an average.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 6
cat >>g.yaml <<'END'
  cfm: {run: pretrain, method: cfm, from: tokens, steps: 3}
  slow: {run: distill, from: cfm, distill_teacher: self, ema: 0.9}
  self: {run: distill, from: cfm, distill_teacher: self, ema: 1.0e-30, precision: fp32}
  last: {run: distill, from: cfm, distill_teacher: ema, ema: 1.0e-30, precision: fp32}
  ema: {run: distill, from: cfm, distill_teacher: ema, ema: 0.9}
  split: {run: distill, from: cfm, distill_teacher: ema, ema: 0.9, ranks: 2, vocabulary_group: 2}
  apart: {run: distill, from: cfm, distill_teacher: ema, ema: 0.9, ranks: 2, zero: 3}
  torn: {run: distill, from: cfm, distill_teacher: ema, ema: 0.9, steps: 6}
END
run() { "$millrace" run g.yaml --node "$@" >output 2>&1; }
run self && run last
check "an average that keeps nothing ends" [ $? -eq 0 ]
check "and is the student itself" same_numbers self last
run slow && run ema && run split && run apart
check "a slower average ends" [ $? -eq 0 ]
check "and is another teacher" eval '! same_numbers slow ema'
check "the same on two ranks that share the vocabulary" same_numbers ema split
check "and where layers are kept by their owners" same_numbers ema apart

stop_at g.yaml torn 2
run torn
check "and after a stop" same_numbers ema torn
"$millrace" run g.yaml --node ema --set ema.ema=0 >output 2>&1
check "without an average there is no such teacher" says "set ema to more than 0"
finish
