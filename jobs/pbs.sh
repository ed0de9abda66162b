#!/usr/bin/env bash
# One image on CPU nodes of a PBS cluster (OpenPBS, PBS Professional), in as many turns as
# it needs: before the time limit it saves what has been done, submits itself again, and
# goes on from there.
#
# qsub takes no arguments for a script: copy this one, and write paths and image options
# into it; or use jobs/submit.sh, which does that and finds fitting numbers.
#PBS -N tessera
#PBS -l select=1:ncpus=64:mpiprocs=8:ompthreads=8:mem=64gb
#PBS -l walltime=04:00:00
#PBS -j oe
cd "${PBS_O_WORKDIR:?not a PBS job}" || exit 2
TESSERA_JOBS=$PBS_O_WORKDIR/jobs
TESSERA_SCRIPT=$PBS_O_WORKDIR/pbs.sh # this file
set -- OBS... -o NAME --size 8192 --scale 2asec
. "$TESSERA_JOBS/job.sh" || exit 2

# PBS gives no early signal: stop two minutes before the time limit, or as soon as
# something has been done.
limit=$(qstat -f "$PBS_JOBID" | sed -n 's/^ *Resource_List.walltime = //p')
IFS=: read -r hours minutes seconds <<<"$limit"
if [ -n "$seconds" ]; then
    TESSERA_MAX_TIME=$((10#$hours * 3600 + 10#$minutes * 60 + 10#$seconds - 120))
    [ "$TESSERA_MAX_TIME" -gt 0 ] || TESSERA_MAX_TIME=0.001
fi
job_image "$@"
