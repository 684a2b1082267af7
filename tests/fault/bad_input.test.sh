#!/usr/bin/env bash
# Bad input to real stages on two ranks: each gives one line with the reason, what to do, and the
# exit code of design; all ranks leave together (issue 2, "Bad input"; R-CKP-2, R-CKP-3, R-DLM-10,
# R-ELA-4, R-TOK-2, R-TOK-5). What the driver alone refuses: tests/stage/driver/bad_input.test.sh.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
cp "$ROOT/LICENSE" corpus.txt # prose
tr a-y b-z <corpus.txt >other.txt
cat >g.yaml <<'END'
name: g
ranks: 2
defaults: {width: 16, depth: 1, heads: 2, batch: 8, micro_shards: 4, steps: 2, checkpoint_every: 1,
  validate_every: 2, validate_rows: 8, threads: 1}
nodes:
  tokens: {run: tokenize, input: corpus.txt, tokenizer: train, vocabulary_size: 300,
    sequence_length: 16, held_out: 0.1}
  cfm: {run: pretrain, method: cfm, from: tokens}
  ar: {run: pretrain, method: ar, from: tokens}
  text: {run: sample, from: ar, samples: 4}
END
"$millrace" run g.yaml >output 2>&1
check "good input passes" [ $? -eq 0 ]
cp -a runs good

restore() { rm -rf runs && cp -a good runs; }
flip() { # flip FILE [BYTE]: one bit, in the middle when no place is given
  local at=${2:-$(($(stat -c %s "$1") / 2))} byte
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}
halve() { truncate -s $(($(stat -c %s "$1") / 2)) "$1"; }
none_left() { ! pgrep -f "millrace-stage .*--run $PWD/runs" >/dev/null; }

# The exit code; the reason in one line; of the stage nothing more but the advice; no rank left.
refused() {
  [ "$got" -eq "$code" ] && grep -qE "^millrace(-stage)?: .*$reason" output && says "(exit $code)" &&
    [ "$(grep -cE '^millrace-stage: |^  at ' output)" -le 2 ] && none_left
}
refuses() { # refuses NAME CODE REASON COMMAND...
  local name="$1" code=$2 reason=$3 got
  shift 3
  timeout -k 5 60 "$@" >output 2>&1
  got=$?
  check "$name: exit $code and the reason" refused
}
node() { echo "$millrace run g.yaml --node $1"; }
by_hand() { echo "mpirun --quiet --bind-to none -np $2 $OUT/millrace-stage $3 --run $PWD/runs/g --node $1"; }

# recipes
sed 's/ steps: 2/ stps: 2/' g.yaml >key.yaml
refuses "unknown key" 78 "key.yaml:3: defaults: unknown option 'stps'; did you mean 'steps'" \
  "$millrace" run key.yaml
sed 's/from: ar,/from: arr,/' g.yaml >missing.yaml
refuses "missing node" 78 "missing.yaml:10: .*no node 'arr'; did you mean 'ar'" "$millrace" run missing.yaml
sed 's/{run: pretrain, method: cfm, from: tokens}/{run: distill, from: more}\n  more: {run: distill, from: cfm}/' \
  g.yaml >cycle.yaml
refuses "cycle" 78 "cycle.yaml:8: the nodes form a cycle: cfm -> more -> cfm" "$millrace" run cycle.yaml
refuses "missing file" 78 "g.yaml:6: node 'tokens': input: .*nowhere.txt" \
  $(node tokens) --set tokens.input=nowhere.txt
refuses "rank count, by the driver" 78 "admissible counts are 1 2 4" $(node ar) -np 3
rm -r runs/g/ar
refuses "rank count, by the stage" 78 "node 'ar' cannot run on 3 ranks: .* counts are 1 2 4" \
  $(by_hand ar 3 pretrain)

# texts
: >empty.txt
refuses "zero documents" 78 "empty.txt' holds no documents" $(node tokens) --set tokens.input=empty.txt
(cat corpus.txt && printf '\n\nnot \xff\xfe text\n\n') >invalid.txt
$(node tokens) --set tokens.input=invalid.txt >output 2>&1
check "invalid UTF-8 is counted, and kept out of nothing" \
  says "1 documents hold 2 bytes that are not UTF-8"

# shards
restore && rm -r runs/g/ar && flip "$(ls runs/g/tokens/train-*.zst)"
refuses "flipped bit of a shard" 65 "train-.*block [0-9]+" $(node ar)
restore && rm -r runs/g/ar && halve "$(ls runs/g/tokens/train-*.zst)"
refuses "truncated shard, by the driver" 65 "train-.* bytes, the manifest says" $(node ar)
refuses "truncated shard, by the stage" 65 "train-.*zst" $(by_hand ar 2 pretrain)

# safetensors
restore && rm -r runs/g/text && flip runs/g/ar/weights/step-2/tensors-00000.safetensors
refuses "flipped bit of weights" 65 "tensors-00000.safetensors.*block [0-9]+" $(node text)
restore && rm -r runs/g/text && flip runs/g/ar/weights/step-2/tensors-00000.safetensors 20
refuses "flipped bit of a header" 65 "tensors-00000.safetensors" $(node text)
restore && rm -r runs/g/text && halve runs/g/ar/weights/step-2/tensors-00000.safetensors
refuses "truncated weights" 65 "tensors-00000.safetensors.* bytes" $(by_hand text 2 sample)
restore && rm -r runs/g/text && flip runs/g/ar/weights/step-2/manifest.json 60
refuses "flipped bit of a manifest" 65 "weights/step-2/manifest.json" $(node text)
restore && rm -r runs/g/text && flip runs/g/tokens/tokenizer.model
refuses "flipped bit of a vocabulary" 65 "tokenizer.model" $(node text)
restore && mkdir encoder
echo '{"model_type": "t5", "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 300,
  "relative_attention_num_buckets": 8, "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu"}' >encoder/config.json
head -c 300 "$(ls runs/g/cfm/weights/step-2/tensors-*)" >encoder/model.safetensors
sed '$a\  latents: {run: embed, from: tokens, encoder: t5, encoder_path: encoder}' g.yaml >encoder.yaml
refuses "truncated safetensors of others" 65 "encoder/model.safetensors.*truncated" \
  "$millrace" run encoder.yaml --node latents

# checkpoints
restore && rm -r runs/g/ar
long="--set ar.steps=100000 --set ar.validate_every=100000"
$(node ar) $long >output 2>&1 &
driver=$!
for _ in $(seq 500); do [ -e runs/g/ar.partial/checkpoints/step-3 ] && break; sleep 0.02; done
kill -USR1 $driver
wait $driver
check "a training is stopped in the middle" [ $? -eq 75 ]
newest=$(ls -d runs/g/ar.partial/checkpoints/step-* | sort -V | tail -1)
older=$(ls -d runs/g/ar.partial/checkpoints/step-* | sort -V | tail -2 | head -1)
flip "$newest/tensors-00000.safetensors"
(sleep 4; kill -USR1 $(pgrep -f "millrace run g.yaml --node ar $long")) &
$(node ar) $long >output 2>&1
check "a damaged checkpoint is named" grep -q "${newest#runs/}.*block" output
check "and the one before it is taken" says "resumes after step ${older##*step-}"
for file in runs/g/ar.partial/checkpoints/step-*/tensors-*; do halve "$file"; done
refuses "no checkpoint is left" 65 "checkpoints" $(node ar) $long

# vocabularies
restore && rm -r runs/g/text
cat >>g.yaml <<'END'
  other: {run: tokenize, input: other.txt, tokenizer: train, vocabulary_size: 300,
    sequence_length: 16, held_out: 0.1}
  strange: {run: sample, from: [ar, other], samples: 4}
  student: {run: distill, from: [cfm, other]}
  scores: {run: evaluate, from: [text, ar, other]}
END
refuses "samples of another vocabulary" 78 "other' holds tokenizer .* trained with" $(node strange)
refuses "distillation on another vocabulary" 78 "g/cfm' was trained with tokenizer" $(node student)
refuses "held-out text of another vocabulary" 78 "holds ids of tokenizer .* the judge" $(node scores)
finish
