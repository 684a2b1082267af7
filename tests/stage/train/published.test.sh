#!/usr/bin/env bash
# Weights that stay from within a training (publish_at) draw the same texts as a training that ends
# there, whether or not the longer one was stopped in between and went on elsewhere.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 120
make_recipe p.yaml 44
cat >>p.yaml <<'EOF'
  short: {run: pretrain, method: ar, from: tokens, schedule: constant, ema: 0.9, steps: 5}
  long: {run: pretrain, method: ar, from: tokens, schedule: constant, ema: 0.9, publish_at: [40, 5]}
  torn: {run: pretrain, method: ar, from: tokens, schedule: constant, ema: 0.9, publish_at: [40, 5]}
  plain: {run: pretrain, method: ar, from: tokens, schedule: constant, ema: 0.9}
  short_texts: {run: sample, from: short, samples: 4}
  early_texts: {run: sample, from: long, samples: 4, weights_step: 5}
  late_texts: {run: sample, from: long, samples: 4, weights_step: 44}
  long_texts: {run: sample, from: long, samples: 4}
  torn_texts: {run: sample, from: torn, samples: 4, weights_step: 40}
  middle_texts: {run: sample, from: long, samples: 4, weights_step: 40}
EOF
arrays() { (cd "runs/toy/$1/weights" && find . -name '*.safetensors' -exec sha256sum {} + | sort -k 2); }
same_arrays() { [ "$(arrays "$1" | wc -l)" -ge 3 ] && [ "$(arrays "$1")" = "$(arrays "$2")" ]; }
shards() { ls "runs/toy/$1/" | grep zst && cat "runs/toy/$1/"*.zst | sha256sum; } # names have a part of the weights' hash
same_texts() { [ -n "$(shards "$1")" ] && [ "$(shards "$1")" = "$(shards "$2")" ]; }

"$millrace" run p.yaml --node long >output 2>&1
check "a training leaves weights of three steps" [ $? -eq 0 -a "$(ls -d runs/toy/long/weights/step-*/ | wc -l)" -eq 3 ]
check "all are listed in its manifest" [ "$(grep -c 'weights/step-.*safetensors' runs/toy/long/manifest.json)" -eq 3 ]
stop_at p.yaml torn 7 --set torn.ranks=2
check "another is stopped between two of them" [ -d runs/toy/torn.partial/weights/step-5 -a ! -d runs/toy/torn.partial/weights/step-40 ]
"$millrace" run p.yaml --node torn --set torn.ranks=4 >output 2>&1
check "... goes on" says "resumes after step"
check "... and leaves the same weights" same_arrays long torn
for node in plain short_texts early_texts late_texts long_texts torn_texts middle_texts; do
  "$millrace" run p.yaml --node $node >output 2>&1 || not_ok "$node" output
done
check "weights that stay change nothing" same_numbers long plain
check "early weights draw what a short training draws" same_texts short_texts early_texts
check "the last step is the default" same_texts late_texts long_texts
check "weights in between draw the same after a stop" same_texts torn_texts middle_texts
differ() { ! same_texts "$@"; }
check "... and other texts than the last" differ middle_texts long_texts

"$millrace" run p.yaml --node early_texts --set early_texts.weights_step=6 >output 2>&1
[ $? -eq 78 ] && says "'long' does not keep the weights of step 6; add it to its publish_at" &&
  ok "a step that is not kept is refused before anything runs" || not_ok "a step that is not kept is refused" output
"$millrace" run p.yaml --node long --set 'long.publish_at=[5, 45]' >output 2>&1
[ $? -eq 78 ] && says "publish_at has step 45, but the training ends after 44" &&
  ok "a step after the end is refused" || not_ok "a step after the end is refused" output
rm -r runs/toy/long/weights/step-5 runs/toy/early_texts
"$millrace" run p.yaml --node early_texts >output 2>&1
[ $? -eq 65 ] && says "long/weights/step-5/tensors-00000.safetensors' is missing" &&
  ok "weights that were lost are named" || not_ok "weights that were lost are named" output
finish
