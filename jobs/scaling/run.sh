#!/usr/bin/env bash
# Strong and weak scaling of `tessera image` over ranks x threads, timed by the
# program's own clock after MPI_Init and as wall time, several times in alternating
# order; then the pictures and report.md.
#
#   bash jobs/scaling/run.sh --out FOLDER [options]     --help lists them
#   bash jobs/scaling/run.sh --out out/scaling --visibilities 2e6 --repeat 3
#   bash jobs/scaling/run.sh --out out/scaling --obs my.ms --size 8192 --scale 1.5asec
#
# Inside a Slurm job the runs are started by srun, else by mpirun. TESS_BIN names the
# program (default build/bin/tessera, else the one on PATH), PYTHON the Python with numpy
# (matplotlib for the pictures). What FOLDER already holds is not measured again: an
# interrupted study goes on where it was.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=
for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
    if [ -z "$python" ] && "$candidate" -c 'import numpy' 2>/dev/null; then
        python=$candidate
    fi
done
if [ -z "$python" ]; then
    echo "run.sh: no Python with numpy: set PYTHON" >&2
    exit 2
fi
case " $* " in *" --help "* | *" -h "*) exec "$python" "$here/measure.py" --help ;; esac

# Open MPI refuses root otherwise.
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if [ -z "${TESS_BIN:-}" ]; then
    TESS_BIN=$here/../../build/bin/tessera
    [ -x "$TESS_BIN" ] || TESS_BIN=$(command -v tessera) || {
        echo "run.sh: no tessera: build it, or set TESS_BIN" >&2
        exit 2
    }
fi
export TESS_BIN
if [ -n "${SLURM_JOB_ID:-}" ]; then
    # The PMI that srun and the MPI library share; without one, mpirun starts the runs.
    # shellcheck source=jobs/job.sh disable=SC1091
    TESS_PMI=$(. "$here/../job.sh" && job_pmi)
    export TESS_PMI
fi

"$TESS_BIN" --version
"$python" "$here/measure.py" "$@"

out=
for word in "$@"; do
    case $word in --out=*) out=${word#--out=} ;; esac
    [ "${previous:-}" = --out ] && out=$word
    previous=$word
done
if "$python" -c 'import matplotlib' 2>/dev/null; then
    "$python" "$here/plot.py" "$out"
else
    echo "run.sh: no matplotlib: $out/report.md comes without pictures" >&2
fi
"$python" "$here/report.py" "$out"
