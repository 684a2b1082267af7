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
printf '#!/bin/sh\necho squeue >>calls\nsleep 2\n' >bin/squeue
printf '#!/bin/sh\necho "scontrol $*" >>calls\n' >bin/scontrol
printf '#!/bin/sh\necho driver >>calls\nsleep 3\n' >bin/driver
chmod +x bin/*
job() { # job CALL: the job's script, warned as soon as it has made that call
  rm -f calls
  PATH=$PWD/bin:$PATH bash job.sh >output 2>&1 &
  local script=$!
  for _ in $(seq 1000); do
    grep -qs "^$1" calls && break
    sleep 0.02
  done
  kill -USR1 $script
  wait $script
}
sed "s|{{MILLRACE}}|$PWD/bin/driver|; s|{{[A-Z]*}}|x|g" "$ROOT/jobs/slurm/node.sh" >job.sh
job squeue
check "a job that is warned before its driver runs is requeued at once" [ "$(tr '\n' ' ' <calls)" = "squeue scontrol requeue 7 " ]
job driver
check "a job whose driver could not listen yet is requeued" [ "$(tr '\n' ' ' <calls)" = "squeue driver scontrol requeue 7 " ]
finish
