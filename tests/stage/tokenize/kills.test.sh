# R-DAT-1, R-DLM-9: a tokenize node that is killed again and again, and continued with another number
# of ranks each time, has the bytes of one that ran through. KILLS sets how often.
. "$ROOT/tests/common/tap.sh"
kills=${KILLS:-4}

cat >t.yaml <<'EOF2'
name: t
nodes:
  tokens: {run: tokenize, input: [text], boundary: line, tokenizer: byte, sequence_length: 256,
           packing: paragraph, held_out: 0.1, shard_tokens: 1000000}
EOF2
mkdir text
awk 'BEGIN {srand(7); for (f = 0; f < 6; f++) for (i = 0; i < 40000; i++) {
  line = ""; for (w = 0; w < 12; w++) line = line sprintf("%x ", int(rand() * 100000)); print line >("text/" f ".txt")}}'
gzip text/5.txt

outputs() { # the node's outputs and what they hold; not world, times, options that change nothing
  (cd "$1/tokens" && sha256sum train-*.zst held_out-*.zst tokenizer.* statistics.json)
}

"$millrace" run t.yaml -np 1 >output 2>&1
check "an uninterrupted run finishes" [ $? -eq 0 ]
outputs runs/t >whole
mv runs whole-runs
before=0
for i in $(seq "$kills"); do
  np=$((1 + i % 3))
  "$millrace" run t.yaml -np $np >output 2>&1 &
  driver=$!
  sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
  sleep "$((i % 2))"
  pkill -KILL -P "$(pgrep -P $driver | tr '\n' ',')$driver" 2>/dev/null # the launcher and its ranks
  kill -KILL $driver 2>/dev/null && before=$((before + 1))
  wait $driver 2>/dev/null
done
"$millrace" run t.yaml -np 2 >output 2>&1
check "after $kills kills ($before before the end) the run finishes" [ $? -eq 0 ]
outputs runs/t >again
check "with the same bytes" cmp whole again
check "and no journal is left" [ ! -e runs/t/tokens/parts ]
finish
