#!/usr/bin/env bash
# The results of categorical flow maps: the page says what an evaluation holds, expectation by
# expectation, and the whole set trains, at the smallest size, and goes on where it stopped.
. "$ROOT/tests/common/tap.sh"
system() { # system NAME NFE PERPLEXITY ENTROPY
  printf '{"name": "%s", "method": "cfm", "note": "", "nfe": %s, "texts": 8, "judge_perplexity": %s, "token_entropy": %s,
    "distinct_1": 0.5, "distinct_2": 0.75, "tokens_per_second": 0, "samples": []}' "$@"
}
record() { # record ENTROPY_OF_FORWARD_KL
  printf '{"protocol": "millrace-evaluate/1", "judge": "judge", "judge_hash": "0", "tokenizer_hash": "0", "positions": 16,
    "unigram_loss": 5, "models": [], "bounds": [], "systems": ['
  system "held-out text" 0 50 4
  for seed in 1 2; do
    for item in "base_s$seed 1 9 1.5" "base_s$seed 2 20 2" "base_s$seed 4 30$seed 3.9" "forward_kl_s$seed 1 150 3.8" \
      "forward_kl_s$seed 2 140 3.85" "forward_kl_s$seed 4 10$seed $1" "jsd_s$seed 4 110 3.7" "reverse_kl_s$seed 4 90 3" \
      "lambda75_s$seed 2 20 2.1" "lambda75_s$seed 4 400 3.9"; do
      printf ', '
      # shellcheck disable=SC2086
      system $item
    done
  done
  printf ']}\n'
}
tool=$OUT/tests/tools/results_cfm
mkdir page
record 3.9 >evaluation.json
"$tool" evaluation.json page 0.25 >output 2>&1
check "a page is written" [ $? -eq 0 ]
row() { grep -F "$1" page/cfm.md; }
check "means and deviations are over seeds" [ "$(row '| base | 4 | 2 |')" = '| base | 4 | 2 | 301.5 ± 0.7 | 3.900 ± 0.000 | 0.750 |' ]
check "what holds is said" grep -qF 'distilled below base | 101.5 < 301.5 | yes |' page/cfm.md
check "every expectation is measured and holds" [ "$(grep -c '| yes |' page/cfm.md)" -eq 8 ]
check "and the base's schedule is named" grep -qF '`base` has 0.25' page/cfm.md
check "charts are drawn for calls" [ "$(grep -c '<polyline' page/cfm-perplexity.svg page/cfm-entropy.svg | grep -c ':1')" -eq 2 ]
check "and for lambda" grep -q 'polyline' page/cfm-lambda.svg
record 2.9 >evaluation.json
"$tool" evaluation.json page 0
check "what does not hold is said as well" grep -qF "distilled within 5 % of the data's | 0.275 < 0.05 | **no** |" page/cfm.md
check "and so of reverse KL" grep -qF 'forward KL above reverse KL | 2.9 > 3 | **no** |' page/cfm.md
echo '{' >evaluation.json
"$tool" evaluation.json page 0 >output 2>&1
check "a damaged record is refused" [ $? -eq 65 ]

# The whole set, as small as it can be.
cat "$ROOT"/LICENSE "$ROOT"/pipeline/docs/*.md "$ROOT"/README.md >text.txt
small="tokens.sequence_length=16 tokens.held_out=0.1 width=16 depth=1 heads=2 batch=8
  validate_every=4 judge.steps=4 judge.warmup_steps=1"
for name in base_s1 lambda50_s1 lambda75_s1; do small="$small $name.steps=4 $name.warmup_steps=1 $name.cfm_condition=8"; done
for name in forward_kl jsd reverse_kl distilled75; do small="$small ${name}_s1.steps=2 ${name}_s1.warmup_steps=1"; done
for name in base forward_kl jsd reverse_kl lambda50 lambda75 distilled75; do small="$small ${name}_s1_texts.samples=8 ${name}_s1_texts.nfe=[1,2,4]"; done
results() { RUNS=$PWD/runs RESULTS=$PWD/page CORPUS=$PWD/text.txt SEEDS=1 LAMBDAS="50 75" SET="$small" NP=1 "$ROOT/tests/results/cfm"; }
rm page/*
results >output 2>&1
check "the whole set trains" [ $? -eq 0 ]
check "and its page has every generator" [ "$(grep -cE '^\| (base|forward_kl|jsd|reverse_kl|lambda[57][05]|distilled75) \| [124] \|' page/cfm.md)" -eq 21 ]
check "and the schedule of its base" grep -qF '`base` has 0,' page/cfm.md
check "and says how it was made" grep -qE 'cfm-tiny.*seeds 1 .lambda: 1., 1 rank:$' page/cfm.md
check "and charts" [ -s page/cfm-lambda.svg ]
results >output 2>&1
check "a second time nothing is trained" says "finished: "
finish
