#!/usr/bin/env bash
# Submits `tessera image` as a batch job whose nodes, ranks, threads, memory and time it
# finds with `tessera plan`.
#
#   jobs/submit.sh [OPTION...] OBS... -o NAME --size ... --scale ...
#
# Options, which come first; all that follows is for tessera image:
#   -n, --dry-run         print the script, do not submit it
#   --scheduler slurm|pbs (default: the one whose commands are there)
#   --array channels:N    an array of N images of as many groups of channels (Slurm)
#   --array fields:F,...  an array of images of these fields (Slurm)
#   --gpus N              GPU nodes: N GPUs on each, a rank for each
#   --within MINUTES      use more cores until the estimated time is below (default 30, or
#                         what fits into --time). A job of a minute gets no further ranks,
#                         and no job gets ranks that make it less than 10 % faster
#   --most-nodes N        but not more nodes than these (default 16)
#   --nodes N, --tasks N (a node), --threads N (a rank), --memory MIB (a node),
#   --time MINUTES        instead of what would be found. Threads: the fewest (1, 2, 4,
#                         ...) with which all ranks of a node fit its memory; with
#                         --tasks or --gpus all cores of the node are shared by these
#   --cores N, --node-memory MIB   what a node has (default: what the scheduler says)
#   --partition NAME      partition or queue
#   --account NAME        account that is charged
#   --qos NAME            quality of service (Slurm)
#   --extra OPTION        any further option of sbatch or qsub; may be repeated
#   -h, --help
#
# The script is kept as NAME.job. $TESSERA is the program, or the words that start it, like
# "apptainer exec tessera.sif tessera" (default: tessera of $PATH, else of build/). It is run
# here for its plan, by mpirun where there is one.
# shellcheck disable=SC2034  # values are set and read by name
set -u
jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2
. "$jobs/job.sh" || exit 2
trap - USR1 TERM

# Ranks that are run here for a plan at most; more are planned as so many with more threads.
most_planned=32
# A job is given this much more time than estimated, and minutes to start and end.
more_time=1.5 more_minutes=10
# How long cleaning takes is guessed within a factor of two.
guess_time=3
# tessera plans for 85 % of the memory it is given, and estimates within 15 %.
more_memory=1.4
# With so much, samples of any share of it are kept instead of read again.
ample_memory=3
# Host memory of a rank that CUDA and its libraries take up [MiB].
cuda_memory=2048
# So many cores are not counted: a job gets them unless it takes less than so long without [s].
few_cores=8 short_job=60
# More cores that leave so much of the time are of no use.
no_gain=.9

dry_run=no scheduler='' array='' gpus='' within='' most_nodes=16
nodes='' tasks='' threads='' memory='' minutes='' cores='' node_memory='' partition=''
account='' qos=''
extra=()

usage() {
    sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
}

read_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        -n | --dry-run) dry_run=yes ;;
        --scheduler | --array | --gpus | --within | --most-nodes | --nodes | --tasks | \
            --threads | --memory | --cores | --node-memory | --partition | --account | \
            --qos)
            [ $# -gt 1 ] || job_fail "$1 needs a value"
            local variable=${1#--}
            printf -v "${variable//-/_}" %s "$2"
            shift
            ;;
        --time)
            minutes=${2:-}
            shift
            ;;
        --extra)
            extra+=("${2:-}")
            shift
            ;;
        --)
            shift
            break
            ;;
        *) break ;;
        esac
        shift
    done
    image=("$@")
    refuse_own_options
    local number
    for number in "${gpus:-1}" "${within:-1}" "$most_nodes" "${nodes:-1}" "${tasks:-1}" \
        "${threads:-1}" "${memory:-1}" "${minutes:-1}" "${cores:-1}" "${node_memory:-1}"; do
        [[ $number =~ ^[1-9][0-9]*$ ]] || job_fail "'$number' is not a positive number"
    done
}

# Refuses options of this script behind a word that is none, like a misspelt one: they
# would go to tessera image.
refuse_own_options() {
    local word
    for word in ${image[@]+"${image[@]}"}; do
        case $word in
        --) return 0 ;;
        --scheduler | --array | --gpus | --within | --most-nodes | --nodes | --tasks | \
            --cores | --node-memory | --partition | --account | --qos | --time | --extra | \
            --dry-run)
            job_fail "$word of submit.sh comes behind '${image[0]}', which begins what is" \
                "for tessera image; options of submit.sh come first"
            ;;
        esac
    done
}

# Fills missing: what has to be given and is not, for one message about all of it.
find_missing() {
    missing=()
    name=$(job_option '-o|--out|--outp|--outpu|--output' ${image[@]+"${image[@]}"})
    # a file of options may have the others
    if [ -z "$(job_option --config ${image[@]+"${image[@]}"})" ]; then
        [ -n "$(first_observation)$(first_plain_word)" ] || missing+=('an observation')
        [ -n "$(job_option '--si|--siz|--size' ${image[@]+"${image[@]}"})" ] ||
            missing+=('--size N')
        [ -n "$(job_option '--sca|--scal|--scale' ${image[@]+"${image[@]}"})" ] ||
            missing+=('--scale ANGLE')
    fi
    [ -n "$name" ] || missing+=('-o NAME')
}

# The first word that is neither an option nor, as far as words tell, the value of one.
first_plain_word() {
    local word before=''
    for word in ${image[@]+"${image[@]}"}; do
        if [[ $word != -* && ($before != -* || $before == *=*) ]]; then
            printf '%s' "$word"
            return 0
        fi
        before=$word
    done
}

refuse_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    local text
    printf -v text '%s, ' "${missing[@]}"
    job_fail "missing: ${text%, }; see --help"
}

find_program() {
    job_program "$(command -v tessera || echo "$jobs/../build/bin/tessera")"
    [ ${#job_tessera[@]} -gt 1 ] ||
        job_tessera=("$(readlink -f "$(command -v "${job_tessera[0]}")")")
}

find_scheduler() {
    if [ -z "$scheduler" ]; then
        if command -v sbatch >/dev/null; then
            scheduler=slurm
        elif command -v qsub >/dev/null; then
            scheduler=pbs
        else
            missing+=('--scheduler slurm|pbs (neither sbatch nor qsub is here)')
        fi
    fi
    case $scheduler:$array in
    slurm:* | pbs: | :*) ;;
    pbs:*) job_fail 'arrays are there for Slurm only' ;;
    *) job_fail "--scheduler $scheduler; it is slurm or pbs" ;;
    esac
}

# Minutes of Slurm's [DAYS-]HOURS:MINUTES:SECONDS or MINUTES:SECONDS; no limit: none.
slurm_minutes() {
    awk -v t="$1" 'BEGIN {
        days = 0
        if (split(t, d, "-") == 2) { days = d[1]; t = d[2] }
        n = split(t, p, ":")
        if (t ~ /^[0-9:]+$/) print days * 1440 + (n == 3 ? p[1] * 60 + p[2] : p[1])
    }'
}

# Fills cores, node_memory and longest (minutes) from what the scheduler says of the
# partition's most frequent kind of node.
find_nodes() {
    local found='' found_cores='' found_memory='' found_nodes='' limit=''
    longest=''
    if [ "$scheduler" = slurm ] && command -v sinfo >/dev/null; then
        found=$(sinfo -h -e ${partition:+-p "$partition"} -o '%D %P %c %m %l' 2>/dev/null |
            awk -v any="$partition" 'any != "" || $2 ~ /\*$/' | sort -rn | head -n 1)
        read -r found_nodes _ found_cores found_memory limit <<<"$found"
        found_cores=${found_cores%+} found_memory=${found_memory%+}
        longest=$(slurm_minutes "$limit")
        [ -z "$found_nodes" ] || [ "$found_nodes" -ge "$most_nodes" ] ||
            most_nodes=$found_nodes
    elif [ "$scheduler" = pbs ] && command -v pbsnodes >/dev/null; then
        read -r found_cores found_memory < <(pbsnodes -a | awk '
            /resources_available.ncpus =/ && $3 > cpus { cpus = $3 }
            /resources_available.mem =/ && $3 + 0 > kb { kb = $3 + 0 }
            END { print cpus, int(kb / 1024) }')
    fi
    cores=${cores:-$found_cores} node_memory=${node_memory:-$found_memory}
    [ -n "$cores" ] || missing+=('--cores N (of a node, of which no scheduler tells)')
    [ -n "$node_memory" ] ||
        missing+=('--node-memory MIB (of a node, of which no scheduler tells)')
}

# tessera plan's own arguments: those of an array's first task. Jobs for GPUs, which are
# seldom where jobs are submitted, are planned as if they were for CPUs.
plan_arguments() {
    local part
    planned=("${image[@]}")
    array_spec='' array_tasks=0
    IFS=: read -ra part <<<"$array"
    case $array in
    '') ;;
    channels:[1-9]*)
        local channels
        channels=$("${job_tessera[@]}" info --json "$(first_observation)" |
            sed -n 's/^ *"channels": \([0-9]*\),*/\1/p' | sort -n | tail -n 1)
        array_tasks=${part[1]}
        [ "${channels:-0}" -ge "$array_tasks" ] ||
            job_fail "--array $array: there are ${channels:-no} channels"
        array_spec=channels:$channels:$array_tasks
        planned+=(--channels "0:$(((channels + array_tasks - 1) / array_tasks))")
        ;;
    fields:?*)
        array_spec=$array
        array_tasks=$(tr , '\n' <<<"${part[1]}" | grep -c .)
        planned+=(--field "${part[1]%%,*}")
        ;;
    *) job_fail "--array $array; it is channels:N or fields:F,G,..." ;;
    esac
}

# The first word that exists as a file or folder, which options come after or before.
first_observation() {
    local word
    for word in ${image[@]+"${image[@]}"}; do
        if [ -e "$word" ]; then
            printf '%s' "$word"
            return 0
        fi
    done
}

# plan RANKS THREADS NODES MIB: sets plan_seconds and plan_memory (MiB of a node) of a run
# on so many ranks in all, where a node has so much memory. Fails where it does not fit.
# Of ranks that are planned as fewer, samples are a smaller share each, the rest is not;
# how many of the samples are there at the peak is not known: half are left out.
plan() {
    local ranks=$1 threads=$2 text launch=() peak samples most=$most_planned
    command -v mpirun >/dev/null || most=1
    if [ "$ranks" -gt "$most" ]; then
        threads=$((threads * ranks / most)) ranks=$most
    fi
    if [ "$ranks" -gt 1 ]; then
        launch=(mpirun -n "$ranks")
        ! job_has_openmpi || launch+=(--oversubscribe --bind-to none)
    fi
    # Run here, all ranks are on one node; the job's memory and end are of no concern.
    text=$(env -u SLURM_JOB_END_TIME "${launch[@]}" "${job_tessera[@]}" plan \
        "${planned[@]}" --threads "$threads" --memory "$(($4 * $3))MiB" 2>"$errors") ||
        return
    plan_seconds=$(sed -n 's/^time  *about \([^ ]*\) s:.*/\1/p' <<<"$text")
    ! grep -q '^guess ' <<<"$text" || more_time=$guess_time
    peak=$(sed -n 's/^memory a rank about \([0-9]*\) MiB.*/\1/p' <<<"$text")
    samples=$(sed -n 's/^memory a rank .* \([0-9]*\) MiB samples.*/\1/p' <<<"$text")
    plan_memory=$(calculate "($peak * $1 - $samples / 2 * ($1 - $ranks)) / $3")
    job_say "plan: $1 ranks x $2 threads: $plan_seconds s, $plan_memory MiB a node" >&2
}

# tessera's own line, rather than the launcher's about it.
plan_failed() {
    grep '^tessera:' "$errors" >&2 || cat "$errors" >&2
    exit "$1"
}

# A whole number, rounded up.
calculate() {
    awk "BEGIN { x = $1; print x == int(x) ? x : int(x) + 1 }"
}

holds() {
    awk "BEGIN { exit !($1) }"
}

# Fills choices: threads of a rank to be tried. Few are best: ranks of one thread share no
# memory that is far from some of their cores, and do what one thread does at a time at once.
# But each rank has planes and buffers of its own.
thread_choices() {
    local count
    [ -z "$gpus" ] || tasks=${tasks:-$gpus}
    [ -z "$tasks" ] || threads=${threads:-$((cores / tasks))}
    choices=()
    for ((count = 1; count <= cores; count *= 2)); do
        choices+=("$count")
    done
    [ -z "$threads" ] || choices=("$threads")
    if [ "${choices[0]:-0}" -lt 1 ] || [ $((choices[0] * ${tasks:-1})) -gt "$cores" ]; then
        job_fail "${tasks:-1} ranks of ${choices[0]:-1} threads on nodes of $cores cores"
    fi
}

# Fills within: minutes that a job may be estimated to take.
find_within() {
    [ -z "$within" ] || return 0
    within=30
    if [ -n "$minutes" ]; then
        within=$(awk "BEGIN { print int(($minutes - $more_minutes) / $more_time) }")
        [ "$within" -ge 1 ] || within=1
    fi
}

# A layout that would do, of one rank or more, and back to it.
keep_layout() {
    kept=("$plan_seconds" "$plan_memory" "$job_nodes" "$job_tasks" "$threads" "$busy")
}
take_kept() {
    plan_seconds=${kept[0]} plan_memory=${kept[1]} job_nodes=${kept[2]}
    job_tasks=${kept[3]} threads=${kept[4]} busy=${kept[5]}
}

# How many cores are used, on how many nodes: one if that is a short job, else more until
# the time is short enough and the memory suffices, or more are of no use.
find_layout() {
    local busy status
    kept=()
    thread_choices
    few=$((cores < few_cores ? cores : few_cores))
    busy=1
    [ -z "$tasks" ] || busy=$cores
    [ -z "$nodes" ] || busy=$((nodes * cores))
    while :; do
        choose_threads "$busy"
        status=$?
        if [ $status -eq 0 ] && fits; then
            if [ ${#kept[@]} -gt 0 ] && holds "$plan_seconds > $no_gain * ${kept[0]}"; then
                take_kept
                fewer_cores
                return 0
            fi
            keep_layout
            if [ -n "$nodes" ] || is_short "$busy"; then
                fewer_cores
                return 0
            fi
        fi
        if [ -n "$nodes" ] || [ "$busy" -ge $((most_nodes * cores)) ]; then
            [ $status -eq 0 ] && return 0
            plan_failed $status
        fi
        more_cores $status
    done
}

# Half as many cores where they take hardly longer: some were of no use.
fewer_cores() {
    while [ -z "$tasks$nodes" ] && [ "$busy" -gt 1 ]; do
        busy=$((busy / 2))
        [ "$busy" -le "$cores" ] || busy=$(((busy + cores - 1) / cores * cores))
        if [ "$busy" -lt "${kept[5]}" ] && choose_threads "$busy" && fits &&
            holds "$no_gain * $plan_seconds < ${kept[0]}"; then
            keep_layout
        else
            break
        fi
    done
    take_kept
}

# Whether a job on so many cores ends soon enough.
is_short() {
    holds "$plan_seconds <= $short_job" ||
        { [ "$1" -ge "$few" ] && holds "$plan_seconds <= 60 * $within"; }
}

# Plans ranks on so many cores, with the fewest threads that fit the nodes' memory, else
# the most: ranks of many threads take the least. Sets threads, job_nodes and job_tasks.
choose_threads() {
    local status
    for threads in "${choices[@]}"; do
        spread "$1"
        plan $((job_nodes * job_tasks)) "$threads" "$job_nodes" "$node_memory"
        status=$?
        if [ $status -ne 0 ] && [ $status -ne 4 ]; then
            plan_failed $status
        fi
        [ $status -ne 0 ] || ! fits || break
    done
    return $status
}

# Whether a node has what was planned, with some to spare.
fits() {
    holds "$more_memory * $plan_memory <= $node_memory"
}

# Ranks of $threads on so many cores; sets job_nodes and job_tasks of each.
spread() {
    local most=${tasks:-$((cores / threads))}
    job_nodes=${nodes:-$((($1 + cores - 1) / cores))}
    job_tasks=$most
    if [ "$job_nodes" -eq 1 ] && [ -z "$tasks$nodes" ]; then
        job_tasks=$(($1 < threads ? 1 : $1 / threads))
    fi
}

# At least twice as many as before, or as many as are missing; whole nodes if several.
more_cores() {
    local factor=2 most=$((most_nodes * cores)) wanted=$((60 * within))
    if [ "$busy" -lt "$few" ]; then
        most=$few wanted=$short_job
    fi
    [ "$1" -ne 0 ] || factor=$(calculate "$plan_seconds / $wanted")
    [ "$factor" -ge 2 ] || factor=2
    busy=$((busy * factor))
    [ "$busy" -le "$cores" ] || busy=$(((busy + cores - 1) / cores * cores))
    [ "$busy" -le "$most" ] || busy=$most
}

# Memory of a node: enough, and more where data would otherwise be read again and again.
find_memory() {
    local seconds=$plan_seconds mib=$plan_memory ranks=$((job_nodes * job_tasks))
    [ -z "$memory" ] || return 0
    memory=$(calculate "$more_memory * $mib")
    if [ "$memory" -gt "$node_memory" ]; then
        memory=$node_memory
    elif ! plan "$ranks" "$threads" "$job_nodes" "$memory" ||
        holds "$plan_seconds > 1.1 * $seconds"; then
        memory=$(calculate "$ample_memory * $mib")
        [ "$memory" -le "$node_memory" ] || memory=$node_memory
    fi
    plan_seconds=$seconds
    [ -z "$gpus" ] || memory=$((memory + cuda_memory * job_tasks))
}

find_time() {
    [ -n "$minutes" ] ||
        minutes=$(calculate "$more_time * $plan_seconds / 60 + $more_minutes")
    if [ -n "$longest" ] && [ "$minutes" -gt "$longest" ]; then
        minutes=$longest
    fi
}

# fill OPTION VALUE: in lines like `#SBATCH --nodes=1`.
fill() {
    edits+=(-e "s|^\(#SBATCH --$1=\).*|\1$2|")
}

slurm_script() {
    local template=slurm-cpu.sh edits=() option further='' what=("${image[@]}")
    if [ -n "$array" ]; then
        template=slurm-array.sh what=("$array_spec" "${image[@]}")
        [ -z "$gpus" ] || what+=(--backend cuda)
    elif [ -n "$gpus" ]; then
        template=slurm-gpu.sh
    fi
    fill job-name "$job_name"
    fill nodes "$job_nodes"
    fill ntasks-per-node "$job_tasks"
    fill cpus-per-task "$threads"
    fill gpus-per-node "$gpus"
    fill mem "${memory}M"
    fill time "$minutes"
    fill array "0-$((array_tasks - 1))"
    [ -z "$gpus" ] || [ -z "$array" ] || extra+=("--gpus-per-node=$gpus")
    [ -z "$partition" ] || extra+=("--partition=$partition")
    [ -z "$account" ] || extra+=("--account=$account")
    [ -z "$qos" ] || extra+=("--qos=$qos")
    for option in ${extra[@]+"${extra[@]}"}; do
        further+="#SBATCH $option"$'\n'
    done
    sed "${edits[@]}" "$jobs/$template" | put_in "$further" "${what[@]}"
}

pbs_script() {
    local select further='' option edits=()
    select=select=$job_nodes:ncpus=$((job_tasks * threads)):mpiprocs=$job_tasks
    select+=:ompthreads=$threads:mem=${memory}mb
    [ -z "$gpus" ] || select+=:ngpus=$gpus
    [ -z "$partition" ] || extra+=("-q $partition")
    [ -z "$account" ] || extra+=("-A $account")
    [ -z "$qos" ] || job_fail '--qos is of Slurm; give --extra with the option of your PBS'
    for option in ${extra[@]+"${extra[@]}"}; do
        further+="#PBS $option"$'\n'
    done
    edits=(-e "s|^#PBS -N .*|#PBS -N $job_name|"
        -e "s|^#PBS -l select=.*|#PBS -l $select|"
        -e "s|^#PBS -l walltime=.*|#PBS -l walltime=$(printf '%02d:%02d:00' \
            $((minutes / 60)) $((minutes % 60)))|"
        -e '/^TESSERA_JOBS=/d' -e '/^TESSERA_SCRIPT=/d' -e '/^set -- /d')
    [ -z "$gpus" ] || image+=(--backend cuda)
    sed "${edits[@]}" "$jobs/pbs.sh" | put_in "$further" "${image[@]}"
}

# The template with further directives, and with what the job needs to know set before
# the shared part is read. Its own comment gives way to how this came about.
put_in() {
    local further=$1 settings
    shift
    settings="export TESSERA=$(printf %q "${job_tessera[*]}")"$'\n'
    settings+="TESSERA_JOBS=$(printf %q "$jobs")"$'\n'
    settings+="TESSERA_SCRIPT=$(printf %q "$script")"$'\n'
    settings+="set --$(printf ' %q' "$@")"$'\n'
    FURTHER=$further SETTINGS=$settings awk '
        NR > 1 && /^#( |$)/ { next }
        NR == 2 || (!told && NR > 1) {
            print "# By jobs/submit.sh, for what `tessera plan` estimated."
            told = 1
        }
        !directives && seen && !/^#(SBATCH|PBS)/ {
            printf "%s", ENVIRON["FURTHER"]
            directives = 1
        }
        /^\. "/ { printf "%s", ENVIRON["SETTINGS"] }
        /^#(SBATCH|PBS)/ { seen = 1 }
        { print }'
}

main() {
    read_options "$@"
    find_missing
    find_program
    find_scheduler
    find_nodes
    refuse_missing
    find_within
    job_name=$(basename "$name" | tr -c 'A-Za-z0-9._\n-' _)
    script=$(readlink -f "$(dirname "$name")")/$(basename "$name").job
    errors=$(mktemp) || exit 1
    trap 'rm -f "$errors"' EXIT
    plan_arguments
    find_layout
    find_memory
    find_time
    if [ $dry_run = yes ]; then
        "${scheduler}_script"
        return
    fi
    "${scheduler}_script" >"$script" || return
    job_say "$script: $job_nodes nodes x $job_tasks ranks x $threads threads," \
        "$memory MiB a node, $minutes min"
    case $scheduler in
    slurm) sbatch "$script" ;;
    pbs) qsub "$script" ;;
    esac
}
main "$@"
