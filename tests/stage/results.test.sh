#!/usr/bin/env bash
# The script behind `make results-elf` at a toy size: it runs the recipes, goes on where it was, and
# writes what they measured.
. "$ROOT/tests/common/tap.sh"
awk 'BEGIN {srand(3); split("ba ce di fo gu la me ni po ru sa te vi wo xu ko", part, " ")
  for (i = 0; i < 600; i++) {word[i] = ""; for (j = 0; j < 2 + i % 3; j++) word[i] = word[i] part[int(rand() * 16) + 1]}
  for (i = 0; i < 300; i++) {printf "Package: p%d\nDescription-en:", i; for (j = 0; j < 5; j++) printf " %s", word[int(rand() * 600)]
    print ""; for (j = 0; j < 3; j++) {printf " "; for (k = 0; k < 9; k++) printf "%s ", word[int(rand() * 600)]; print "."} print ""}}' >packages.txt
export CORPUS=packages.txt PAGE=page.md RUNS=runs SEEDS=4 BUDGET=0.001
PARTS= "$ROOT/tests/results/elf" >output 2>&1
check "a page without runs says what is not measured" [ "$(grep -c '| not measured |' page.md)" -eq 8 ]
SETTINGS="--set ranks=1 --set threads=1 --set samples=4 --set nfe=[2,3] --set width=32 --set depth=1 --set heads=2"
SETTINGS="$SETTINGS --set held_out=0.1 --set embed_rows=100 --set validate_every=2 --set batch=8 --set micro_shards=2"
export SETTINGS
parts() { # a recipe refuses a setting that none of its nodes reads
  PARTS=summary SETTINGS="${SETTINGS/\[2,3]/[10]} --set vocabulary_size=300" "$ROOT/tests/results/elf" && PARTS=uncond "$ROOT/tests/results/elf"
}
results() { parts >output 2>&1; }
check "the small recipes run" results || sed 's/^/# /' output
row() { grep -qE "^\| $1 \|( [0-9.]+( \+- [0-9.]+)? \|){4}$" page.md; }
for name in "x-prediction, ODE" "x-prediction, SDE" "v-prediction, ODE" "first [0-9]+ words of the source" "elf, source guidance 2, SDE" "\.\.\. 8 of the calls revise" "\.\.\. of 16 candidates the one that the others agree with"; do
  check "the page shows: $name" row "$name"
done
check "expectations are measured" [ "$(grep -cE '\| (yes|\*\*no\*\*) \|$' page.md)" -eq 5 ]
for name in distilled base; do check "the page shows few steps: $name" grep -qE "^\| $name \|( [0-9.]+ \|){6}$" page.md; done
check "what was not run is said" [ "$(sed -n '/^## Translation/,$p' page.md | tail -1)" = "Not run." ]
before=$(cat page.md)
parts >again 2>&1
check "a second run makes nothing" [ "$(grep -c 'are finished' again)" -eq 2 -a "$(cat page.md)" = "$before" ]
RUNS=others PARTS= "$ROOT/tests/results/elf" >again 2>&1
check "what other runs measured is kept" [ "$(cat page.md)" = "$before" ]
printf 'a\t1\t2\na\t2\t3\nb\t1\t-\n' | "$OUT/tests/tools/chart" c.svg title x y
check "charts leave out what is not measured" [ "$(grep -c '<polyline' c.svg)" -eq 1 ]
finish
