#!/bin/bash
# One run of engine verl on several Slurm nodes: sbatch examples/cluster/slurm.sh RECIPE.toml RUN_DIRECTORY
# The repository, its virtual environment, the run directory and the Hugging Face cache lie on a shared file system.
#SBATCH --job-name=microcoder
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
recipe=$1 run=$2
source .venv/bin/activate

gpus=${SLURM_GPUS_ON_NODE:-0} cpus=${SLURM_CPUS_PER_TASK:-16}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]} port=6379
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | awk '{print $1}')

# Programs are judged under the job's own user, without a container. Where nodes give an ordinary user no namespaces
# (Ubuntu 24.04's kernel.apparmor_restrict_unprivileged_userns=1, Debian's kernel.unprivileged_userns_clone=0,
# user.max_user_namespaces=0) everything is judged all the same, `degraded`: one layer of isolation instead of two
# (docs/sandbox.md, "Without mounts"). This says which it is; a node that could judge nothing safely ends the job here.
srun --ntasks-per-node=1 --overlap microcoder doctor

# One Ray process on each node; all of them end with the job.
srun --nodes=1 --ntasks=1 --overlap -w "$head" \
    ray start --head --node-ip-address="$address" --port=$port --num-gpus="$gpus" --num-cpus="$cpus" --block &
for node in "${nodes[@]:1}"; do
    srun --nodes=1 --ntasks=1 --overlap -w "$node" \
        ray start --address="$address:$port" --num-gpus="$gpus" --num-cpus="$cpus" --block &
done

count_nodes() {
    srun --nodes=1 --ntasks=1 --overlap -w "$head" python -c "
import ray
ray.init('$address:$port', logging_level='error', log_to_driver=False)
print(sum(node['Alive'] for node in ray.nodes()))" | tail -n 1
}
# verl would not wait for the machines to join.
for _ in $(seq 60); do [ "$(count_nodes || echo 0)" -ge "${#nodes[@]}" ] && break || sleep 10; done

# The judge runs in one of verl's reward workers; --evaluator.backend ray has one on each node. The same command goes on from the last checkpoint.
status=0
RAY_ADDRESS="$address:$port" srun --nodes=1 --ntasks=1 --overlap -w "$head" \
    microcoder train -c "$recipe" --engine verl --run-dir "$run" \
    --verl.trainer.nnodes "${#nodes[@]}" --verl.trainer.n_gpus_per_node "$gpus" || status=$?
[ "$status" -eq 0 ] && exit 0

# Ray notices a lost node, and the run ends, minutes before Slurm would requeue the job for it. Ray is given time to count;
# where no node is missing the run has failed by itself, and would again.
sleep 60
alive=$(count_nodes) || alive=0
if [ "$alive" -lt "${#nodes[@]}" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 5 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
