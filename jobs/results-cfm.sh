#!/usr/bin/env bash
# The results of categorical flow maps, as `make results-cfm` makes them: the recipe cfm-tiny for
# several seeds, distilled by three divergences, and bases over the schedule's lambda, in one run
# folder; then the page cfm.md from the numbers of its evaluation. Running it again goes
# on where it stopped. Environment: OUT the folder of the built programs, NP ranks, RECIPE another recipe
# with the nodes of cfm-tiny, SEEDS, LAMBDAS (in hundredths) and the seeds of theirs LAMBDA_SEEDS, SET more
# settings, CORPUS and BOUNDARY a text of your own, RUNS and RESULTS the folders of the run and of the page:
#   make results-cfm SEEDS="1 2 3" LAMBDAS="0 50 90 100" SET="base_s1.steps=100"
set -eu
cd "$(dirname "$0")/.."
OUT=${OUT:?set OUT to the folder of the built programs}
seeds=${SEEDS:-1 2 3} lambdas=${LAMBDAS-0 50 90 100} results=${RESULTS:-pipeline/docs/results}
lambda_seeds=${LAMBDA_SEEDS:-$seeds} runs=${RUNS:-runs} tiny=${RECIPE:-jobs/recipes/cfm-tiny.yaml}
mkdir -p "$runs" "$results"
recipe=$runs/cfm-results.yaml texts=

# The lines of a node of cfm-tiny without its name and `from:`.
body() { awk -v name="  $1:" '$0 == name {on = 1; next} on && /^  [a-z]/ {exit} on && NF && !/ from:/' "$tiny"; }
node() { # node NAME LIKE FROM SEED [LINE ...]
  printf '\n  %s:\n    from: %s\n    seed: %s\n' "$1" "$3" "$4"
  body "$2"
  shift 4
  [ $# -eq 0 ] || printf '    %s\n' "$@"
}
texts() { # texts NAME SEED: of a generator, as the recipe has them of its base
  sed -nE "s/^  base_texts: \{run: sample, from: base, (.*)\}$/\n  $1_texts: {run: sample, from: $1, seed: $2, \1}/p" "$tiny"
  texts="$texts$1_texts, "
}

{
  sed -E "/^  base:/,\$d; s/^name: .*/name: cfm-results/" "$tiny"
  for seed in $seeds; do
    node "base_s$seed" base tokens "$seed"
    texts "base_s$seed" "$seed"
    for divergence in forward_kl jsd reverse_kl; do
      node "${divergence}_s$seed" distilled "base_s$seed" "$seed" "distill_divergence: $divergence"
      texts "${divergence}_s$seed" "$seed"
    done
    case " $lambda_seeds " in *" $seed "*) ;; *) continue ;; esac
    for lambda in $lambdas; do
      node "lambda${lambda}_s$seed" base tokens "$seed" "cfm_lambda: $(awk "BEGIN {print $lambda / 100}")"
      texts "lambda${lambda}_s$seed" "$seed"
    done
  done
  printf '\n  scores: {run: evaluate, from: [%sjudge]}\n' "$texts"
} >"$recipe.new"
mv "$recipe.new" "$recipe"

arguments=(run "$recipe" --runs "$runs" -np "${NP:-2}")
if [ -n "${CORPUS:-}" ]; then
  arguments+=(--set "tokens.input=$CORPUS" --set "tokens.boundary=${BOUNDARY:-blank_line}")
else
  jobs/corpus.sh runs/corpus/packages.txt
fi
for setting in ${SET:-}; do arguments+=(--set "$setting"); done
"$OUT/millrace" "${arguments[@]}"

# minutes NAME ...: of the slowest training of these nodes, over seeds
minutes() {
  for name in "$@"; do cat "$runs/cfm-results/${name}_s"*/metrics.jsonl; done |
    sed -nE 's/.*"event":"end".*"seconds":([0-9.]+).*/\1/p' | sort -n | awk 'END {printf "%.1f", $1 / 60}'
}
# shellcheck disable=SC2116,SC2086 # settings on one line
note="Recipe \`$(basename "$tiny" .yaml)\`${SET:+ with $(echo $SET)}, seeds $seeds${lambdas:+ (lambda: $lambda_seeds)}, ${NP:-2} ranks:
a base trained for at most $(minutes base) minutes, a distillation for $(minutes forward_kl jsd reverse_kl)."
exec "$OUT/tests/tools/results_cfm" "$runs/cfm-results/scores/evaluation.json" "$results" "$note"
