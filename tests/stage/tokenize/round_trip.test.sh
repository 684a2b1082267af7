#!/usr/bin/env bash
# R-TOK-4: statistics say how many documents decode to the same bytes, and how many differ in white
# space only: none with bytes, those with runs of spaces with a SentencePiece model.
. "$ROOT/tests/common/tap.sh"
# Lines, every other with a run of spaces; a share of them is decoded again.
(tr -s ' \n' <"$ROOT/LICENSE" && seq -f 'line number %g' 2000 | sed 'n; s/ /  /') >corpus.txt
cat >g.yaml <<'END'
name: g
ranks: 1
defaults: {input: corpus.txt, boundary: line, sequence_length: 16, held_out: 0.1}
nodes:
  bytes: {run: tokenize, tokenizer: byte}
  pieces: {run: tokenize, tokenizer: train, vocabulary_size: 300}
END
"$OUT/millrace" run g.yaml >output 2>&1
check "both nodes are made" [ $? -eq 0 ]
number() { sed -nE "s/.*\"$2\": ([0-9]+).*/\1/p" "runs/g/$1/statistics.json" | head -1; }
check "every document of bytes comes back" \
  [ "$(number bytes round_trip_same)" -eq "$(number bytes round_trip_checked)" ]
check "with pieces, some do not" [ "$(number pieces round_trip_same)" -lt "$(number pieces round_trip_checked)" ]
check "... and those differ in white space only" [ "$(($(number pieces round_trip_same) + $(number pieces round_trip_space)))" \
  -eq "$(number pieces round_trip_checked)" ]
check "documents were looked at" [ "$(number bytes round_trip_checked)" -gt 3 ]
finish
