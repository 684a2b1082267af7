# `millrace submit` on a real Slurm of two nodes: jobs, dependencies, requeue after 75, the ledger.
# alone: two clusters would share their ports.
# Issue 2 item 9; R-SLM-4, R-SLM-5, R-SLM-6, R-SLM-8.
. "$ROOT/tests/common/tap.sh"
. "$ROOT/tests/slurm/cluster.sh"
missing=$(cluster_missing)
[ -n "$missing" ] && skip_all "$missing"
make_graph

wait_for() { # wait_for SECONDS COMMAND...
  local tries=$(($1 * 5))
  shift
  for _ in $(seq $tries); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done
  return 1
}
empty_queue() { [ -z "$(squeue --noheader)" ]; }
# A job that is just being requeued is deaf to one scancel, and would run all its 30 s again.
emptied() { scancel --user=root 2>/dev/null; empty_queue; }
submit() { "$millrace" submit "$@" >output 2>&1; }

submit g.yaml $fake --dry-run
check "a dry run prints the scripts" says "#SBATCH --job-name=g.elf"
check "with the dependencies" says "after <tokens>:<latents>"
check "and makes nothing" [ ! -e runs ]

if ! cluster_start; then
  tail -n 20 "$cluster"/*.log | sed 's/^/# /'
  not_ok "a Slurm of two nodes starts"
  finish
  exit 1
fi

for wrong in --cpus-per-task=4096 --partition=nowhere; do
  submit g.yaml $fake --sbatch $wrong
  check "$wrong is found before the first job: exit 78 (R-SLM-8)" [ $? -eq 78 ]
  check "$wrong: the node and what Slurm says are named" grep -q "node 'tokens': Slurm would not run its job.*: allocation failure: " output
  check "$wrong: nothing is queued or made" [ -z "$(squeue --noheader)" -a ! -e runs ]
done
submit g.yaml $fake --dry-run --sbatch --cpus-per-task=4096
check "a dry run finds it as well" [ $? -eq 78 ]
submit g.yaml $fake
check "every node becomes a job" says "7 jobs submitted for 'g'"
first=$(sed -n 's/^tokens *job \([0-9]*\).*/\1/p' output)
check "a node's job waits for those of its inputs" says "elf            job $((first + 2)) after $first:$((first + 1))"
submit g.yaml $fake
check "a second submission finds the jobs in the queue" says "0 jobs submitted"
check "the queue empties" wait_for 90 empty_queue
"$millrace" run g.yaml $fake >output 2>&1
check "all nodes were made" says "nothing to do: all 7 nodes of 'g' are finished"
check "inputs before dependents" [ "$(grep -nx tokens runs/g/trace | cut -d: -f1)" = 1 -a \
  "$(tail -1 runs/g/trace)" = report ]
check "job ids are in the ledger" grep -q "\"event\":\"submit\",\"job\":\"$first\",\"node\":\"tokens\"" runs/g/ledger.jsonl
cat runs/g/tokens.job.log >output
check "the job's log says where it ran" says "=== job $first, start 1, on n"

# a failure stops the dependents; the next submission makes what is left
export FAKE="ar=exit65"
submit g.yaml $fake --set ar.steps=11 --sbatch --time=50
check "only what is stale is submitted" says "3 jobs submitted"
check "the dependents of a failed job are cancelled" wait_for 90 empty_queue
cat runs/g/ar.job.log >output
check "the job's log ends with the reason" says "(exit 65)"
minutes_of() { # from the start of the last job to its end
  local at until
  IFS=, read -r _ _ _ at until < <(grep "^=== job" output | tail -1)
  echo $((($(date -d "${until# until }" +%s) - $(date -d "$at" +%s) + 30) / 60))
}
check "the job was told when its time is over (R-SLM-2)" [ "$(minutes_of)" -eq 50 ]
unset FAKE
submit g.yaml $fake --set ar.steps=11
check "the queue empties again" wait_for 90 empty_queue
"$millrace" status >output 2>&1
check "the second submission made the rest" [ "$(grep -c finished output)" -eq 7 ]

# a stop request (what --signal and preemption send) leads to exit 75 and to a requeue
export FAKE="ar=sleep30"
submit g.yaml $fake --set ar.steps=12
job=$(sed -n 's/^ar *job \([0-9]*\).*/\1/p' output)
running() { grep -c '^ar$' runs/g/trace | grep -qx "$1"; }
check "the node runs" wait_for 30 running 4
scancel --signal=USR1 --batch "$job"
requeued() { grep -q "asking Slurm to run job $job again" runs/g/ar.job.log; }
check "75 asks for a requeue" wait_for 30 requeued
check "the job keeps its id and is queued" wait_for 30 test -n "$(squeue --noheader --job="$job")"
unset FAKE
scancel --signal=KILL "$job" 2>/dev/null
check "the queue is empty again" wait_for 90 emptied

# a sweep: an array of jobs, a task for each configuration, and one that gathers whatever became of them
echo "  steps: {run: sweep, from: ar, grid: {ar.steps: [10, 11, 12]}}" >>g.yaml
export FAKE="ar:12=exit65"
submit g.yaml $fake --set name=w
array=$(sed -n 's/^steps *job \([0-9]*\), tasks 1-3 after .*/\1/p' output)
check "the configurations are an array after the sweep's inputs" [ -n "$array" ]
check "the table waits for its end" grep -q "^steps *job [0-9]* after $array\$" output
check "the sweep's queue empties" wait_for 90 empty_queue
cat runs/w/steps.3.job.log >output
check "a failed configuration is a failed task" says "a configuration of task 3 of node 'steps' failed"
"$millrace" status runs/w >output 2>&1
check "the others and the table are made" grep -q "^steps .*finished .*2 of 3 configurations finished, 1 failed" output
mv runs/w/steps steps
export FAKE="ar:12=sleep30"
submit g.yaml $fake --set name=w
array=$(sed -n 's/^steps *job \([0-9]*\), tasks 3$/\1/p' output)
check "a second submission has a task for what is not finished" [ -n "$array" ]
at_work() { [ -e runs/w/steps.sweep/*/ar.lease ]; }
check "its task runs" wait_for 30 at_work
scancel --signal=USR1 --batch "$array"
again() { grep -q "asking Slurm to run job" runs/w/steps.3.job.log; }
wait_for 30 again
check "a task that stops with 75 asks for a requeue" again
restarted() { [ "$(squeue --noheader --array --Format=RestartCnt --job="${array}_3" | tr -d ' ')" = 1 ]; }
check "and gets it" wait_for 30 restarted
check "without a word of the contrary" [ "$(grep -c 'cannot be requeued' runs/w/steps.3.job.log)" -eq 0 ]
unset FAKE
check "the queue is empty at the end" wait_for 90 emptied
finish
