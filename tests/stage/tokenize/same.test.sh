#!/usr/bin/env bash
# Other text with the vocabulary that a node trained: a test set beside its training set (tokenizer: same).
. "$ROOT/tests/common/tap.sh"
words() { # words SEED DOCUMENTS: texts of made-up words
  awk -v seed="$1" -v documents="$2" 'BEGIN {srand(seed); split("ba ce di fo gu la me ni po ru sa te vi wo xu ko", part, " ")
    for (i = 0; i < documents; i++) {
      for (j = 0; j < 12; j++) {word = ""; for (k = 0; k < 1 + (i + j) % 3; k++) word = word part[int(rand() * 16) + 1]; printf "%s%s", j ? " " : "", word}
      print "\n"}}'
}
words 1 400 >corpus.txt
words 2 20 >other.txt
cat >s.yaml <<'EOF'
name: toy
ranks: 1
nodes:
  tokens: {run: tokenize, input: corpus.txt, tokenizer: train, vocabulary_size: 300, boundary: blank_line, sequence_length: 32}
  other: {run: tokenize, from: tokens, tokenizer: same, input: other.txt, boundary: blank_line, sequence_length: 32, held_out: 0}
  again: {run: tokenize, from: other, tokenizer: same, input: other.txt, boundary: blank_line, sequence_length: 32, held_out: 0, ranks: 2}
  ar: {run: pretrain, method: ar, from: again, width: 32, depth: 1, heads: 2, batch: 4, micro_shards: 2, steps: 1, warmup_steps: 0}
EOF
same_shards() { [ -f "runs/toy/$1/manifest.json" ] && cmp -s <(cat "runs/toy/$1/"*.zst) <(cat "runs/toy/$2/"*.zst); }
"$millrace" run s.yaml --node again >output 2>&1
check "text is encoded with another node's vocabulary" test $? -eq 0
check "which comes along" cmp -s runs/toy/tokens/tokenizer.json runs/toy/other/tokenizer.json
check "... through a third node, on two ranks, as well" same_shards other again
sed -n 's/^tokens\[0\] *\[[0-9]*\] *//p' <("$millrace" data head runs/toy/other) | cut -d' ' -f1-8 >found
"$millrace" tokenize --tokenizer runs/toy/tokens --text "$(head -1 other.txt)" | tr -s ' \n' ' ' | sed 's/^ //' | cut -d' ' -f1-8 >wanted
check "the ids are those of the first node's tokenizer" [ -s wanted -a "$(cat wanted)" = "$(cat found)" ]
"$millrace" plan s.yaml >output 2>&1
check "plan knows the vocabulary" says "(1 layers, vocabulary 300)"
"$millrace" run s.yaml --node other --set tokens.vocabulary_size=310 --dry-run >output 2>&1
check "another vocabulary makes both stale" says "2 of 2 nodes to make"
refused() { # refused TEXT MESSAGE SETTINGS...
  local text=$1 message=$2
  shift 2
  "$millrace" run s.yaml --node other "$@" >output 2>&1
  [ $? -eq 78 ] && says "$message" && ok "$text" || not_ok "$text" output
}
refused "an input that would not be read is refused" "'tokens' would not be read; set tokenizer: same" --set other.tokenizer=byte
sed -i 's/from: tokens, tokenizer: same/tokenizer: same/' s.yaml
refused "same as nothing is refused" "tokenizer: same needs one tokenize node in \`from:\`, there are 0"
finish
