#!/bin/bash
# A Ray cluster on the nodes of a SLURM allocation, then a study on it. How to use it: docs/guides/slurm.md
#   sbatch --nodes=4 launch/cluster/slurm.sh flipflop/baseline store=/shared/runs
# From the root of the repository, on a file system that the nodes share. PYTHON: the interpreter, by default .venv/bin/python.
# HEAD_IP: the address of the first node that the others reach, by default its first one.
#SBATCH --job-name=manyseeds
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@180
set -euo pipefail

if [[ $# -eq 0 || $1 == *=* || $1 == -* ]]; then
  echo "name the study first: sbatch launch/cluster/slurm.sh FILE|FAMILY/NAME [KEY=VALUE]…" >&2
  exit 2
fi

python=${PYTHON:-$PWD/.venv/bin/python}
if [[ ! -x $python ]]; then
  echo "there is no $python: type sbatch in the root of the repository, where .venv is, or give PYTHON=<interpreter>" >&2
  exit 2
fi
ray=$(dirname "$python")/ray
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
ip=${HEAD_IP:-$(hostname -I | cut -d' ' -f1)}
port=$((20000 + SLURM_JOB_ID % 10000)) # of this job: jobs may share a node
export RAY_ADDRESS=$ip:$port
# a token of this job's own, in the environment and on no command line
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$("$python" -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN

study=
stopped=
cancelled=
# The allocation ends or is preempted soon: the study saves what runs, and the job is queued again, unless it was cancelled.
stop() {
  if [[ -n $study ]]; then kill -TERM "$study" 2>/dev/null || true; fi
  if [[ -z $stopped ]]; then
    stopped=yes # a notice comes to a job that runs; `scancel` sends the same signal to one that has been ended
    if [[ $(scontrol show job "$SLURM_JOB_ID") =~ JobState=(CANCELLED|COMPLETING) ]]; then cancelled=yes; fi
  fi
}
trap stop TERM
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

size=(--num-cpus="${SLURM_CPUS_PER_TASK:-1}" --num-gpus="${SLURM_GPUS_ON_NODE:-0}")
step=(srun --nodes=1 --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --overlap) # since 22.05, srun does not take it from sbatch
"${step[@]}" --nodelist="${nodes[0]}" "$ray" start --head --node-ip-address="$ip" --port="$port" \
  --include-dashboard=false --temp-dir="/tmp/ray-$SLURM_JOB_ID" "${size[@]}" --block &
until "$ray" health-check --address "$RAY_ADDRESS" 2>/dev/null; do
  if [[ -n $stopped || -z $(jobs -rp) ]]; then echo "the Ray head on ${nodes[0]} did not start" >&2; exit 1; fi
  sleep 2
done
# One step a node: a node that is lost takes no other with it.
for node in "${nodes[@]:1}"; do
  "${step[@]}" --nodelist="$node" "$ray" start --address="$RAY_ADDRESS" "${size[@]}" --block &
done
# A study uses the nodes that are there when it starts; after 5 minutes it starts on those that came.
"$python" - "${#nodes[@]}" <<'EOF'
import sys, time, ray
ray.init(address="auto", log_to_driver=False)
deadline = time.monotonic() + 300
while (alive := sum(node["Alive"] for node in ray.nodes())) < int(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(2)
print(f"{alive} of {sys.argv[1]} nodes joined", flush=True)
EOF

if [[ -z $stopped ]]; then
  "$python" -m launch run "$1" executor=ray wandb=off "${@:2}" &
  study=$!
fi
status=130
if [[ -n $study ]]; then
  while kill -0 "$study" 2>/dev/null; do wait "$study" || true; done # `wait` also ends when the trap has run
  wait "$study" && status=0 || status=$?
fi
if [[ -n $cancelled ]]; then
  echo "cancelled: the same command goes on from the store"
elif [[ -n $stopped && $status -ne 0 ]]; then
  echo "stopped before the study was done: the job is queued again and goes on from the store"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
