# Sourced by the batch scripts of this folder: starts tessera on what the scheduler gave,
# passes its early signal on to the ranks, and has the job queued again when tessera has
# stopped at a checkpoint (status 75). Made for Slurm and PBS, and for Open MPI or, by
# srun, any MPI library.
#
# The environment decides:
#   TESSERA           the program, or the words that start it, like
#                     "apptainer exec tessera.sif tessera" (default: tessera of $PATH)
#   TESSERA_LAUNCH    srun, mpirun or none (default: srun, where it speaks the PMI of the
#                     MPI library, else mpirun)
#   TESSERA_BIND      cores or none (default: cores, when every rank can have its own)
#   TESSERA_SAVE      how often a checkpoint is written besides (default 10min)
#   TESSERA_RESTARTS  how often a job is queued again at most (default 100)
# shellcheck shell=bash

# From now on SIGUSR1 and SIGTERM to this shell reach the ranks, as SIGUSR1.
job_pid='' job_told=no
trap job_stop USR1 TERM
job_stop() {
    job_told=yes
    job_say "$(date '+%F %T'): told to stop"
    [ -z "$job_pid" ] || kill -USR1 "$job_pid" 2>/dev/null
}

job_say() {
    printf 'job: %s\n' "$*"
}

job_fail() {
    job_say "error: $*" >&2
    exit 2
}

# job_program DEFAULT: sets job_tessera, the words that start tessera: those of $TESSERA, or
# the program that the whole of it names. Files among them are found from any folder.
job_program() {
    local given=${TESSERA:-$1} k
    job_tessera=("$given")
    command -v "$given" >/dev/null || read -ra job_tessera <<<"$given"
    for k in "${!job_tessera[@]}"; do
        [ ! -f "${job_tessera[k]}" ] || job_tessera[k]=$(readlink -f "${job_tessera[k]}")
    done
    [ -n "$(command -v "${job_tessera[0]}")" ] ||
        job_fail "no program ${job_tessera[0]}; set TESSERA to the program, or to the words" \
            "that start it"
}

# Cores that this process may use. (nproc would obey OMP_NUM_THREADS.)
job_cores() {
    env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc
}

# Sets job_tasks, job_per_node (ranks on the first node) and job_threads (of a rank).
job_layout() {
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        job_tasks=${SLURM_NTASKS:-1}
        job_per_node=${SLURM_TASKS_PER_NODE:-1} # like 8(x2),7
        job_per_node=${job_per_node%%[!0-9]*}
        job_threads=${SLURM_CPUS_PER_TASK:-1}
    elif [ -n "${PBS_NODEFILE:-}" ]; then # a line for each rank
        job_tasks=$(grep -c . "$PBS_NODEFILE")
        job_per_node=$(grep -cxF "$(head -n 1 "$PBS_NODEFILE")" "$PBS_NODEFILE")
        job_threads=${OMP_NUM_THREADS:-1}
    else
        job_tasks=1 job_per_node=1 job_threads=$(job_cores)
    fi
    export OMP_NUM_THREADS=$job_threads
}

# When the job will be ended [s since 1970], which tessera looks at: older Slurm (22.05)
# does not tell its jobs.
job_end_time() {
    local text=
    if [ -n "${SLURM_JOB_ID:-}" ] && [ -z "${SLURM_JOB_END_TIME:-}" ]; then
        text=$(squeue -h -j "$SLURM_JOB_ID" -o %e 2>/dev/null | head -n 1)
        text=$(date -d "$text" +%s 2>/dev/null) || return 0
        export SLURM_JOB_END_TIME=$text
    fi
}

job_has_openmpi() {
    mpirun --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE\|PRRTE'
}

# The PMI by which srun and the MPI library that mpirun belongs to understand each other.
job_pmi() {
    local wanted='pmi2 pmix' offered kind
    ! job_has_openmpi || wanted=pmix
    offered=$(srun --mpi=list 2>&1) || return 0
    for kind in $wanted; do
        if grep -qw "$kind" <<<"$offered"; then
            echo "$kind"
            return 0
        fi
    done
}

# Sets job_launch, the words before the command of a rank. Ranks in turn fill a node
# core by core, each with as many as it has threads.
job_launcher() {
    local launch=${TESSERA_LAUNCH:-} bind=${TESSERA_BIND:-} pmi=''
    [ -z "${SLURM_JOB_ID:-}" ] || pmi=$(job_pmi)
    if [ -z "$launch" ]; then
        launch=mpirun
        [ -z "$pmi" ] || launch=srun
    fi
    if [ -z "$bind" ]; then
        bind=cores
        [ $((job_per_node * job_threads)) -le "$(job_cores)" ] || bind=none
    fi
    case $launch in
    srun)
        job_launch=(srun "--mpi=${pmi:-pmix}" "--ntasks=$job_tasks"
            "--cpus-per-task=$job_threads" --kill-on-bad-exit=1)
        # Without a plugin that binds, asking for it is answered with a warning.
        if scontrol show config | grep -q '^TaskPlugin .*\(affinity\|cgroup\)'; then
            job_launch+=(--distribution=block:block "--cpu-bind=$bind")
        fi
        ;;
    mpirun)
        job_launch=(mpirun -n "$job_tasks")
        if job_has_openmpi; then
            job_launch+=(-x OMP_NUM_THREADS)
            [ -z "${SLURM_JOB_END_TIME:-}" ] || job_launch+=(-x SLURM_JOB_END_TIME)
            if [ "$bind" = cores ]; then
                job_launch+=(--map-by "ppr:$job_per_node:node:PE=$job_threads"
                    --bind-to core)
            else
                job_launch+=(--map-by "ppr:$job_per_node:node" --bind-to none
                    --oversubscribe)
            fi
        fi
        ;;
    none) job_launch=() ;;
    *) job_fail "TESSERA_LAUNCH=$launch; it is srun, mpirun or none" ;;
    esac
}

# What each rank does first: ranks of the first node say which cores they may use. A
# signal that comes before tessera has started is lost, instead of its end.
# shellcheck disable=SC2016
job_rank='trap "" USR1
first=$1 rank=${PMIX_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}
shift
if [ "$rank" -lt "$first" ]; then
    cores=$(sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status)
    echo "job: rank $rank on $(uname -n): cores $cores"
fi
exec "$@"'

# job_run COMMAND...: by the launcher. Returns the command's status, or 75 when the
# signal to stop came before.
job_run() {
    local status=127 now
    [ $job_told = no ] || return 75
    "${job_launch[@]}" bash -c "$job_rank" rank "$job_per_node" "$@" &
    job_pid=$!
    while :; do # a trap ends wait
        job_told=no
        wait "$job_pid"
        now=$?
        [ $now -eq 127 ] || status=$now # 127: it had been waited for
        [ $job_told = yes ] || break
    done
    return $status
}

# job_saved FOLDER: tells one checkpoint from another.
job_saved() {
    cksum "$1/checkpoint" 2>/dev/null || :
}

# Was the job told to stop long before its end, to make room for others?
job_is_preempted() {
    [ -n "${SLURM_JOB_END_TIME:-}" ] &&
        [ $((SLURM_JOB_END_TIME - $(date +%s))) -gt 900 ]
}

# job_is_idle FOLDER SAVED-BEFORE: has this turn saved nothing, like the one before it?
# Once may be that it was cut short; twice, that turns are too short for a part of the work.
job_is_idle() {
    local mark=$1.idle saved
    saved=$(job_saved "$1")
    [ "$saved" = "$2" ] && ! job_is_preempted || return 1
    if [ "$(cat "$mark" 2>/dev/null)" = "$saved" ]; then
        rm -f "$mark"
        return 0
    fi
    printf '%s\n' "$saved" >"$mark"
    return 1
}

# Status 75: have the scheduler run this job once more, under its number in Slurm.
# Arguments as of job_is_idle.
job_again() {
    local restarts=${SLURM_RESTART_COUNT:-${TESSERA_RESTARTED:-0}}
    if job_is_idle "$@"; then
        job_say 'not finished, and two turns have saved nothing: reading the data once, or' \
            'one batch of planes, takes longer than a turn; submit it again with more' \
            'time, ranks or memory to go on'
    elif [ "$restarts" -ge "${TESSERA_RESTARTS:-100}" ]; then
        job_say "not finished after $restarts restarts; submit it again to go on"
    elif [ -n "${SLURM_JOB_ID:-}" ]; then
        job_say 'not finished: the job is queued again'
        scontrol requeue "$SLURM_JOB_ID"
    elif [ -n "${TESSERA_SCRIPT:-}" ]; then # jobs of PBS cannot queue themselves
        job_say 'not finished: the job is submitted again'
        # a list with commas in it is quoted for qsub
        qsub -v "TESSERA_RESTARTED=$((restarts + 1))${TESS_FORCE:+,TESS_FORCE=\"$TESS_FORCE\"}" \
            "$TESSERA_SCRIPT"
    else
        job_say 'not finished; the same command goes on'
    fi
}

# job_option NAME-REGEX WORDS...: the value of the last option whose name matches.
job_option() {
    local names=$1 value='' word
    shift
    while [ $# -gt 0 ]; do
        word=$1
        shift
        if [[ $word =~ ^($names)$ ]]; then
            value=${1:-}
        elif [[ $word =~ ^($names)=(.*)$ ]]; then
            value=${BASH_REMATCH[2]}
        fi
    done
    printf '%s' "$value"
}

# job_image OBS... -o NAME OPTION...: `tessera image`, with checkpoints in NAME.saved, so
# that it goes on when it was run before. Exits.
job_image() {
    local command name saved before status=0
    job_program tessera
    command=("${job_tessera[@]}" image "$@")
    name=$(job_option '-o|--output' "$@")
    saved=$(job_option --checkpoint "$@")
    if [ -z "$saved" ]; then
        saved=${name:-tessera-${SLURM_JOB_ID:-}}.saved
        command+=(--checkpoint "$saved")
    fi
    saved=${saved%/}
    command+=(--checkpoint-every "${TESSERA_SAVE:-10min}" --resume)
    [ -z "${TESSERA_MAX_TIME:-}" ] || command+=(--max-time "$TESSERA_MAX_TIME")
    job_layout
    job_end_time
    job_launcher
    job_say "$("${job_tessera[@]}" --version 2>/dev/null | head -n 1)"
    job_say "$job_tasks ranks of $job_threads threads, $job_per_node on $(uname -n)," \
        "restart ${SLURM_RESTART_COUNT:-${TESSERA_RESTARTED:-0}}"
    job_say "${job_launch[*]} ${command[*]}"
    before=$(job_saved "$saved")
    job_run "${command[@]}" || status=$?
    job_say "$(date '+%F %T'): status $status"
    if [ $status -eq 75 ]; then
        job_again "$saved" "$before"
    else
        rm -f "$saved.idle"
    fi
    exit $status
}

# job_array_image WHICH OBS... -o NAME OPTION...: this task's part of an array of images.
# WHICH is channels:TOTAL:PARTS (images are named as --channels-out PARTS would name
# them: NAME-0000-dirty.fits) or fields:F,G,... (NAME-F-dirty.fits). Exits.
job_array_image() {
    local task=${SLURM_ARRAY_TASK_ID:-0} part names which=$1 name
    shift
    name=$(job_option '-o|--output' "$@")
    [ -n "$name" ] || job_fail 'an array needs -o NAME'
    IFS=: read -ra part <<<"$which"
    case $which in
    channels:*:*)
        job_image "$@" -o "$name-$(printf %04d "$task")" --channels \
            "$((part[1] * task / part[2])):$((part[1] * (task + 1) / part[2]))"
        ;;
    fields:?*)
        IFS=, read -ra names <<<"${part[1]}"
        [ -n "${names[task]:-}" ] || job_fail "no field for task $task of $which"
        job_image "$@" -o "$name-${names[task]}" --field "${names[task]}"
        ;;
    *) job_fail "'$which' is neither channels:TOTAL:PARTS nor fields:F,G,..." ;;
    esac
}
