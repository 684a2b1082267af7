#!/usr/bin/env bash
# R-DAT-6: the memory of preparing data is bounded by a constant (stages/README.md), whatever the corpus: one
# rank reads, packs and shuffles a text four times as long, of lines that all differ, with hardly more.
. "$ROOT/tests/common/tap.sh"
[[ $OUT != *asan* ]] || skip_all "the sanitizers keep what is freed"
sentence="lines of a corpus are made by a rule, and no two of them are equal to one another here; "
make_text() { seq -f "%.0f $sentence$sentence$sentence$sentence$sentence$sentence$sentence$sentence" "$1" | gzip -1; }
make_text 60000 >small.gz
make_text 240000 >large.gz
# peak CORPUS SHUFFLE: into `peak`, the largest resident memory of the rank in MiB
peak() {
  printf 'name: %s-%s\nranks: 1\nnodes:\n  tokens: {run: tokenize, input: %s.gz, boundary: line, tokenizer: byte, sequence_length: 512%s}\n' \
    "$1" "$2" "$1" "${2:+, shuffle: $2}" >g.yaml
  "$OUT/millrace" run g.yaml >output 2>&1 &
  local run=$! pid now
  peak=0
  while kill -0 $run 2>/dev/null; do
    for pid in $(pgrep -f "$OUT/millrace-stage tokenize --run $PWD/"); do
      now=$(awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$pid/status" 2>/dev/null)
      [ "${now:-0}" -le $peak ] || peak=$now
    done
    sleep 0.05
  done
  wait $run
}
for shuffle in "" all; do
  peak small "$shuffle"
  made=$? small=$peak
  peak large "$shuffle"
  made=$((made + $?)) large=$peak
  check "shuffle '$shuffle': both corpora are made" [ $made -eq 0 ]
  check "... and were seen ($small MiB)" [ "$small" -gt 20 ]
  check "... the large one in $large MiB, hardly more" [ "$large" -lt $((small + 40)) ]
done
finish
