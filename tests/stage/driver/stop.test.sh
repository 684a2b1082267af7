#!/usr/bin/env bash
# Requests to stop at bad moments: while a launcher starts, which loses them, and before a job's driver runs (R-SLM-1).
. "$ROOT/tests/common/tap.sh"
make_graph
mkdir bin

# A launcher that is deaf for a second.
cat >bin/mpirun <<END
#!/usr/bin/env bash
trap '' USR1
sleep 1
exec env --default-signal=USR1 $(command -v mpirun) "\$@"
END
chmod +x bin/mpirun
run g.yaml --node tokens
export FAKE="ar=sleep30"
PATH=$PWD/bin:$PATH "$millrace" run g.yaml --node ar $fake >output 2>&1 &
driver=$!
for _ in $(seq 400); do
  [ -e runs/g/ar.lease ] && break
  sleep 0.05
done
kill -USR1 $driver
wait $driver
check "a request that a starting launcher would lose is kept for it: exit 75" [ $? -eq 75 ]
check "and said" says "stopped on request"

# A job that is warned while it asks for its end.
export SLURM_JOB_ID=7
printf '#!/bin/sh\nsleep 3\n' >bin/squeue
printf '#!/bin/sh\necho "scontrol $*" >>calls\n' >bin/scontrol
printf '#!/bin/sh\necho driver >>calls\nsleep 1\n' >bin/driver
chmod +x bin/*
job() { # job SECONDS: the job's script, warned after so long
  rm -f calls
  PATH=$PWD/bin:$PATH bash job.sh >output 2>&1 &
  local script=$!
  sleep "$1"
  kill -USR1 $script
  wait $script
}
sed "s|{{MILLRACE}}|$PWD/bin/driver|; s|{{[A-Z]*}}|x|g" "$ROOT/jobs/slurm/node.sh" >job.sh
job 1
check "a job that is warned before its driver runs is requeued at once" [ "$(cat calls)" = "scontrol requeue 7" ]
job 3.5
check "a job whose driver could not listen yet is requeued" [ "$(tr '\n' ' ' <calls)" = "driver scontrol requeue 7 " ]
finish
