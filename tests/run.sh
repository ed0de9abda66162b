#!/usr/bin/env bash
# All tests, from a fresh machine: installs what is missing, builds, runs.
#
#   bash tests/run.sh           the fast tier
#   bash tests/run.sh --full    and the large matrices
#   bash tests/run.sh --first   a few, to see that a machine can build and run them
#
# Options: --full, --first, --no-install (use what is there), --no-sanitize (skip that build),
# --no-fuzz (skip the fuzzers).
# With TESS_TEST_FRESH=1 in the environment the fast tier has tests/fresh/ as a user, too.
# The last line is `N passed, N failed`; exit status 0 when none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/setup.sh
. tests/tally.sh

full=no first=no install=yes sanitize=yes fuzz=yes
for argument in "$@"; do
    case $argument in
    --full) full=yes ;;
    --first) first=yes ;;
    --no-install) install=no ;;
    --no-sanitize) sanitize=no ;;
    --no-fuzz) fuzz=no ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
done
[ $install = yes ] && tess_setup_tests
[ $install = yes ] && [ $first = no ] && tess_setup_peers
tess_setup_python "$PWD/build-venv"
cores=$(nproc)
# Whether clang is there with libFuzzer.
has_fuzzer() {
    printf 'int LLVMFuzzerTestOneInput(const char *data, long size) { return !data && size; }' |
        clang -x c -fsanitize=fuzzer -o /dev/null - 2>/dev/null
}

finish() {
    print_tally
    [ "$failed" -eq 0 ]
    exit
}

# gold links the many programs in a third of the time.
common=(-DTESS_TESTS=ON -DTESS_TEST_PYTHON="$TESS_TEST_PYTHON" -DTESS_TEST_NPROC="$cores"
    "-DCMAKE_EXE_LINKER_FLAGS=$(command -v ld.gold >/dev/null && echo -fuse-ld=gold)")

# Options for nvcc. Code that no GPU of this machine will run has to compile, and soon.
device_options() {
    [ -e /dev/nvidiactl ] || { nvcc --help 2>/dev/null | grep -q Ofast-compile && echo "-Ofc max"; }
}

tess_say "building in build/ (Release)"
[ $first = yes ] && TESS_BUILD_TARGETS="tessera unit_test_status mpi_test_comm"
if ! tess_build build -DCMAKE_BUILD_TYPE=Release -DTESS_SANITIZE= -DTESS_CUDA=AUTO \
    -DCMAKE_CUDA_ARCHITECTURES=90 "-DCMAKE_CUDA_FLAGS=$(device_options)" "${common[@]}"; then
    failed=$((failed + 1))
    finish
fi
if [ $first = yes ]; then
    tess_say "testing: a unit, two ranks, the program"
    run_tests build -R '^(unit\.status|mpi\.comm\.np2|e2e\.model_wcs)$'
    finish
fi

# The fast tier leaves out the loops for AVX-512, which take minutes to compile here, and does not
# sanitize those that its tests run on other machines alone. Places of variables, which reports do
# not name, would take as long as the rest: hence -g1.
build_sanitized() {
    local all=OFF native=ON
    [ $full = yes ] && all=ON native=OFF
    tess_build build-asan -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1" \
        "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DTESS_SANITIZE=address,undefined \
        -DTESS_CUDA=EMULATED -DTESS_AVX512=$all -DTESS_NATIVE_ISA=$native "${common[@]}"
}

# To optimise the code would take the fast tier longer than the fuzzers run.
build_fuzzers() {
    local optimise
    optimise=$([ $full = yes ] && echo -O1 || echo -O0)
    tess_build build-fuzz -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=$optimise -g1" \
        -DCMAKE_C_COMPILER=clang -DTESS_FUZZ=ON -DTESS_SANITIZE=address,undefined \
        -DTESS_MPI=OFF -DTESS_OPENMP=OFF -DTESS_MS=OFF -DTESS_CUDA=OFF \
        -DTESS_MEMKIND=OFF -DTESS_TESTS=OFF -DTESS_TEST_PYTHON="$TESS_TEST_PYTHON"
}

# Tests wait: for programs to start, for one another, for signals. The other builds take that
# time at the lowest priority, so that tests lose none of theirs. An interrupt ends them, too.
sanitized='' fuzzers=''
trap 'trap - TERM; kill 0' INT
if [ $sanitize = yes ]; then
    tess_say "building in build-asan/ meanwhile (address and undefined-behaviour sanitizers)"
    (renice -n 19 -p "$BASHPID" >/dev/null; build_sanitized) &
    sanitized=$!
fi
if [ $fuzz = yes ] && has_fuzzer; then
    tess_say "building in build-fuzz/ meanwhile (clang, TESS_FUZZ=ON)"
    (renice -n 19 -p "$BASHPID" >/dev/null; build_fuzzers) &
    fuzzers=$!
fi

tess_say "testing: 1 to 4 ranks, end to end"
if [ $full = yes ]; then
    export TESS_TEST_MATRIX=1 # all combinations of mpi.session
    run_tests build
elif [ "${TESS_TEST_FRESH:-}" = 1 ]; then
    run_tests build -LE full
else
    run_tests build -LE 'full|fresh'
fi

if [ $sanitize = yes ]; then
    tess_say "testing with sanitizers"
    if wait "$sanitized"; then
        # Four ranks on few cores are slow under sanitizers and find nothing more. The fast
        # tier takes one rank, for leaks, and three, for what passes between unequal ranks.
        if [ $full = yes ]; then
            run_tests build-asan -LE 'full|fresh' -E 'np4$|bench|wsclean'
        else
            run_tests build-asan -L 'unit|mpi' -LE slow -E 'np[24]$'
        fi
    else
        failed=$((failed + 1))
    fi
fi

# Damaged input for the readers: 4 s for each fuzzer, or five minutes.
if [ -n "$fuzzers" ]; then
    tess_say "testing with fuzzers"
    if ! wait "$fuzzers"; then
        failed=$((failed + 1))
    elif [ $full = yes ]; then
        run_tests build-fuzz -L full
    else
        run_tests build-fuzz -LE full
    fi
elif [ $fuzz = yes ]; then
    tess_say "clang with libFuzzer is not there: the fuzzers are skipped"
    skipped=$((skipped + 1))
fi

# Without MPI: all tests of one rank, and jobs from file to image.
if [ $full = yes ]; then
    tess_say "building in build-serial/ (TESS_MPI=OFF)"
    if tess_build build-serial -DCMAKE_BUILD_TYPE=Release -DTESS_MPI=OFF \
        "${common[@]}"; then
        run_tests build-serial -R '^(unit|oracle|mpi)\.|^e2e\.(oracle_cases|one_plan)$'
    else
        failed=$((failed + 1))
    fi
fi
finish
