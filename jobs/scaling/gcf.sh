#!/usr/bin/env bash
# The tables of the field's studies of gridding with tabulated convolution functions,
# measured on this machine: CSV, report.md and plots in FOLDER.
#
#   bash jobs/scaling/gcf.sh --out FOLDER [--ncu SECONDS] [options of tessera bench gcf]
#   bash jobs/scaling/gcf.sh --out out/gcf --backend cuda --within 20
#   bash jobs/scaling/gcf.sh --out out/gcf --study sets --strategy tiled
#
# --ncu: for so long, Nsight Compute looks at the lines of the tables once
# more, which then tell what limits each strategy, and hit rates of caches.
#
# TESS_BIN names the program (default build/bin/tessera, else the one on PATH),
# TESS_PYTHON the Python with matplotlib.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${TESS_BIN:-}" ]; then
    TESS_BIN=$here/../../build/bin/tessera
    [ -x "$TESS_BIN" ] || TESS_BIN=$(command -v tessera) || {
        echo "gcf.sh: no tessera: build it, or set TESS_BIN" >&2
        exit 2
    }
fi
study=--study=all ncu= out= before=
declare -a options=()
for word in "$@"; do
    case $before in
    --ncu) ncu=$word before= && continue ;;
    --out) out=$word ;;
    esac
    before=$word
    case $word in
    --ncu) continue ;;
    --ncu=*) ncu=${word#*=} && continue ;;
    --out=*) out=${word#*=} ;;
    --study | --study=*) study= ;;
    esac
    options+=("$word")
done
# shellcheck disable=SC2086 # nothing, or one word
"$TESS_BIN" bench gcf $study "${options[@]}"
[ -z "$ncu" ] || "${TESS_PYTHON:-python3}" "$here/../../tests/bench/gcf_ncu.py" \
    --tessera "$TESS_BIN" --study "$out" --seconds "$ncu"
