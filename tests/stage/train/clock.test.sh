#!/usr/bin/env bash
# R-SLM-2: a training stops by the clock, with a checkpoint, before its job's time is over, and goes on to the same bits.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 120
make_recipe t.yaml 1000000
cat >>t.yaml <<'EOF'
  slurm: {run: pretrain, method: ar, from: tokens, ranks: 2, checkpoint_every: 10, validate_every: 1000000, log_every: 1000}
  whole: {run: pretrain, method: ar, from: tokens, steps: 12}
  cut: {run: pretrain, method: ar, from: tokens, steps: 12}
EOF
at() { last_step "runs/toy/$1.partial/metrics.jsonl"; }
saved() { [ -d "runs/toy/$1.partial/checkpoints/step-$(at "$1")" ]; }
took() { [ $((SECONDS - begun)) "$@" ]; }

"$millrace" run t.yaml --node tokens >output 2>&1
begun=$SECONDS
SLURM_JOB_END_TIME=$(($(date +%s) + 15)) timeout 60 "$millrace" run t.yaml --node slurm >output 2>&1
check "the job ends as one that was stopped" [ $? -eq 75 ]
check "... in time" took -le 15
check "... but not long before" took -ge 5
check "... and says why" says "are left to this job: stopping, since a step takes"
check "its last step is saved" saved slurm

"$millrace" run t.yaml --node whole >output 2>&1
for start in 1 2 3; do "$millrace" run t.yaml --node cut --set time_limit=0.001 >output 2>&1; done
check "a limit of no time still leaves a step a start" [ "$(at cut)" -eq 3 ]
SLURM_JOB_END_TIME=noon "$millrace" run t.yaml --node cut >output 2>&1
check "an end that is no time is warned of" says "SLURM_JOB_END_TIME is 'noon', not a number of seconds since 1970"
check "cut into starts, the training is the same" same_numbers whole cut
finish
