# For tests of training: a toy corpus and a recipe of tiny nodes. Source it after tests/common/tap.sh
# with the working folder fresh.
make_corpus() { # make_corpus FILE DOCUMENTS: sentences of a small grammar, a document each
  awk -v documents="$2" 'BEGIN {
    srand(11)
    who = split("the cat|a dog|my old friend|the tall man|one small bird|the queen", subjects, "|")
    what = split("sees|likes|follows|never finds|talks to|dreams of", verbs, "|")
    whom = split("the river|a red house|the moon|his brother|some bread|an open door", objects, "|")
    for (i = 0; i < documents; i++) {
      n = 2 + int(3 * rand())
      for (j = 0; j < n; j++)
        printf "%s %s %s. ", subjects[1 + int(who * rand())], verbs[1 + int(what * rand())], objects[1 + int(whom * rand())]
      printf "\n\n"
    }
  }' >"$1"
}

# The head of a recipe; nodes are appended as lines "  NAME: {...}".
make_recipe() { # make_recipe FILE STEPS
  cat >"$1" <<EOF
name: toy
seed: 5
ranks: 1
defaults: {width: 32, depth: 2, heads: 2, batch: 8, micro_shards: 4, steps: $2, warmup_steps: 2,
  learning_rate: 0.003, checkpoint_every: 3, log_every: 5, validate_every: 5, validate_rows: 12,
  threads: 1}
nodes:
  tokens: {run: tokenize, input: corpus.txt, tokenizer: byte, boundary: blank_line,
    sequence_length: 32, held_out: 0.1}
EOF
}

# What of a node's metrics depends on recipe and data alone: losses, norms, rates, samples, hashes.
numbers() { # numbers NODE
  sed -E 's/,"tokens_per_second":[^,]*//; s/,"seconds":(\{[^}]*\}|[^,}]*)//; s/,"canonical_seconds":[^,]*//; s/,"peak_bytes":\{[^}]*\}//' \
    "runs/toy/$1/metrics.jsonl"
}
same_numbers() { [ -n "$(weights "$1")" ] && cmp -s <(numbers "$1") <(numbers "$2"); }
weights() { sed -nE 's/.*"event":"end".*"weights":"([0-9a-f]+)".*/\1/p' "runs/toy/$1/metrics.jsonl"; }
last_step() { # of the records so far
  [ -f "$1" ] && sed -nE 's/^\{"event":"step","step":([0-9]+),.*/\1/p' "$1" | tail -1 || echo 0
}

# Runs a node and asks it to stop once a step is recorded; gives the driver's exit code.
stop_at() { # stop_at RECIPE NODE STEP OPTIONS...
  "$millrace" run "$1" --node "$2" "${@:4}" >output 2>&1 &
  local driver=$!
  for _ in $(seq 500); do
    [ "$(last_step "runs/toy/$2.partial/metrics.jsonl")" -ge "$3" ] 2>/dev/null && break
    sleep 0.02
  done
  kill -USR1 $driver
  wait $driver
}
