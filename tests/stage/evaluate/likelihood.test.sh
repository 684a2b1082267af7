#!/usr/bin/env bash
# The likelihood bound of a trained categorical flow, on a source of known entropy: above it, within
# 10 %, and the same for any number of ranks (R-EVA-2).
. "$ROOT/tests/common/tap.sh"
# Each letter is the one before or, three times of four, any of sixteen: 2.512 nats of entropy, and
# 2.773 of the first of a row of 16, so 2.528 a token.
entropy=2.528
awk 'BEGIN {
  srand(3)
  for (line = 0; line < 300; line++) {
    text = ""
    for (i = 0; i < 512; i++) {
      if (i == 0 || rand() < .75) letter = substr("abcdefghijklmnop", 1 + int(16 * rand()), 1)
      text = text letter
    }
    print text
  }
}' >letters.txt
cat >g.yaml <<'END'
name: toy
seed: 5
ranks: 1
defaults: {width: 32, depth: 2, heads: 2, batch: 32, micro_shards: 4, steps: 400, warmup_steps: 20,
  learning_rate: 0.003, log_every: 100, validate_every: 400, threads: 1, precision: fp32}
nodes:
  tokens: {run: tokenize, input: letters.txt, tokenizer: text8, boundary: line, sequence_length: 16,
    held_out: 0.1}
  cfm: {run: pretrain, method: cfm, from: tokens, cfm_weight_power: 0, cfm_prefix: 0, steps: 600, ema: 0.99}
  student: {run: distill, from: cfm, steps: 2, warmup_steps: 1}
  ar: {run: pretrain, method: ar, from: tokens, steps: 2, warmup_steps: 1}
  scores: {run: evaluate, from: [cfm, ar], bound_steps: [16, 64], bound_rows: 256, batch: 16,
    bound_mixture: true}
  few: {run: evaluate, from: [cfm, student, ar], bound_steps: 8, bound_rows: 32, batch: 16, bound_mixture: true}
END
"$millrace" run g.yaml >output 2>&1
check "it runs" [ $? -eq 0 ]
record=runs/toy/scores/evaluation.json
cp $record one.json
bound() { # bound FORM STEPS KEY: of the model 'cfm'
  tr -d '\n' <one.json | sed 's/{/\n{/g' | grep '"name": "cfm"' | grep "\"form\": \"$1\"" |
    grep "\"steps\": $2," | sed -nE "s/.*\"$3\": *([0-9.e+-]+).*/\1/p"
}
echo "# mixture, 64 steps: $(bound mixture 64 nats) +- $(bound mixture 64 error), entropy $entropy"
check "the bound is not below the entropy" awk -v b="$(bound mixture 64 nats)" \
  -v e="$(bound mixture 64 error)" -v h=$entropy 'BEGIN {exit !(b > h - 3 * e && e > 0 && e < .05)}'
check "and within 10 % of it" awk -v b="$(bound mixture 64 nats)" -v h=$entropy 'BEGIN {exit !(b < 1.1 * h)}'
check "what the network sees of the state gives no looser bound" awk -v e="$(bound embedded 16 nats)" \
  -v g="$(bound gaussian 16 nats)" 'BEGIN {exit !(e <= g * (1 + 1e-5))}'
check "the better form at each step is no worse than either" awk -v b="$(bound best 16 nats)" \
  -v g="$(bound gaussian 16 nats)" -v j="$(bound jensen 16 nats)" 'BEGIN {exit !(b <= g && b <= j)}'
check "more steps are tighter" awk -v few="$(bound gaussian 16 nats)" -v many="$(bound gaussian 64 nats)" \
  'BEGIN {exit !(many < few)}'
check "the mixture is tighter in few steps" awk -v m="$(bound mixture 16 nats)" \
  -v g="$(bound gaussian 16 nats)" 'BEGIN {exit !(m < g && m > 2.4)}'
again() { # again NODE [OVERRIDE...]
  rm -rf "runs/toy/$1"
  "$millrace" run g.yaml --node "$@" >output 2>&1
}
few=runs/toy/few/evaluation.json
same_on_two_ranks() { # same_on_two_ranks [OVERRIDE...]
  cp $few few.json
  again few "$@" --set few.ranks=2
  cmp -s $few few.json
}
check "2 ranks find the same (R-EVA-2)" same_on_two_ranks
again scores --set scores.bound_times=continuous --set scores.bound_steps=16 --set scores.bound_draws=2
cp $record one.json
check "times drawn within 16 steps give the bound of many" awk -v b="$(bound gaussian 16 nats)" \
  -v e="$(bound gaussian 16 error)" -v h=$entropy 'BEGIN {exit !(b > h - 3 * e && b < 1.1 * h)}'
check "where only the forms that are integrals hold" [ -z "$(bound jensen 16 nats)$(bound best 16 nats)" ]

again scores --set scores.bound_times=information --set scores.bound_steps=64 --set scores.bound_mixture=false
cp $record one.json
echo "# by information, 64 steps: gaussian $(bound gaussian 64 nats), embedded $(bound embedded 64 nats)"
check "spaced by information, 64 steps bring the gaussian form within 10 % of the entropy, from above" awk \
  -v b="$(bound gaussian 64 nats)" -v e="$(bound gaussian 64 error)" -v h=$entropy 'BEGIN {exit !(b > h - 3 * e && b < 1.1 * h)}'
check "and the embedded form no further" awk -v e="$(bound embedded 64 nats)" -v g="$(bound gaussian 64 nats)" 'BEGIN {exit !(e <= g * (1 + 1e-5))}'

# Questions whose wrong answers are of letters that never occur.
awk 'BEGIN {
  srand(9)
  for (q = 0; q < 24; q++) {
    right = q % 3
    printf "{\"context\": \"aabbc\", \"options\": ["
    for (o = 0; o < 3; o++) {
      text = ""
      for (i = 0; i < 4 + q % 2; i++) text = text substr(o == right ? "abcdefgh" : "qrstuvwx", 1 + int(8 * rand()), 1)
      printf "%s\"%s\"", o ? ", " : "", text
    }
    printf "], \"answer\": %d}\n", right
  }
}' >questions.jsonl
asked="--set few.choices=questions.jsonl --set few.bound_rows=4"
again few $asked
right() { # right NODE PART
  tr -d '\n' <$few | sed 's/{/\n{/g' | grep "\"name\": \"$1\"" | grep "\"part\": \"$2\"" | sed -nE 's/.*"value": *([0-9.e+-]+).*/\1/p'
}
echo "# right: cfm $(right cfm choices), by token $(right cfm 'choices, by token'); an untrained judge $(right ar choices)"
check "the bound finds the right answers" awk -v r="$(right cfm choices)" 'BEGIN {exit !(r >= .9)}'
check "also by the token" awk -v r="$(right cfm 'choices, by token')" 'BEGIN {exit !(r >= .9)}'
check "an untrained judge guesses" awk -v r="$(right ar choices)" 'BEGIN {exit !(r < .9 && r != "")}'
check "2 ranks answer the same" same_on_two_ranks $asked
refused() { # refused QUESTIONS MESSAGE
  echo "$1" >bad.jsonl
  again few --set few.choices=bad.jsonl
  [ $? -ne 0 ] && grep -q "$2" output
}
check "a question without an answer is refused by its line" refused '{"context": "a", "options": ["b", "c"]}' "bad.jsonl' line 1: expected {\"context\""
check "so is an option that does not fit" refused '{"context": "a", "options": ["b", "abcdefghijklmnopqrstuvwxyz"], "answer": 0}' "line 1: option 1 has 26 tokens, expected 1 to 15"
finish
