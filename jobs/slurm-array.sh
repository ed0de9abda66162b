#!/usr/bin/env bash
# An array of images of the same observations on a Slurm cluster, one for each group of
# channels or each field. All tasks read the observations where they are; each is queued
# again until its image is there.
#
#   sbatch --array=0-15 jobs/slurm-array.sh channels:64:16 OBS... -o NAME --size ...
#   sbatch --array=0-2  jobs/slurm-array.sh fields:3C286,0,7 OBS... -o NAME --size ...
#
# in the folder that has jobs/ in it, or with TESSERA_JOBS=the path of jobs/. The numbers
# below are an example: jobs/submit.sh --array channels:16 finds fitting ones.
#SBATCH --job-name=tessera
#SBATCH --array=0-0
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --threads-per-core=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=tessera-%A_%a.log
. "${TESSERA_JOBS:-${SLURM_SUBMIT_DIR:-.}/jobs}/job.sh" || exit 2
job_array_image "$@"
