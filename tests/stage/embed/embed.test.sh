# The stage embed: the same bytes for any number of ranks, any batch and after an interruption
# (R-IO-2, R-ELA-3), and what it refuses.
. "$ROOT/tests/common/tap.sh"
millrace=$OUT/millrace

# 300 short lines of words drawn from a small list
awk 'BEGIN {srand(7); n = split("the of river mill wheel stone bread turns slowly under grey water", w, " ")
  for (i = 0; i < 300; i++) {line = ""; for (j = 0; j < 9; j++) line = line w[int(rand() * n) + 1] " "; print line i}}' >text.txt
cat >e.yaml <<'EOF'
name: e
seed: 3
ranks: 1
nodes:
  tokens: {run: tokenize, input: text.txt, boundary: line, tokenizer: byte, sequence_length: 16, held_out: 0.05}
  latents: {run: embed, from: tokens, encoder: random, encoder_width: 16, encoder_depth: 2, encoder_heads: 2, batch: 16}
EOF
run() {
  "$millrace" run e.yaml "$@" >output 2>&1
}
shards() { # hashes of the shards of the node
  (cd runs/e/latents && sha256sum -- *.zst | sort)
}
same() {
  [ -n "$alone" ] && [ "$(shards)" = "$alone" ]
}

check "the stage runs" run
check "and says that the weights are random" grep -q "random weights" output
alone=$(shards)
check "there are several shards to deal out" [ "$(ls runs/e/latents/train-*.zst | wc -l)" -gt 4 ]
for ranks in 2 4; do
  rm -r runs/e/latents
  run --set latents.ranks=$ranks
  check "the same bytes on $ranks ranks" same
done
rm -r runs/e/latents
run --set latents.batch=7
check "the same bytes with other batch neighbours" same

rm -r runs/e/latents
setsid "$millrace" run e.yaml >output 2>&1 &
group=$!
for _ in $(seq 500); do
  ls runs/e/latents.partial/*.done >/dev/null 2>&1 && break
  sleep 0.02
done
kill -9 -- "-$group"
wait "$group" 2>/dev/null
run
check "the same bytes after a kill once a shard was finished" same

rm -r runs/e/latents
run --set latents.embed_rows=100
check "embed_rows embeds the first rows" grep -q '"train_rows": *100' runs/e/latents/manifest.json
rm -r runs/e/latents
run --set latents.embed_normalise=channels
first_positions() { for shard in runs/e/latents/train-*.zst; do "$millrace" data head "$shard" embeddings 99 | cut -d' ' -f3-18; done; }
check "embed_normalise gives each channel the mean 0 and deviation 1" awk '
  {for (c = 1; c <= NF; c++) {sum[c] += $c; square[c] += $c * $c}}
  END {for (c = 1; c <= 16; c++) {m = sum[c] / NR; d = square[c] / NR - m * m; if (m * m > 0.2 || d < 0.4 || d > 1.6) exit 1} exit NR < 900}' <(first_positions)
run --set latents.encoder_heads=3
check "heads that do not divide the width are refused, exit 78" grep -q "(exit 78)" output
run --set latents.encoder=t5 --set latents.encoder_path=nowhere
check "an encoder folder that is not there is named" grep -q "nowhere" output
finish
