#!/usr/bin/env bash
# Installs what the library is built of in an image of manylinux (AlmaLinux with EPEL), for
# cibuildwheel; on Debian and Ubuntu by their names.
set -eu
if command -v dnf >/dev/null; then
    dnf install -y epel-release
    dnf config-manager --set-enabled powertools || dnf config-manager --set-enabled crb
    dnf install -y fftw-devel cfitsio-devel erfa-devel jansson-devel libpng-devel \
        cminpack-devel hdf5-devel
    # MeasurementSets, where the distribution has casacore
    dnf install -y casacore-devel || echo "no casacore: without MeasurementSets"
else
    apt-get update
    apt-get install -y --no-install-recommends build-essential pkg-config libfftw3-dev \
        libcfitsio-dev casacore-dev liberfa-dev libjansson-dev libpng-dev libcminpack-dev \
        libhdf5-dev
fi
