#!/usr/bin/env bash
# What tests/tally.sh makes of tests that pass, fail, and skip all or a part of themselves.
#
#   bash tests/support/tally_check.sh FOLDER     FOLDER is made anew
set -eu
tests=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$1"
mkdir -p "$1"
cat >"$1/CTestTestfile.cmake" <<'TESTS'
add_test(good true)
add_test(bad false)
add_test(checks sh -c "echo '  ok      a'; echo '  FAILED  b: 2 (limit 1)'; exit 1")
add_test(whole sh -c "echo 'skipped: no device'; exit 77")
add_test(cases sh -c "echo '  skipped: no ranks'; exit 77")
add_test(part sh -c "echo '  ok a'; echo '  skipped: no casacore'; echo 'not skipped: b'")
add_test(ranks sh -c "for k in 1 2; do echo '[  SKIPPED ] test_two'; done
echo '[  SKIPPED ] 1 test(s), listed below:'")
set_tests_properties(whole cases PROPERTIES SKIP_RETURN_CODE 77)
TESTS
cat >"$1/expected" <<'TALLY'
== 2 tests skipped, and 2 parts of others
   all of cases: no ranks
   all of whole: no device
   part of part: no casacore
   part of ranks: test_two
   failed in checks: b: 2 (limit 1)
   failed: bad
3 passed, 2 failed
TALLY
tess_say() {
    echo "== $*"
}
# shellcheck source=tests/tally.sh
. "$tests/tally.sh"
run_tests "$1" >/dev/null 2>&1 || true
mapfile -t skips < <(printf '%s\n' "${skips[@]}" | sort)
print_tally | diff "$1/expected" -
rm -rf "$1"
