#!/usr/bin/env bash
# From a fresh machine to a first image: installs what is missing (Debian, Ubuntu),
# builds the program without its tests, simulates a MeerKAT observation of eight point and
# two extended sources, images and cleans it on four MPI ranks, and compares what is found
# with what was put in.
#
#   bash jobs/quickstart.sh [FOLDER]      results go to FOLDER, default out/quickstart
set -eu
cd "$(dirname "$0")/.."
. tests/setup.sh
folder=${1:-out/quickstart}
name=$folder/meerkat

tess_setup_build
tess_say "building in build/"
tess_build build -DCMAKE_BUILD_TYPE=Release -DTESS_TESTS=OFF
tessera=build/bin/tessera
mkdir -p "$folder"

# Half an hour before to half an hour after transit of right ascension 4h.
tess_say "simulating a MeerKAT observation (64 antennas, 1 hour, 16 channels)"
$tessera simulate --layout meerkat --sky jobs/quickstart-sky.csv \
    --ra 60deg --dec=-30deg --start 2026-01-01T19:23:00 --duration 1h \
    --integration 30s --freq 1.28GHz --chan-width 4MHz --channels 16 --pol XX,YY \
    --noise 1Jy --overwrite -o "$name.uvfits"

tess_say "imaging and cleaning it with mpirun -n 4"
mpirun -n 4 $tessera image "$name.uvfits" --size 1024 --scale 1.5asec \
    --weight briggs:0 --niter 100000 --auto-threshold 3 --auto-mask 5 --multiscale \
    --preview --overwrite -o "$name"

tess_say "true sources, and those of the restored image"
python3 jobs/compare_sources.py jobs/quickstart-sky.csv "$name" --cleaned

tess_say "results"
for file in "$name.uvfits" "$name"-*.fits "$name"-*.png; do
    readlink -f "$file"
done
