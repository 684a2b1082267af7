#!/usr/bin/env bash
# reductions: fast gives the same bits whenever the layout is the same, and those of canonical sums
# up to rounding; Muon's matrices may then be worked on by all ranks together.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 8
fast="run: pretrain, method: ar, from: tokens, reductions: fast, optimizer: muon"
cat >>g.yaml <<EOT
  exact: {run: pretrain, method: ar, from: tokens, optimizer: muon}
  once: {$fast, ranks: 4, muon_grid: none}
  twice: {$fast, ranks: 4, muon_grid: none}
  three: {$fast, ranks: 3, micro_shards: 6, batch: 12, muon_grid: none}
  thrice: {$fast, ranks: 3, micro_shards: 6, batch: 12, muon_grid: none}
  grid: {$fast, ranks: 4, muon_grid: all}
  grids: {$fast, ranks: 4, muon_grid: all}
  uneven: {$fast, ranks: 4, depth: 1, feedforward: 256}
EOT
"$millrace" run g.yaml >output 2>&1 && ok "all train" || not_ok "all train" output
check "4 ranks, twice: the same bits" same_numbers once twice
check "3 ranks, twice: the same bits" same_numbers three thrice
check "matrices on a grid, twice: the same bits" same_numbers grid grids
loss() { sed -nE 's/.*"event":"step","step":8,"loss":([0-9.]+).*/\1/p' "runs/toy/$1/metrics.jsonl"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN {print a, b; d = a - b; exit !(a > 0 && d * d < 4e-4 * a * a)}' >output; }
check "fast sums end near canonical ones" near "$(loss once)" "$(loss exact)"
check "matrices on a grid end near those of one rank" near "$(loss grid)" "$(loss exact)"
check "the log says what fast sums mean (R-ELA-3)" grep -q "fast sums: losses depend" runs/toy/once.log
check "matrices with more than a share of the work go on the grid by themselves" \
  grep -q "all ranks work together on 2 matri" runs/toy/uneven.log
check "a training says what canonical sums took" grep -qE "canonical sums: [0-9.e-]+ ms a step" runs/toy/exact.log
check "and in fast mode has nothing to say" sh -c '! grep -q "canonical sums:" runs/toy/once.log'
"$millrace" run g.yaml --set exact.muon_grid=all >output 2>&1
check "canonical sums refuse the grid, whose bits depend on the ranks (R-SCA-3)" test $? -eq 78
finish
