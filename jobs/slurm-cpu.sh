#!/usr/bin/env bash
# One image on CPU nodes of a Slurm cluster, in as many turns as it needs: before the time
# limit it saves what has been done, is queued again, and goes on from there.
#
#   sbatch [--nodes=... --time=...] jobs/slurm-cpu.sh OBS... -o NAME --size ... --scale ...
#
# in the folder that has jobs/ in it, or with TESSERA_JOBS=the path of jobs/. The numbers
# below are an example: jobs/submit.sh finds fitting ones.
#SBATCH --job-name=tessera
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --threads-per-core=1
#SBATCH --mem=64G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=tessera-%j.log
. "${TESSERA_JOBS:-${SLURM_SUBMIT_DIR:-.}/jobs}/job.sh" || exit 2
job_image "$@"
