# shellcheck shell=bash
# Runs tests with ctest and adds up what became of them, in all folders together; sourced by
# tests/run.sh. A test that skips a part of itself passes: its reasons are listed and counted,
# so that nobody takes it for whole.
passed=0 failed=0 skipped=0 parts=0 skips=() failures=()

# count_of WORD FILE: a count at the head of ctest's XML file.
count_of() {
    sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

# list_skips FOLDER: a line for all that tests say they skipped, in the words of
# tests/oracle/e2e.py and of C programs (`skipped: REASON`) or of cmocka; once for all ranks.
list_skips() {
    awk 'FNR == NR {
             if (/<testcase .* status="notrun"/) { split($0, at, "\""); whole[at[2]] = 1 }
             next
         }
         /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
         /^( *skipped: |\[  SKIPPED \] [a-z_0-9]+$)/ {
             sub(/^( *skipped: |\[  SKIPPED \] )/, "")
             if (!seen[test, $0]++) print (test in whole ? "all" : "part") " of " test ": " $0
         }' "$1/junit.xml" "$1/Testing/Temporary/LastTest.log"
}

# list_failures FOLDER: a line for each check that failed, in the words of
# tests/oracle/e2e.py and of cmocka; at most ten of a test, and one for a test that names
# none.
list_failures() {
    awk 'FNR == NR {
             if (/<testcase .* status="fail"/) { split($0, at, "\""); left[at[2]] = 10 }
             next
         }
         /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
         /^( *FAILED |\[ +FAILED +\] )/ && left[test] > 0 {
             sub(/^( *FAILED +|\[ +FAILED +\] )/, "")
             print "failed in " test ": " $0
             --left[test]
         }
         END { for (test in left) if (left[test] == 10) print "failed: " test }
        ' "$1/junit.xml" "$1/Testing/Temporary/LastTest.log"
}

# run_tests FOLDER [ctest options]. One test more than there are cores: several wait for programs
# to start, for one another, or for time to pass.
run_tests() {
    local folder=$1 whole broken line
    shift
    rm -f "$folder/junit.xml"
    ctest --test-dir "$folder" -j $(($(nproc) + 1)) --output-on-failure --no-tests=error \
        --output-junit junit.xml "$@"
    if [ ! -s "$folder/junit.xml" ]; then
        failed=$((failed + 1))
        return
    fi
    broken=$(count_of failures "$folder/junit.xml")
    whole=$(count_of skipped "$folder/junit.xml")
    passed=$((passed + $(count_of tests "$folder/junit.xml") - broken - whole))
    failed=$((failed + broken))
    skipped=$((skipped + whole))
    while IFS= read -r line; do
        skips+=("$line")
        case $line in part*) parts=$((parts + 1)) ;; esac
    done < <(list_skips "$folder")
    while IFS= read -r line; do
        failures+=("$line")
    done < <(list_failures "$folder")
}

# Prints what was skipped and what failed, and last the line `N passed, N failed`.
print_tally() {
    tess_say "$skipped tests skipped, and $parts parts of others"
    if [ ${#skips[@]} -gt 0 ]; then
        printf '   %s\n' "${skips[@]}"
    fi
    if [ ${#failures[@]} -gt 0 ]; then
        printf '   %s\n' "${failures[@]}"
    fi
    echo "$passed passed, $failed failed"
}
