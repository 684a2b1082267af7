#!/usr/bin/env bash
# The Slurm job of one node, written by `millrace submit` from jobs/slurm/node.sh. Give partition,
# account and time limit with --sbatch, or in a copy of the template named by --template.
#SBATCH --job-name={{RUN}}.{{NODE}}
#SBATCH --ntasks={{RANKS}}
#SBATCH --cpus-per-task={{THREADS}}
#SBATCH --output={{FOLDER}}/{{NODE}}.job.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120

tries=5 # starts after an unusable environment, a failed write or a hang (69, 73, 74)
restarts=${SLURM_RESTART_COUNT:-0}

stopped=
# Slurm warns this shell, at any time; the driver, once there is one, passes the warning on to the ranks.
trap 'stopped=1; [ -z "$!" ] || kill -USR1 $!' USR1 TERM

# When the time limit ends this job: trainings stop before. Newer Slurms tell it by themselves.
end=$(timeout 20 squeue --noheader --job="$SLURM_JOB_ID" --format=%e 2>/dev/null)
[ -z "$end" ] || end=$(date -d "$end" +%s 2>/dev/null)
[ -z "$end" ] || export SLURM_JOB_END_TIME=$end
echo "=== job $SLURM_JOB_ID, start $((restarts + 1)), on ${SLURM_JOB_NODELIST:-?}, $(date -u +%FT%TZ)," \
  "until $(date -u -d "@${SLURM_JOB_END_TIME:-}" +%FT%TZ 2>/dev/null || echo "an unknown time")"

{
  [ -z "$stopped" ] || exit 75
  exec "{{MILLRACE}}" node --run "{{FOLDER}}" --node "{{NODE}}" --launcher {{LAUNCHER}} \
    --cores {{CORES}} {{FLAGS}}
} &
driver=$!
wait $driver
status=$?
while kill -0 $driver 2>/dev/null; do # the wait was cut short by a signal
  wait $driver
  status=$?
done
# Warned before the driver could listen: it died of USR1.
if [ -n "$stopped" ] && [ $status -eq 138 ]; then status=75; fi

again() {
  echo "=== exit $status: asking Slurm to run job $SLURM_JOB_ID again"
  trap '' USR1 TERM # a requeue first ends this job: scontrol, too, would die of it before it could tell
  scontrol requeue "$SLURM_JOB_ID" || echo "=== the job cannot be requeued; submit again by hand"
}
case $status in
  75) again ;;
  69 | 73 | 74)
    if [ "$restarts" -lt "$tries" ]; then
      sleep $((30 * (restarts + 1)))
      again
    fi
    ;;
esac
exit $status
