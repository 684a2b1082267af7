# A real stage as a Slurm job: tokenize over two nodes gives what two local ranks give (R-SLM-3,
# alone: two clusters would share their ports.
# R-DLM-9).
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/slurm/cluster.sh"
missing=$(cluster_missing)
[ -n "$missing" ] && skip_all "$missing"
cluster_start || { not_ok "a Slurm of two nodes starts"; finish; exit 1; }

for i in $(seq 400); do echo "Document $i tells of $((i * i)) things."; echo; done >text.txt
cat >t.yaml <<'EOF'
name: local
ranks: 2
nodes:
  tokens: {run: tokenize, input: text.txt, tokenizer: byte, held_out: 0.1}
EOF
empty_queue() { [ -z "$(squeue --noheader)" ]; }
wait_empty() {
  for _ in $(seq 300); do empty_queue && return 0; sleep 0.2; done
  return 1
}

"$millrace" run t.yaml >output 2>&1
check "two local ranks make the tokens" says "all 1 nodes of 'local' are finished"
"$millrace" submit t.yaml --set name=spread --sbatch --nodes=2 >output 2>&1
check "the node is submitted over two hosts" says "1 jobs submitted"
check "its job ends" wait_empty
cp runs/spread/tokens.job.log output
check "its job made the node" says "tokens         finished"
check "mpirun started ranks on both hosts" says "on n[1-2]"
for file in local spread; do
  (cd runs/$file/tokens && sha256sum *.zst tokenizer.json statistics.json) >$file.sums 2>output
done
check "the shards are the same bytes" cmp -s local.sums spread.sums
check "and there are some" [ "$(wc -l <local.sums)" -ge 4 ]

"$millrace" submit t.yaml --set name=step --launcher srun >output 2>&1
check "srun can be the launcher" wait_empty
cp runs/step/tokens.job.log output
check "and makes the node too" says "tokens         finished"
finish
