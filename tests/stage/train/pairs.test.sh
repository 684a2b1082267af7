#!/usr/bin/env bash
# Pairs and whole texts of ELF on several ranks: training has the bits of one rank (R-ELA-3), and a seed
# gives the same text for 1, 2 and 4 ranks and any batch (R-EVA-2, R-DLM-3).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_recipe p.yaml 5
awk 'BEGIN {srand(5); n = split("eins zwei drei vier rot blau", de, " "); split("one two three four red blue", en, " ")
  for (i = 0; i < 200; i++) {a = b = ""; for (j = 0; j < 3; j++) {k = int(rand() * n) + 1; a = a de[k] " "; b = b en[k] " "}
    print a i >"text.de"; print b i >"text.en"; print b i "\n" >"corpus.txt"}}'
elf="run: pretrain, method: elf, from: [pairs, latents], elf_source_drop: 0.3, optimizer: muon"
cat >>p.yaml <<EOF
  pairs: {run: tokenize, input: text.de, target: text.en, boundary: line, packing: pairs, tokenizer: byte,
    sequence_length: 48, source_length: 24, held_out: 0.1}
  latents: {run: embed, from: pairs, encoder: random, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
  one: {$elf}
  two: {$elf, ranks: 2}
  four: {$elf, ranks: 4, vocabulary_group: 2}
  targets: {run: sample, from: one, samples: 14, nfe: [3], elf_source_guidance: 2}
  agreed: {run: sample, from: one, samples: 14, nfe: [3], elf_source_guidance: 2, candidates: 4}
  revised: {run: sample, from: one, samples: 14, nfe: [3], elf_source_guidance: 2, elf_revisions: 1}
  scores: {run: evaluate, from: [targets, agreed, revised]}
  token_latents: {run: embed, from: tokens, encoder: random, encoder_width: 16, encoder_depth: 1, encoder_heads: 2}
  writer: {run: pretrain, method: elf, from: [tokens, token_latents], steps: 2}
  texts: {run: sample, from: writer, samples: 14, nfe: [3], sampler: sde}
EOF
"$millrace" run p.yaml >output 2>&1
check "pairs train on 1, 2 and 4 ranks" test $? -eq 0
check "2 ranks have the bits of one" same_numbers one two
check "4 ranks in groups of 2 have the bits of one" same_numbers one four

texts() { # texts NODE: the ids of all its texts, a line each
  local shard
  for shard in runs/toy/$1/nfe3-*.zst; do "$millrace" data head "$shard" tokens 99 | sed 's/^[^]]*\] *//'; done
}
check "4 candidates are 12 network calls a text" grep -q '"nfe": 12,' runs/toy/scores/evaluation.json
check "scores carry signatures (R-EVA-1)" grep -q '"bleu": "nrefs:1|case:lc|eff:yes|tok:13a|smooth:exp"' runs/toy/scores/evaluation.json
check "and the hash of the tokenizer (R-TOK-5)" grep -q "\"tokenizer_hash\": \"$(sed -nE 's/.*"hash": *"([0-9a-f]+)".*/\1/p' \
  runs/toy/pairs/tokenizer.json)\"" runs/toy/scores/evaluation.json
check "the candidate that others agree with is not always the first" [ "$(texts targets)" != "$(texts agreed)" ]
check "a revision changes texts, for a call of the 3" [ "$(texts targets)" != "$(texts revised)" ]
for node in targets agreed revised texts; do
  alone=$(texts $node)
  check "$node: 14 texts of one rank" [ "$(echo "$alone" | wc -l)" -eq 14 ]
  for layout in 2.3 4.2; do
    rm -r "runs/toy/$node"
    "$millrace" run p.yaml --node $node --set $node.ranks=${layout%.*} --set $node.batch=${layout#*.} >output 2>&1
    check "$node: the same from ${layout%.*} ranks, ${layout#*.} texts at a time" [ "$(texts $node)" = "$alone" ]
  done
done
"$millrace" run p.yaml --node texts --set texts.candidates=2 >output 2>&1
check "candidates of whole texts are refused" [ $? -ne 0 ]
check "and the reason is said" says "candidates agree on targets of pairs"
"$millrace" run p.yaml --node texts --set texts.elf_revisions=1 >output 2>&1
check "revisions of whole texts are refused" [ $? -ne 0 ]
check "and the reason is said: pairs" says "targets of pairs are revised"
"$millrace" run p.yaml --node revised --set revised.elf_revisions=2 >output 2>&1
check "more revisions than calls are refused before anything runs" [ $? -eq 78 ]
check "and the calls that it takes are said" says "node 'revised': elf_revisions (2) leave less than a step and the decoding of 3 calls (nfe)"
finish
