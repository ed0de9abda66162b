# Installs what building and testing need on Debian and Ubuntu; sourced by
# tests/run.sh and jobs/quickstart.sh. Says what it does, and uses sudo only when not
# root. Elsewhere it lists what is needed and goes on with what is there.

TESS_BUILD_PACKAGES="build-essential cmake ninja-build pkg-config openmpi-bin \
libopenmpi-dev libfftw3-dev libcfitsio-dev casacore-dev liberfa-dev libjansson-dev \
libpng-dev libcminpack-dev libhdf5-dev python3"
TESS_TEST_PACKAGES="libcmocka-dev python3-numpy python3-astropy python3-venv"
# Peers that some tests compare with, a module system that loads what is installed, a batch
# system to submit jobs to, and what makes a bare machine, or several nodes of one; those tests
# are skipped without them. (pyuvdata and xradio are others, and CASA and DP3, which bring 2 GB: tess_setup_data and
# tess_setup_casa below.) Fuzzers need clang.
TESS_PEER_PACKAGES="wsclean casacore-tools python3-casacore casacore-data-observatories \
fitsverify environment-modules slurm-wlm munge shellcheck libmemkind0 clang \
libclang-rt-dev mmdebstrap iproute2"

# Open MPI refuses to start as root and more ranks than cores unless told otherwise,
# and looks long for fast networks, which one machine does not need. A rank that waits leaves
# its core to the ranks of other tests.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_pml=ob1 OMPI_MCA_mpi_yield_when_idle=1

tess_say() {
    printf '== %s\n' "$*"
}

tess_as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# The packages among the arguments that are not installed.
tess_missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
            grep -q '^install ok installed' || printf '%s ' "$package"
    done
}

# tess_install PACKAGE... ; a failure is the caller's to judge.
tess_install() {
    local missing
    if ! command -v apt-get >/dev/null 2>&1; then
        tess_say "not Debian or Ubuntu: please install the equivalents of: $*"
        return 0
    fi
    # shellcheck disable=SC2086
    missing=$(tess_missing_packages "$@")
    if [ -z "$missing" ]; then
        return 0
    fi
    tess_say "installing with apt-get: $missing"
    if [ -z "${TESS_APT_UPDATED:-}" ]; then
        tess_as_root apt-get update -qq || true
        TESS_APT_UPDATED=1
    fi
    # shellcheck disable=SC2086
    tess_as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

tess_setup_build() {
    # shellcheck disable=SC2086
    tess_install $TESS_BUILD_PACKAGES || {
        tess_say "apt-get failed; going on with what is installed"
    }
}

tess_setup_tests() {
    tess_setup_build
    # shellcheck disable=SC2086
    tess_install $TESS_TEST_PACKAGES || {
        tess_say "apt-get failed; going on with what is installed"
    }
}

tess_setup_peers() {
    local package
    for package in $TESS_PEER_PACKAGES; do
        tess_install "$package" || tess_say "$package is not available: its tests are skipped"
    done
}

# Sets TESS_TEST_PYTHON: the one given, else a virtual environment under $1 that sees
# Debian's numpy, astropy and casacore and adds ducc0 and h5py (peers; optional).
tess_setup_python() {
    local folder=$1
    if [ -n "${TESS_TEST_PYTHON:-}" ]; then
        return 0
    fi
    TESS_TEST_PYTHON=/usr/bin/python3
    [ -x "$TESS_TEST_PYTHON" ] || TESS_TEST_PYTHON=$(command -v python3)
    if [ ! -x "$folder/bin/python" ]; then
        tess_say "making a Python environment for the tests in $folder"
        "$TESS_TEST_PYTHON" -m venv --system-site-packages "$folder" || return 0
    fi
    local peer
    for peer in ducc0 h5py; do
        "$folder/bin/python" -c "import $peer" 2>/dev/null ||
            "$folder/bin/python" -m pip install -q --disable-pip-version-check "$peer" ||
            tess_say "$peer is not available: comparisons with it are skipped"
    done
    if ! "$folder/bin/python" -c 'import numpy, astropy' 2>/dev/null; then
        "$folder/bin/python" -m pip install -q --disable-pip-version-check \
            numpy astropy ||
            tess_say "numpy and astropy are not available: end-to-end tests are skipped"
    fi
    TESS_TEST_PYTHON=$folder/bin/python
}

# CASA and DP3 from the Python package index, 2 GB under $1, for the tests e2e.casa and e2e.dp3,
# which are skipped without them:
# `. tests/setup.sh; tess_setup_casa $HOME/casa; ctest --test-dir build -R 'e2e.(casa|dp3)'`.
tess_setup_casa() {
    TESS_CASA_PYTHON=$1/bin/python
    export TESS_CASA_PYTHON
    [ -x "$TESS_CASA_PYTHON" ] || python3 -m venv "$1" || return 1
    "$TESS_CASA_PYTHON" -m pip install -q --disable-pip-version-check \
        casatools casatasks casadata six dp3
}

# pyuvdata and xradio from the Python package index, under $1, for the test e2e.data, which is
# skipped without them: `. tests/setup.sh; tess_setup_data $HOME/data; ctest --test-dir build -R e2e.data`.
tess_setup_data() {
    TESS_DATA_PYTHON=$1/bin/python
    export TESS_DATA_PYTHON
    [ -x "$TESS_DATA_PYTHON" ] || python3 -m venv "$1" || return 1
    "$TESS_DATA_PYTHON" -m pip install -q --disable-pip-version-check pyuvdata "xradio[casacore]"
}

# EasyBuild, and what Spack checks the style of recipes with, from the Python package index, 150 MB under $1, for
# parts of the test e2e.packages: `. tests/setup.sh; tess_setup_linters $HOME/linters; ctest --test-dir build -R packages`.
tess_setup_linters() {
    TESS_LINT_PYTHON=$1/bin/python
    export TESS_LINT_PYTHON
    [ -x "$TESS_LINT_PYTHON" ] || python3 -m venv "$1" || return 1
    "$TESS_LINT_PYTHON" -m pip install -q --disable-pip-version-check easybuild pycodestyle black isort flake8
}

# tess_build FOLDER [cmake options]: configure once more and build; only $TESS_BUILD_TARGETS if
# these are given.
tess_build() {
    local folder=$1
    shift
    local generator=()
    mkdir -p "$folder"
    if [ ! -f "$folder/CMakeCache.txt" ] && command -v ninja >/dev/null 2>&1; then
        generator=(-G Ninja)
    fi
    cmake -S . -B "$folder" "${generator[@]}" "$@" >"$folder/build.log" 2>&1 || {
        cat "$folder/build.log"
        return 1
    }
    # shellcheck disable=SC2086  # several words
    cmake --build "$folder" -j "$(nproc)" ${TESS_BUILD_TARGETS:+--target $TESS_BUILD_TARGETS} >>"$folder/build.log" 2>&1 || {
        tail -n 60 "$folder/build.log"
        return 1
    }
}
