#!/usr/bin/env bash
# Images an observation in four output channels on two ranks, and compares the mean with
# that of one rank.
#
#   cube.sh OBS SIZE SCALE NAME
set -eu
obs=$1 size=$2 scale=$3 name=$4
mpirun -n 2 tessera image "$obs" -o "$name" --size "$size" --scale "$scale" --channels-out 4
tessera image "$obs" -o "$name-1" --size "$size" --scale "$scale" --channels-out 4
tessera compare "$name-MFS-dirty.fits" "$name-1-MFS-dirty.fits" --rtol 1e-4
