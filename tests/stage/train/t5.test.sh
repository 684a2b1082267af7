#!/usr/bin/env bash
# An encoder of one's own: a t5 node learns to fill spans, embed takes its encoder, from the node or from
# the file it leaves, with the same latents; stopped and resumed on other ranks it has the same bits
# (R-ELA-3).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 120
make_recipe t.yaml 40
cat >>t.yaml <<'EOF'
  t5: {run: pretrain, method: t5, from: tokens, steps: 40, precision: fp32, ema: 0.9, export_weights: true}
  torn: {run: pretrain, method: t5, from: tokens, steps: 40, precision: fp32, ema: 0.9}
  again: {run: pretrain, method: t5, from: tokens, precision: fp32, export_weights: true, steps: 0, warmup_steps: 0,
    first_weights: runs/toy/t5/model.safetensors, seed: 9}
  here: {run: embed, encoder: trained, from: [tokens, t5], precision: fp32}
  there: {run: embed, encoder: t5, encoder_path: runs/toy/t5, from: tokens, precision: fp32}
EOF
mkdir -p runs/toy/t5 && : >runs/toy/t5/model.safetensors
"$millrace" run t.yaml --node t5 >output 2>&1
check "a t5 trains" test $? -eq 0
held_out() { sed -nE 's/^\{"event":"validation".*"ce":([0-9.]+).*/\1/p' runs/toy/t5/metrics.jsonl; }
check "it learns on held-out rows" awk -v first="$(held_out | head -1)" -v last="$(held_out | tail -1)" \
  'BEGIN {exit !(last < 0.7 * first)}'
stop_at t.yaml torn 10 --set torn.ranks=2
"$millrace" run t.yaml --node torn --set torn.ranks=4 >output 2>&1
check "stopped and resumed elsewhere: the same losses" same_numbers t5 torn
for node in again here there; do "$millrace" run t.yaml --node $node >>output 2>&1 || sed 's/^/# /' output; done
check "its file begins another" cmp runs/toy/t5/model.safetensors runs/toy/again/model.safetensors
rows() { "$millrace" data head runs/toy/$1/held_out-*.zst embeddings 4 | tail -n +2; }
check "embed takes the encoder from the node and from its file alike" \
  [ -n "$(rows here)" -a "$(rows here)" = "$(rows there)" ]
check "config.json tells its shape" grep -q '"num_decoder_layers": 2' runs/toy/t5/config.json

"$millrace" run t.yaml --node torn --set tokens.sequence_length=256 --set torn.t5_span=1 --set torn.t5_noise=0.5 >output 2>&1
[ $? -eq 78 ] && says "there are 100 sentinels" && ok "a row that loses more spans than there are sentinels is refused" ||
  not_ok "a row that loses more spans than there are sentinels is refused" output
finish
