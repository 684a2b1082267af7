#!/usr/bin/env bash
# R-ELA-3: in canonical mode losses, gradient norms, validation and weights have the same bits for
# 1, 2 and 4 ranks and for vocabulary groups of 1 and 2, for every method that trains; the rows of
# every step are the same (R-ORD-2). A rank count that does not fit is refused (R-ELA-4).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 300
make_recipe g.yaml 6

layouts="1.1 2.1 4.1 4.2" # ranks.group
node() { # node NAME OPTIONS: one node for each layout
  for layout in $layouts; do
    echo "  $1${layout/./}: {$2, ranks: ${layout%.*}, vocabulary_group: ${layout#*.}}" >>g.yaml
  done
}
node ar "run: pretrain, method: ar, from: tokens"
node muon "run: pretrain, method: ar, from: tokens, optimizer: muon, weight_decay: 0.1"
node cfm "run: pretrain, method: cfm, from: tokens"
node codes "run: autoencode, from: tokens"
node dist "run: distill, from: cfm11"
methods="ar muon cfm codes dist"
if "$OUT/millrace-stage" embed --help 2>&1 | grep -q encoder && grep -q EMBED "$ROOT/stages/stages.def"; then
  echo "  latents: {run: embed, encoder: random, from: tokens, width: 16}" >>g.yaml
  node elf "run: pretrain, method: elf, from: [tokens, latents], optimizer: muon"
  methods="$methods elf"
fi

"$millrace" run g.yaml >output 2>&1
[ $? -eq 0 ] && ok "every layout trains" || not_ok "every layout trains" output
for method in $methods; do
  for layout in $layouts; do
    [ "$layout" = 1.1 ] && continue
    check "$method: ${layout%.*} ranks in groups of ${layout#*.} have the bits of one rank (R-ELA-3)" \
      same_numbers "${method}11" "$method${layout/./}"
  done
done

"$millrace" run g.yaml --set ar11.ranks=3 --set ar11.steps=7 >output 2>&1
[ $? -eq 78 ] && says "counts are 1 2 4" && ok "3 ranks are refused with the counts that fit (R-ELA-4)" ||
  not_ok "3 ranks are refused with the counts that fit (R-ELA-4)" output
finish
