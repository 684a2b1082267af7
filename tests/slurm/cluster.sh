# A Slurm of two nodes on this machine, for tests: everything in a temporary folder, on ports of
# 127.0.0.1 that are not the usual ones. Source it, then cluster_start; it stops what it started by
# pid file when the shell ends. Needs root, slurm-wlm and munge.
cluster=$(mktemp -d)

cluster_missing() { # prints what is missing, if anything
  local program
  [ "$(id -u)" -eq 0 ] || { echo "Slurm's daemons need root"; return; }
  for program in slurmctld slurmd sbatch squeue munged mpirun; do
    command -v $program >/dev/null || { echo "$program is not installed"; return; }
  done
}

cluster_configure() {
  local port=$((20000 + RANDOM % 20000))
  cat >"$cluster/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmctldLogFile=$cluster/slurmctld.log
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmdLogFile=$cluster/slurmd-%n.log
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=600
NodeName=n1 NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2 State=UNKNOWN
PartitionName=test Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
EOF
  mkdir -p "$cluster/state"
  export SLURM_CONF=$cluster/slurm.conf
}

cluster_munge() {
  dd if=/dev/urandom of="$cluster/munge.key" bs=1024 count=1 2>/dev/null
  chmod 400 "$cluster/munge.key"
  chmod 755 "$cluster"
  munged --force --socket="$cluster/munge.socket" --key-file="$cluster/munge.key" \
    --pid-file="$cluster/munge.pid" --log-file="$cluster/munge.log" \
    --seed-file="$cluster/munge.seed" >/dev/null 2>&1
}

cluster_start() { # false when the daemons do not come up
  cluster_configure
  cluster_munge || return 1
  slurmctld -c || return 1
  slurmd -N n1 && slurmd -N n2 || return 1
  local _
  for _ in $(seq 100); do
    [ "$(sinfo --noheader --format=%T --Node 2>/dev/null | grep -c idle)" -eq 2 ] && return 0
    sleep 0.2
  done
  return 1
}

cluster_stop() {
  local file
  for file in "$cluster"/slurmd-n1.pid "$cluster"/slurmd-n2.pid "$cluster"/slurmctld.pid "$cluster"/munge.pid; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  sleep 0.5
  rm -rf "$cluster"
}
trap cluster_stop EXIT
