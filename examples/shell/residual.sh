#!/usr/bin/env bash
# Images an observation, predicts the visibilities of a model, and images the residual.
#
#   residual.sh OBS.uvfits MODEL.fits SIZE SCALE NAME
#
# An outside CLEAN does the same in each of its major cycles: it makes a model from the
# residual image and has tessera subtract the model from the data.
set -eu
obs=$1 model=$2 size=$3 scale=$4 name=$5
tessera image "$obs" -o "$name" --size "$size" --scale "$scale"
tessera predict "$obs" --model "$model" -o "$name-model.uvfits"
tessera image "$name-model.uvfits" -o "$name-model" --size "$size" --scale "$scale" --no-psf
tessera image "$obs" -o "$name-residual" --size "$size" --scale "$scale" --no-psf \
    --subtract "$model"
