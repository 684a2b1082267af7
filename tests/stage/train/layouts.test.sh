#!/usr/bin/env bash
# R-ELA-3: in canonical mode losses, gradient norms, validation and weights have the same bits for
# 1, 2 and 4 ranks and vocabulary groups of 1 and 2, for every method that trains; the rows of
# every step are the same (R-ORD-2). A rank count that does not fit is refused (R-ELA-4).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 6

compared=
node() { # node METHOD "LAYOUTS" OPTIONS: one node for each layout, written ranks.group
  for layout in 1.1 $2; do
    echo "  $1${layout/./}: {$3, ranks: ${layout%.*}, vocabulary_group: ${layout#*.}}" >>g.yaml
    [ "$layout" = 1.1 ] || compared="$compared $1:$layout"
  done
}
echo "  latents: {run: embed, encoder: random, from: tokens, encoder_width: 32, encoder_depth: 1,
    encoder_heads: 2, embed_rows: 200}" >>g.yaml
node ar "2.1 4.1 4.2" "run: pretrain, method: ar, from: tokens"
node muon "4.2" "run: pretrain, method: ar, from: tokens, optimizer: muon, weight_decay: 0.1,
  moments: bf16"
node cfm "2.1 4.2" "run: pretrain, method: cfm, from: tokens"
node lean "2.2 4.1" "run: pretrain, method: cfm, from: tokens, moments: bf16, gradients: bf16, recompute: true,
  cfm_weight_normalise: true, cfm_weight_learned: true"
node t5 "4.2" "run: pretrain, method: t5, from: tokens, t5_dropout: 0.1, z_loss: 0.001"
node tied "2.2" "run: pretrain, method: t5, from: tokens, t5_shared_head: true, optimizer: muon, recompute: true"
node codes "4.2" "run: autoencode, from: tokens"
node dist "4.2" "run: distill, from: cfm11"
node moves "2.2" "run: distill, from: cfm11, distill_loss: eulerian"
node elf "2.1 4.2" "run: pretrain, method: elf, from: [tokens, latents], optimizer: muon"
node few "4.2" "run: distill, from: elf11, elf_rounds: 3, elf_teacher: previous"

"$millrace" run g.yaml >output 2>&1
[ $? -eq 0 ] && ok "every layout trains" || not_ok "every layout trains" output
for pair in $compared; do
  method=${pair%:*} layout=${pair#*:}
  check "$method: ${layout%.*} ranks in groups of ${layout#*.} have the bits of one rank (R-ELA-3)" \
    same_numbers "${method}11" "$method${layout/./}"
done

"$millrace" run g.yaml --set ar11.ranks=3 --set ar11.steps=7 >output 2>&1
[ $? -eq 78 ] && says "counts are 1 2 4" && ok "3 ranks are refused with the counts that fit (R-ELA-4)" ||
  not_ok "3 ranks are refused with the counts that fit (R-ELA-4)" output
finish
