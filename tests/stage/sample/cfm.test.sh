#!/usr/bin/env bash
# Sampling categorical flows: trajectories for people to look at, blocks after a given prefix,
# guidance by the prefix; the same bytes for any number of ranks and any batch (R-EVA-2, R-DLM-3).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
make_corpus corpus.txt 200
make_recipe g.yaml 120
cat >>g.yaml <<'END'
  cfm: {run: pretrain, method: cfm, from: tokens, learning_rate: 0.005, batch: 16, cfm_weight_power: 0}
  seen: {run: sample, from: cfm, samples: 5, nfe: [3], temperature: 0, trajectories: 2, batch: 2}
  student: {run: distill, from: cfm, steps: 60, learning_rate: 0.01, distill_share: 0.8, distill_middle: time}
  jumps: {run: sample, from: student, samples: 32, nfe: [1]}
  maps: {run: sample, from: student, samples: 32, nfe: [1], cfm_sampler: map}
  euler: {run: sample, from: student, samples: 32, nfe: [1], cfm_sampler: euler}
  ends: {run: sample, from: cfm, samples: 6, nfe: [4], prefix: 8, cfm_block: 12, top_p: 0.9, batch: 4}
END
run() { "$millrace" run g.yaml "$@" >output 2>&1; }
shards() { (cd "runs/toy/$1" && sha256sum -- *.zst *.jsonl 2>/dev/null | sort); }
rows() { # rows NODE: the first tokens of two texts, a line each
  local shard
  for shard in runs/toy/"$1"/nfe*.zst; do
    "$millrace" data head "$shard" tokens 2 | sed -n 's/^[a-z_]*\[[01]\] \[[0-9]*\] *//p' | cut -d' ' -f1-16
    return
  done
}
check "all nodes run" run || sed 's/^/# /' output
lines=runs/toy/seen/trajectory-nfe3-0.jsonl
check "a trajectory has a line for every text and call" [ "$(wc -l <$lines)" -eq 6 ]
last() { sed -nE 's/.*"text":'"$1"',"call":2,.*"tokens":\[([0-9,]*)\].*/\1/p' $lines | tr , ' ' | cut -d' ' -f1-16; }
as_drawn() { [ -n "$(last 0)" ] && [ "$(last 0)" = "$(rows seen | head -1)" ] && [ "$(last 1)" = "$(rows seen | sed -n 2p)" ]; }
check "at temperature 0 it ends in the text" as_drawn
check "others are not watched" [ "$(ls runs/toy/seen/trajectory-* | wc -l)" -eq 1 ]
texts() { for shard in runs/toy/"$1"/nfe*.zst; do "$millrace" data head "$shard" tokens 32; done | grep '^tokens'; }
check "texts of a distilled model are drawn by its maps" [ "$(texts jumps)" = "$(texts maps)" ]
check "and not by steps of its diagonal, as those of a base" [ "$(texts jumps)" != "$(texts euler)" ]
held_out() { "$millrace" data head runs/toy/tokens/held_out-*.zst tokens 2 | sed -n 's/^[a-z_]*\[[01]\] \[[0-9]*\] *//p'; }
check "what is given stays" cmp -s <(rows ends | cut -d' ' -f1-8) <(held_out | cut -d' ' -f1-8)
before=$(shards seen; shards ends)
rm -r runs/toy/seen runs/toy/ends
run --set seen.ranks=2 --set ends.ranks=3 
check "the same texts and trajectories on more ranks" [ "$before" = "$(shards seen; shards ends)" ]
rm -r runs/toy/ends
run --set ends.cfm_prefix_guidance=1
check "guidance 1 is none" [ "$before" = "$(shards seen; shards ends)" ]
run --set ends.cfm_prefix_guidance=60
check "more goes further from texts without the prefix" [ "$before" != "$(shards seen; shards ends)" ]
check "and keeps it" cmp -s <(rows ends | cut -d' ' -f1-8) <(held_out | cut -d' ' -f1-8)
finish
