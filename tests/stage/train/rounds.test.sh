#!/usr/bin/env bash
# Progressive distillation of ELF: stopped within a round whose
# teacher is an earlier student, it goes on elsewhere with the same bits (R-DLM-8, R-ELA-3); few calls draw texts.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 120
make_recipe d.yaml 30
cat >>d.yaml <<'EOF'
  latents: {run: embed, encoder: random, from: tokens, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
  base: {run: pretrain, method: elf, from: [tokens, latents], precision: fp32, optimizer: muon, ema: 0.9}
  few: {run: distill, from: base, precision: fp32, steps: 30, elf_rounds: 2, elf_teacher: previous, ema: 0.9,
    learning_rate: 0.0005, schedule: constant, validate_every: 15, validate_rows: 48}
  torn: {run: distill, from: base, precision: fp32, steps: 30, elf_rounds: 2, elf_teacher: previous, ema: 0.9,
    learning_rate: 0.0005, schedule: constant, validate_every: 15, validate_rows: 48}
  texts: {run: sample, from: few, samples: 4, nfe: [2, 3]}
EOF
"$millrace" run d.yaml --node few >output 2>&1
check "a base is distilled" test $? -eq 0
stop_at d.yaml torn 18 --set torn.ranks=2
check "another is stopped in its second round" [ "$(last_step runs/toy/torn.partial/metrics.jsonl)" -lt 30 ]
"$millrace" run d.yaml --node torn --set torn.ranks=4 >output 2>&1
check "... goes on" says "resumes after step"
check "... with the same losses and weights" same_numbers few torn
"$millrace" run d.yaml --node texts >output 2>&1
check "one step and two steps draw texts" [ -f runs/toy/texts/nfe2-*00000.safetensors.zst -a -f runs/toy/texts/nfe3-*00000.safetensors.zst ]
"$millrace" run d.yaml --node torn --set torn.elf_rounds=7 >output 2>&1
[ $? -eq 78 ] && says "steps (30) is not a multiple of elf_rounds (7)" && ok "rounds that do not divide the steps are refused" ||
  not_ok "rounds that do not divide the steps are refused" output
finish
