#!/usr/bin/env bash
# Texts for what is given: targets for the sources of pairs, and gaps in texts. They are the same
# bytes for any number of ranks and any batch (R-EVA-2, R-DLM-3); what is given stays.
. "$ROOT/tests/common/tap.sh"
millrace=$OUT/millrace

awk 'BEGIN {srand(5); n = split("eins zwei drei vier rot blau", de, " "); split("one two three four red blue", en, " ")
  for (i = 0; i < 160; i++) {a = b = ""; for (j = 0; j < 2; j++) {k = int(rand() * n) + 1; a = a de[k] " "; b = b en[k] " "}
    print a i >"text.de"; print b i >"text.en"}}'
cat >g.yaml <<'EOF2'
name: g
seed: 3
ranks: 1
defaults: {width: 32, depth: 1, heads: 2, batch: 8, micro_shards: 2, steps: 4, threads: 1, validate_rows: 4,
  encoder: random, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
nodes:
  pairs: {run: tokenize, input: text.de, target: text.en, boundary: line, packing: pairs, tokenizer: byte,
    sequence_length: 32, source_length: 14, held_out: 0.1}
  pair_latents: {run: embed, from: pairs}
  translator: {run: pretrain, method: elf, from: [pairs, pair_latents]}
  targets: {run: sample, from: translator, samples: 6, nfe: [4], elf_source_guidance: 2, confidence: true}
  scores: {run: evaluate, from: targets}
  report: {run: report, from: [scores, translator]}
  rows: {run: tokenize, input: text.en, boundary: line, tokenizer: byte, sequence_length: 24, held_out: 0.2}
  row_latents: {run: embed, from: rows}
  writer: {run: pretrain, method: elf, from: [rows, row_latents]}
  gaps: {run: sample, from: writer, samples: 6, nfe: [6], prefix: 5, suffix: 4, elf_patience: 1}
  ar: {run: pretrain, method: ar, from: rows}
  ends: {run: sample, from: ar, samples: 4, prefix: 5}
EOF2
run() { "$millrace" run g.yaml "$@" >output 2>&1; }
shards() { (cd "runs/g/$1" && sha256sum -- *.zst | sort); }
column() { # column NODE SHARDS COLUMN: the first two rows, a line each
  local shard
  for shard in runs/g/$1/$2-*.zst; do
    "$millrace" data head "$shard" "$3" 3 | sed -n 's/^[a-z_]*\[[12]\] *//p'
    return
  done
}
begin() { column "$@" tokens | cut -d' ' -f1-6; }
is_finished() { run && [ -f runs/g/targets/manifest.json ] && [ -f runs/g/gaps/manifest.json ]; }
check "all nodes run" is_finished || sed 's/^/# /' output
cp output first
columns() { "$millrace" data ls runs/g/targets | grep -q "$1"; }
for column in tokens text confidence source reference; do
  check "targets have the column $column" columns "$column"
done
check "texts that may stop early say how many calls they took" grep -q '"calls.nfe6"' runs/g/gaps/manifest.json

same() { # same NODE SETTINGS...: the shards of a node made again
  local before node=$1
  shift
  before=$(shards "$node" | cut -c1-64 | sort)
  rm -r "runs/g/$node"
  run "$@"
  [ -n "$before" ] && [ "$(shards "$node" | cut -c1-64 | sort)" = "$before" ]
}
check "targets are the same bytes on 2 ranks" same targets --set targets.ranks=2 --set targets.batch=8
check "gaps are the same bytes on 2 ranks" same gaps --set gaps.ranks=2

kept() { [ -n "$(begin rows held_out)" ] && [ "$(begin "$1" "$2")" = "$(begin rows held_out)" ]; }
check "elf keeps the prefix" kept gaps nfe6
check "ar keeps the prefix" kept ends samples
scored() { # scored NAME: BLEU and three ROUGEs between 0 and 100, of 6 texts
  grep -qE "^$1 .* 6 +[0-9]+\.[0-9]+( +[0-9]+\.[0-9]+ \+- [0-9.]+){3}$" first
}
check "the report scores targets" scored targets
check "and the first words of sources beside them" scored "first 3 words of the source"
refers() { column targets nfe4 reference | grep -qE '^"(one|two|three|four|red|blue) [a-z]+ [0-9]+"$'; }
check "references are the targets" refers
before=$(column targets nfe4 text)
rm -r runs/g/targets
run --set targets.batch=3
check "a text does not depend on its batch" [ -n "$before" -a "$(column targets nfe4 text)" = "$before" ]
run --set ar.method=ar --set gaps.prefix=20
check "too much given is refused" grep -q "leave nothing of 24 tokens" output
finish
