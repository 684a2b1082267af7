#!/usr/bin/env bash
# R-DLM-12: held-out rows meet the same times and noise for the life of a run: with weights that
# (all but) stand still the validation loss does too, whenever it is taken. R-DLM-2: losses
# are divided by the true counts of the whole batch, not averaged over its pieces.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 100
make_recipe g.yaml 6
still="steps: 6, learning_rate: 1e-12, warmup_steps: 6, ema: 0"
cat >>g.yaml <<END
  latents: {run: embed, encoder: random, from: tokens, encoder_width: 16, encoder_depth: 1,
    encoder_heads: 2, embed_rows: 100}
  elf: {run: pretrain, method: elf, from: [tokens, latents], $still, validate_every: 2}
  cfm: {run: pretrain, method: cfm, from: tokens, $still, validate_every: 3}
  uneven: {run: tokenize, input: corpus.txt, tokenizer: byte, sequence_length: 120, packing: paragraph}
  whole: {run: pretrain, method: ar, from: uneven, micro_shards: 1, steps: 2}
  pieces: {run: pretrain, method: ar, from: uneven, micro_shards: 8, steps: 2}
END
"$millrace" run g.yaml >output 2>&1
check "it trains" [ $? -eq 0 ]
losses() { sed -nE 's/.*"event":"'$2'".*"loss":([0-9.]+).*/\1/p' "runs/toy/$1/metrics.jsonl"; }
spread() { losses "$1" "$2" | sort -g | awk 'NR == 1 {least = $1} {most = $1} END {print (NR > 1 ? most - least : -1)}'; }
same_each_time() { # and training losses, whose noise is new in each step, are not
  awk -v still="$(spread "$1" validation)" -v moving="$(spread "$1" step)" \
    'BEGIN {exit !(still >= 0 && still < 1e-9 && moving > 1e-3)}'
}
for method in elf cfm; do
  check "$method: one set of times and noise (R-DLM-12)" same_each_time $method
done
# Rows of one to four sentences: a mean of means would be off in the second digit.
close() { paste <(losses whole step) <(losses pieces step) |
  awk '{d = ($1 - $2) / $1; if (d < 0) d = -d; n++; bad += d > 1e-5} END {exit !(n == 2 && !bad)}'; }
check "one piece or eight: the same mean over tokens (R-DLM-2)" close
finish
