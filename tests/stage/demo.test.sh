#!/usr/bin/env bash
# The main job's recipe, whole, on small models and a small text: every stage on two ranks, the table,
# the page in a browser, and what runs again when (R-DLM-11).
set -u
. "$ROOT/tests/common/tap.sh"

cat "$ROOT"/LICENSE "$ROOT"/pipeline/docs/*.md "$ROOT"/README.md "$ROOT"/*/README.md >text.txt
small=(tokens.input=text.txt tokens.boundary=blank_line tokens.vocabulary_size=320 tokens.sequence_length=16
  tokens.held_out=0.1 latents.encoder_width=16 latents.encoder_heads=2 width=16 depth=1 heads=2 batch=8 cfm.cfm_condition=8
  validate_every=4 validate_rows=8 elf.steps=6 codes.steps=6 cfm.steps=6 cfm_distilled.steps=4 ar.steps=6
  elf.warmup_steps=1 codes.warmup_steps=1 cfm.warmup_steps=1 cfm_distilled.warmup_steps=1 ar.warmup_steps=1
  elf_texts.samples=8 cfm_texts.samples=8 cfm_distilled_texts.samples=8 ar_texts.samples=8
  elf_texts.nfe=[4] cfm_texts.nfe=[4] cfm_distilled_texts.nfe=[1])
settings=()
for setting in "${small[@]}"; do settings+=(--set "$setting"); done
run() { "$OUT/millrace" run "$ROOT/jobs/recipes/demo.yaml" --runs runs -np 2 "${settings[@]}" "$@"; }

run >first.log 2>&1
check "the whole graph runs" [ $? -eq 0 ]
for system in "held-out text" "elf (random encoder)" "cfm " "cfm_distilled " "ar "; do
  check "the table has a row for $system" grep -q "^$system" first.log
done
page=runs/demo/report/report.html
check "the page shows curves" grep -q "<polyline" "$page"

start=$(date +%s%N)
run >second.log 2>&1
status=$?
took=$((($(date +%s%N) - start) / 1000000))
check "a second run succeeds" [ "$status" -eq 0 ]
check "and says that there is nothing to do" grep -q "all 13 nodes of 'demo' are finished" second.log
check "and starts nothing" [ "$(grep -c 'on 2 ranks' second.log)" -eq 0 ]
echo "# second run: $took ms"

run --set elf.steps=7 >third.log 2>&1
check "another option runs again" grep -q "^elf .*pretrain on 2 ranks" third.log
check "what depends on it runs again" grep -q "^elf_texts .*sample on 2 ranks" third.log
check "nothing else runs again" [ "$(grep -cE '^(tokens|latents|codes|cfm|cfm_distilled|ar|cfm_texts|ar_texts) .* on 2 ranks' third.log)" -eq 0 ]

browser=$(command -v chromium || command -v chromium-browser)
if [ -z "$browser" ]; then
  ok "the page opens in a browser without complaint # SKIP chromium is not installed"
else
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --enable-logging=stderr \
    --dump-dom "file://$PWD/$page" >dom.html 2>browser.log
  check "the page opens in a browser" grep -q "<polyline" dom.html
  check "without complaints on its console" [ "$(grep -c ':CONSOLE' browser.log)" -eq 0 ]
fi
finish
