#!/usr/bin/env bash
# R-DLM-8: teacher, averages, schedule and statistics survive a stop: a distillation that is stopped
# in the middle goes on, on another number of ranks, to the losses and weights (averages among them)
# of one that was not; and it does not go on from another teacher.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 8
cat >>g.yaml <<'END'
  cfm: {run: pretrain, method: cfm, from: tokens}
  whole: {run: distill, from: cfm, ema: 0.9, schedule: linear}
  torn: {run: distill, from: cfm, ema: 0.9, schedule: linear, ranks: 2}
END
"$millrace" run g.yaml --node whole >output 2>&1
check "the whole distillation ends" [ $? -eq 0 ]

stop_at g.yaml torn 2
check "it is stopped in the middle" [ $? -eq 75 ]
cp -a runs stopped
"$millrace" run g.yaml --node torn --set torn.ranks=1 >output 2>&1
check "it goes on" says "resumes after step"
check "to the same losses, rates and statistics (R-DLM-8)" same_numbers whole torn
check "and the same weights and averages (R-DLM-8)" [ "$(weights whole)" = "$(weights torn)" ]

# Another teacher under the same name: the attempt is of other inputs, and begun again.
rm -rf runs && mv stopped runs
"$millrace" run g.yaml --node torn --set cfm.steps=9 >output 2>&1
check "another teacher is not mixed in" says "other options or inputs was removed"
finish
