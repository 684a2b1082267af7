# For shell tests: TAP lines and a small graph driven by a stand-in stage program. Source it; the
# working folder is fresh. Needs OUT (built programs) and ROOT (sources).
number=0
ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); echo "not ok $number - $1"; [ -n "${2:-}" ] && sed 's/^/# /' "$2"; }
check() { # check NAME COMMAND...: passes when the command succeeds
  local name=$1
  shift
  if "$@"; then ok "$name"; else not_ok "$name" output; fi
}
says() { grep -qF -- "$1" output; }
skip_all() { echo "ok 1 - # SKIP $1"; echo "1..1"; exit 0; }
finish() { echo "1..$number"; }

millrace=$OUT/millrace
fake="--stage-program $OUT/tests/tools/fake_stage"
run() { "$millrace" run "$@" $fake >output 2>&1; }
traced() { [ "$(tr '\n' ' ' <runs/g/trace)" = "$1 " ]; } # the nodes that were started, in order

make_graph() {
  echo "a text" >a.txt
  cat >g.yaml <<'EOF'
name: g
seed: 3
ranks: 2
nodes:
  tokens: {run: tokenize, input: a.txt}
  latents: {run: embed, from: tokens, encoder: random}
  elf: {run: pretrain, method: elf, from: [tokens, latents], steps: 10}
  ar: {run: pretrain, method: ar, from: tokens, steps: 10}
  text: {run: sample, from: elf}
  scores: {run: evaluate, from: [text, ar]}
  report: {run: report, from: scores}
EOF
}
