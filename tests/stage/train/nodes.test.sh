#!/usr/bin/env bash
# R-ELA-3 over several nodes: two hosts, made of two host names on this machine, between which ranks
# share no memory. Sums of gradients travel by messages while the backward pass goes on; bits are those
# of one rank. A hang is found across hosts too (R-MPI-4).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/stage/train/toy.sh"
unshare --uts true 2>/dev/null || skip_all "host names of its own need privileges"
cat >rsh <<'EOT'
#!/bin/sh
host=$1
shift
exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
EOT
chmod +x rsh
make_corpus corpus.txt 300
make_recipe g.yaml 6
node="run: pretrain, method: ar, from: tokens, depth: 3"
cat >>g.yaml <<EOT
  one: {$node}
  two: {$node, ranks: 2}
  four: {$node, ranks: 4}
  fetched: {$node, ranks: 4, zero: 3}
  groups: {$node, ranks: 4, vocabulary_group: 2, gradients: bf16}
  bf16: {$node, gradients: bf16}
  hung: {$node, ranks: 4, steps: 100000, checkpoint_every: 100000, validate_every: 100000, hang_seconds: 10}
EOT
"$millrace" run g.yaml --node one >output 2>&1 && "$millrace" run g.yaml --node bf16 >>output 2>&1
check "one rank trains" test $? -eq 0
export OMPI_MCA_orte_default_hostfile=$PWD/hosts OMPI_MCA_plm_rsh_agent=$PWD/rsh OMPI_MCA_pml=ob1 \
  OMPI_MCA_btl=self,vader,tcp OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
printf 'nodea slots=1\nnodeb slots=1\n' >hosts
"$millrace" run g.yaml --node two >output 2>&1
check "two hosts of one rank each train" says "rank 1: host nodeb"
check "... with the bits of one rank" same_numbers one two
printf 'nodea slots=2\nnodeb slots=2\n' >hosts
for name in four fetched groups; do
  "$millrace" run g.yaml --node $name >output 2>&1
  check "$name: two hosts of two ranks each train" says "rank 2: host nodeb"
  against=one
  [ $name = groups ] && against=bf16
  check "$name: ... with the bits of one rank (R-ELA-3)" same_numbers $against $name
done
check "the log says what exchanges cost" says "not hidden by work"
check "... in the one line of each interval" [ "$(grep -c 'not hidden by work' output)" -eq "$(grep -cE 'step [0-9]+/' output)" -a \
  "$(grep -cE 'slowest rank' output)" -le "$(grep -cE 'step [0-9]+/' output)" ]
check "and nothing of it elsewhere" [ "$(grep -E 'slowest rank|not hidden' output | grep -vcE 'step [0-9]+/')" -eq 0 ]

"$millrace" run g.yaml --node hung >output 2>&1 &
driver=$!
for _ in $(seq 2000); do
  [ "$(last_step runs/toy/hung.partial/metrics.jsonl)" -ge 12 ] 2>/dev/null && break
  sleep 0.05
done
for pid in $(pgrep -f "millrace-stage pretrain .*--node hung( |\$)"); do
  tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx OMPI_COMM_WORLD_RANK=3 && victim=$pid
done
kill -STOP "$victim"
wait $driver
check "a rank stopped on the other host ends the job with exit 74" test $? -eq 74
check "... and is named" says "hang in rank 3"
finish
