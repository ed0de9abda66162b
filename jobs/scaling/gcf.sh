#!/usr/bin/env bash
# The tables of the field's studies of gridding with tabulated convolution functions,
# measured on this machine: CSV, report.md and plots in FOLDER.
#
#   bash jobs/scaling/gcf.sh --out FOLDER [options of tessera bench gcf]
#   bash jobs/scaling/gcf.sh --out out/gcf --backend cuda --within 20
#   bash jobs/scaling/gcf.sh --out out/gcf --study sets --strategy tiled
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
study=--study=all
for word in "$@"; do
    case $word in --study | --study=*) study= ;; esac
done
# shellcheck disable=SC2086 # nothing, or one word
exec "$TESS_BIN" bench gcf $study "$@"
