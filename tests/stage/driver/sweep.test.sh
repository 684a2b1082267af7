#!/usr/bin/env bash
# A sweep makes every configuration once, goes on after kills and failures, and its table says what
# the same settings give alone (issue 6; R-SLM-5, R-SLM-6).
. "$ROOT/tests/common/tap.sh"
for i in $(seq 100); do echo "Document $i tells of $((i * i)) things."; echo; done >text.txt
cat >s.yaml <<'EOT'
name: s
nodes:
  tokens: {run: tokenize, input: text.txt, tokenizer: byte, held_out: 0.1, sequence_length: 16}
  ar: {run: pretrain, method: ar, from: tokens, width: 16, depth: 1, heads: 2, batch: 8, steps: 4,
    checkpoint_every: 20, validate_rows: 8}
  rates:
    run: sweep
    from: ar
    metric: ar.loss
    configurations:
      - {ar.steps: 4} # as the recipe has it
      - {ar.steps: 600, ar.learning_rate: 0.01} # long enough to be killed
      - {ar.learning_rate: 100, ar.weight_decay: 10, ar.clip: 0, ar.steps: 60}
      - {ar.steps: 6}
  report: {run: report, from: rates}
EOT
sweep() { "$millrace" "$@" >output 2>&1; }
sweep plan s.yaml
check "plan counts configurations and trainings" says "4 configurations, 0 of them finished: 3 trainings"
sweep run s.yaml --set 'rates.grid=[ar.heads=[2,3]]'
check "contradictions are found before anything is made" [ $? -eq 78 -a ! -e runs ]
check "and name the configuration" says "rates: configuration ar.steps=4 ar.heads=3"

"$millrace" run s.yaml >first 2>&1 &
driver=$!
for _ in $(seq 1200); do compgen -G 'runs/s/rates.sweep/*/ar.partial/checkpoints/step-*' >/dev/null && break; sleep 0.05; done
kill -9 $driver
wait $driver 2>/dev/null
sweep run s.yaml
code=$?
check "what failed is the exit code, at the end" [ $code -eq 71 ]
check "a killed configuration resumes from its checkpoint" grep -q "resumes after step" output
check "the others are made all the same" grep -q '^rates  *configuration 4 of 4: ar.steps=6' output
check "the table has the failure" says "| exit 71 of ar |"
check "and says where it is" says "1 of 4 configurations failed, 0 may: $PWD/runs/s/rates.partial/table.md"
sweep status
check "status counts" says "3 of 4 configurations finished, 1 failed"

sweep run s.yaml --set rates.failures=1
check "a failure that may be is none" [ $? -eq 0 ]
made() { cat runs/s/rates.sweep/*/ledger.jsonl | grep -c '"exit":0'; }
check "what is finished or failed for good is not made again" [ "$(made)" -eq 2 -a "$(cat runs/s/rates.sweep/*/ledger.jsonl | grep -c '"exit":71')" -eq 1 ]
check "the report has the table" grep -q '<th>ar.learning_rate</th>' runs/s/report/report.html
table=runs/s/rates/table.csv
order() { awk -F, 'NR > 1 {printf "%s %s; ", $3, $7}' $table; } # steps, state
check "the best is first, the failure last" [ "$(order)" = "600 finished; 6 finished; 4 finished; 60 exit 71 of ar; " ]
loss() { sed -nE '/"validation"/s/.*"loss":([0-9.e+-]+).*/\1/p' "$1" | tail -1; }
"$millrace" run s.yaml --set name=alone --set ar.steps=6 --node ar >output 2>&1
check "a row is what the settings give alone" grep -qF "finished,$(loss runs/alone/ar/metrics.jsonl)," $table
check "the recipe's own configuration is its own node" grep -qF "finished,$(loss runs/s/ar/metrics.jsonl)," $table
sweep run s.yaml --set rates.failures=1 --set rates.goal=highest
check "another goal turns the table round" [ "$(order)" = "4 finished; 6 finished; 600 finished; 60 exit 71 of ar; " ]
check "and makes nothing that is finished" [ "$(made)" -eq 2 ]
sweep run s.yaml --set rates.failures=1 --set rates.metric=ar.los
check "a metric that is none is refused" says "did you mean 'ar.loss'"
finish
