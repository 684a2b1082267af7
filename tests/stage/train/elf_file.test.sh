#!/usr/bin/env bash
# Weights of ELF leave a run under the authors' names and come back: without a step they are the same
# bytes, and texts drawn from them are the same; a file of another shape is refused.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 60
make_recipe f.yaml 4
cat >>f.yaml <<'EOF2'
  latents: {run: embed, encoder: random, from: tokens, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
  first: {run: pretrain, method: elf, from: [tokens, latents], precision: fp32, export_weights: true}
  again: {run: pretrain, method: elf, from: [tokens, latents], precision: fp32, export_weights: true,
    steps: 0, warmup_steps: 0, first_weights: elf.safetensors, seed: 9}
  texts: {run: sample, from: first, samples: 4, nfe: [4]}
  more: {run: sample, from: again, samples: 4, nfe: [4]}
EOF2
printf '' >elf.safetensors
"$millrace" run f.yaml --node first >output 2>&1
check "training leaves a file" [ -s runs/toy/first/model.safetensors ]
cp runs/toy/first/model.safetensors elf.safetensors
"$millrace" run f.yaml >output 2>&1 || sed 's/^/# /' output
check "no step leaves the file as it is" cmp runs/toy/first/model.safetensors runs/toy/again/model.safetensors
tokens() { "$millrace" data head runs/toy/$1/nfe4-*.zst tokens 4 | tail -n +2; }
check "and the same texts" [ -n "$(tokens texts)" -a "$(tokens texts)" = "$(tokens more)" ]
"$millrace" run f.yaml --node again --set again.depth=1 >output 2>&1
[ $? -eq 78 ] && grep -q "tensor 'blocks.1" output && ok "another depth is refused, exit 78" ||
  not_ok "another depth is refused, exit 78" output
finish
