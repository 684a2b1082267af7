#!/usr/bin/env bash
# Weights that are kept by their owners and fetched layer by layer (zero: 3) give the bits of
# weights that are kept everywhere, for 2 and 4 ranks and every method; checkpoints are the same
# (R-ELA-2, R-ELA-3); a rank keeps its share and two layers.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 6

compared=
node() { # node METHOD "LAYOUTS" OPTIONS: one rank with all weights, then each layout, written ranks.group
  echo "  $1: {$3}" >>g.yaml
  for layout in $2; do
    echo "  $1${layout/./}: {$3, zero: 3, ranks: ${layout%.*}, vocabulary_group: ${layout#*.}}" >>g.yaml
    compared="$compared $1:$layout"
  done
}
echo "  latents: {run: embed, encoder: random, from: tokens, encoder_width: 32, encoder_depth: 1,
    encoder_heads: 2, embed_rows: 200}" >>g.yaml
node ar "2.1 4.2" "run: pretrain, method: ar, from: tokens, depth: 4"
node muon "4.1" "run: pretrain, method: ar, from: tokens, optimizer: muon, recompute: true"
node cfm "2.2" "run: pretrain, method: cfm, from: tokens, moments: bf16, gradients: bf16, recompute: true"
node codes "4.1" "run: autoencode, from: tokens"
node dist "2.1 4.1" "run: distill, from: cfm"
node slope "2.1" "run: distill, from: cfm, distill_loss: eulerian"
node mean "4.2" "run: distill, from: cfm, distill_teacher: ema, distill_surgery: true"
node t5 "2.1" "run: pretrain, method: t5, from: tokens, optimizer: muon"
node elf "2.1 4.2" "run: pretrain, method: elf, from: [tokens, latents], elf_self_condition: 0.2"
node few "2.1" "run: distill, from: elf, elf_rounds: 3, elf_teacher: previous"
"$millrace" run g.yaml >output 2>&1 && ok "every layout trains" || not_ok "every layout trains" output
for pair in $compared; do
  method=${pair%:*} layout=${pair#*:}
  check "$method: ${layout%.*} ranks in groups of ${layout#*.} have the bits of one rank (R-ELA-3)" \
    same_numbers "$method" "$method${layout/./}"
done

account() { # account NODE NAME: peak bytes of rank 0
  sed -nE "s/.*\"peak_bytes\":\{[^}]*\"$2\":([0-9]+).*/\1/p" "runs/toy/$1/metrics.jsonl"
}
cat >>g.yaml <<'EOT'
  wide: {run: pretrain, method: ar, from: tokens, width: 128, depth: 12, steps: 2, ranks: 4}
  wide3: {run: pretrain, method: ar, from: tokens, width: 128, depth: 12, steps: 2, ranks: 4, zero: 3}
EOT
"$millrace" run g.yaml --node wide >output 2>&1 && "$millrace" run g.yaml --node wide3 >output 2>&1
check "both train" test $? -eq 0
check "fetched or not: the same bits" same_numbers wide wide3
all=$(account wide weights) kept=$(account wide3 weights) fetched=$(account wide3 "fetched weights")
echo "weights: everywhere $all, kept $kept, fetched $fetched" >output
check "a rank keeps a share of the weights and two layers of 12" \
  test $((kept + fetched)) -lt $((all * 55 / 100)) -a "$fetched" -gt 0
planned() { # planned NODE ACCOUNT: bytes of a rank
  sed -nE "/^$1: /,/memory of/s/.*memory of a rank.*[:,] $2 ([0-9.]+) ([KM]iB).*/\\1 \\2/p" plan |
    awk '{print int($1 * ($2 == "KiB" ? 1024 : 1048576))}'
}
near() { awk -v a="$1" -v b="$2" 'BEGIN {print a, b; exit !(a > 0.95 * b && a < 1.05 * b)}' >output; }
sed 's/^  wide3:/  plan3:/' g.yaml >p.yaml
"$millrace" plan p.yaml --node plan3 >plan
check "the plan knows the two layers" near "$(planned plan3 fetched)" "$fetched"
check "the plan knows the rank's share" near $(($(planned plan3 weights) + fetched)) $((kept + fetched))

# A checkpoint of fetched weights goes on where all are kept, and the other way round.
sed -i '/^  wide/d' g.yaml
echo "  turned: {run: pretrain, method: ar, from: tokens, depth: 4, steps: 30, ranks: 2, zero: 3}" >>g.yaml
echo "  straight: {run: pretrain, method: ar, from: tokens, depth: 4, steps: 30}" >>g.yaml
"$millrace" run g.yaml --node straight >output 2>&1
check "an undisturbed training ends" test $? -eq 0
stop_at g.yaml turned 3
check "it stops on request" test $? -eq 75
stop_at g.yaml turned 8 --set turned.zero=1 --set turned.ranks=4
check "it goes on with all weights kept, on 4 ranks (R-ELA-2)" says "resumes after step"
"$millrace" run g.yaml --node turned --set turned.zero=3 --set turned.ranks=4 >output 2>&1
check "and again with fetched ones" says "resumes after step"
check "losses and weights are those of one rank" same_numbers straight turned
finish
