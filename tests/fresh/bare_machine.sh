#!/usr/bin/env bash
# What a new user does first, on a bare Debian 12: the commands under "Build" in README.md, the
# commands of docs/manual/, jobs/quickstart.sh, and tests/run.sh up to its first tests. All of
# these run in a chroot of a minimal system with an empty environment: once as root, once as
# a user who has sudo.
#
#   bash tests/fresh/bare_machine.sh [root] [visitor]     default: one after the other
#
# What the visitor's compilers make is hardly optimised, which takes them half the time; root's
# compile as they are told.
#
# machine.sh says what that needs.
set -eu
cd "$(dirname "$0")/../.."
. tests/fresh/machine.sh

# Prints the commands of the first block under "## Build" in README.md.
print_build_block() {
    awk '/^## / { here = ($0 == "## Build") }
         here && /^```/ { if (inblock) exit; inblock = 1; next }
         inblock' README.md
}

# Prints the commands of docs/manual/ for the user $1. Before them come the settings that the
# manual names for root, who needs no sudo.
print_manual() {
    if [ "$1" = root ]; then
        echo 'sudo() { "$@"; }'
        echo 'export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1'
        # shellcheck disable=SC2016  # the bare machine's shell expands this
        echo 'export PATH=~/.local/bin:$PATH'
    fi
    python3 tests/docs/manual_commands.py
}

check_user() {
    local user=$1
    say "$user: unpacking the minimal system"
    unpack_machine "$user"
    if [ "$user" != root ]; then
        hurry_compilers
    fi
    step "$user" "the commands of README's Build section" "$(print_build_block)
tessera --version"
    step "$user" "the commands of docs/manual/" "$(print_manual "$user")"
    grep -a '^== .*\.md' "$cache/log"
    step "$user" "bash jobs/quickstart.sh" "bash jobs/quickstart.sh
test -s out/quickstart/meerkat-image.png"
    step "$user" "bash tests/run.sh --first" "bash tests/run.sh --first"
    tail -n 1 "$cache/log"
    grep -qE '^[1-9][0-9]* passed, 0 failed$' "$cache/log" || fail "$user: no test passed"
}

begin_machine
[ $# -gt 0 ] || set -- root visitor
for user in "$@"; do
    check_user "$user"
done
say "a bare $release runs README's Build section, the manual, the quickstart and the first tests"
