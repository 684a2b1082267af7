#!/usr/bin/env bash
# Training of ELF-B (12 layers of 768, 8 rows of 1024 embeddings of 512 channels) on two ranks of
# one thread beside one rank of two threads, in turns; canonical sums. Rows: tokens/s of the fastest
# step of each, and the seconds of a step in which a rank waits for the sums of gradients.
set -u
. "$ROOT/tests/stage/train/toy.sh"
steps=${RANKS_STEPS:-4} rounds=${RANKS_ROUNDS:-2}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
make_corpus corpus.txt 2000
cat >g.yaml <<EOT
name: toy
seed: 5
ranks: 1
nodes:
  tokens: {run: tokenize, input: corpus.txt, tokenizer: byte, sequence_length: 1024, held_out: 0.1}
  latents: {run: embed, from: tokens, encoder: random, encoder_width: 512, encoder_depth: 1}
  elf: {run: pretrain, method: elf, from: [tokens, latents], width: 768, depth: 12, heads: 12, batch: 8,
    micro_shards: 2, steps: $steps, warmup_steps: 1, validate_rows: 2, validate_every: 1000, ema: 0}
EOT

train() { # train RANKS THREADS: the fastest step's tokens/s, its seconds, and those in reduce
  "$OUT/millrace" run g.yaml --set elf.ranks="$1" --set elf.threads="$2" >log 2>&1 || { cat log >&2; exit 1; }
  sed -nE 's/.*"event":"step".*"tokens_per_second":([0-9.e+-]+).*"reduce":([0-9.e+-]+).*/\1 \2/p' runs/toy/elf/metrics.jsonl |
    awk 'NR > 1 && $1 > best {best = $1; reduce = $2} END {print best, 8192 / best, reduce}'
  rm -rf runs/toy/elf
}
best() { sort -g "$1" | tail -1; }

for ((round = 0; round < rounds; round++)); do
  train 1 2 >>threads || exit 1
  train 2 1 >>ranks || exit 1
done
echo "name,value,unit,ratio,against"
awk 'NR == FNR {t = $1; next} {
  printf "ranks_1x2,%.4g,tokens/s,,\n", t
  printf "ranks_2x1_vs_1x2,%.4g,tokens/s,%.4g,ranks_1x2\n", $1, $1 / t
  printf "ranks_2x1_exposed_sums,%.4g,s/step,%.4g,step\n", $3, $3 / $2
}' <(best threads) <(best ranks)
