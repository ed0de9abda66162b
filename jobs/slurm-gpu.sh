#!/usr/bin/env bash
# One image on GPU nodes of a Slurm cluster, a rank for each GPU, with checkpoints as in
# slurm-cpu.sh.
#
#   sbatch [--nodes=... --time=...] jobs/slurm-gpu.sh OBS... -o NAME --size ... --scale ...
#
# in the folder that has jobs/ in it, or with TESSERA_JOBS=the path of jobs/. The numbers
# below are an example: jobs/submit.sh --gpus N finds fitting ones.
#SBATCH --job-name=tessera
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --threads-per-core=1
#SBATCH --gpus-per-node=4
#SBATCH --mem=256G
#SBATCH --time=00:30:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=tessera-%j.log
. "${TESSERA_JOBS:-${SLURM_SUBMIT_DIR:-.}/jobs}/job.sh" || exit 2
job_image "$@" --backend cuda
