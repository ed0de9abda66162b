#!/usr/bin/env bash
# What a new user does first, on a bare Debian 12: the commands under "Build" in README.md, the
# commands of docs/manual/, jobs/quickstart.sh, and tests/run.sh up to its first tests. All of
# these run in a chroot of a minimal system with an empty environment: once as root, once as
# a user who has sudo.
#
#   bash tests/fresh/bare_machine.sh [root] [visitor]     default: one after the other
#
# What the visitor's compilers make is optimised little, which takes them half the time; root's
# compile as they are told.
#
# Needs root, mmdebstrap and python3; exit status 77 (skipped) without them. The minimal system comes
# from this machine's own apt sources. The folder $TESS_TEST_CACHE, by default
# ~/.cache/tessera-tests, keeps that system and the packages that are installed into it.
set -eu
cd "$(dirname "$0")/../.."
release=bookworm
cache=${TESS_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tessera-tests}
machine=$cache/bare-machine # the chroot; removed at the end
settings=$cache/apt.conf

say() {
    printf '== %4d s: %s\n' $SECONDS "$*"
}

skip() {
    echo "skipped: $*"
    exit 77
}

check_needs() {
    local tool
    [ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
    for tool in mmdebstrap unshare flock git python3; do
        command -v $tool >/dev/null || skip "$tool is not installed"
    done
    unshare --mount --pid --fork true 2>/dev/null ||
        skip "this machine does not let root make namespaces"
    git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1 ||
        skip "what belongs to the project is known from git, and this is no checkout"
}

# Prints the files that name apt sources of the release.
list_sources() {
    grep -lsE "^[^#]*[[:space:]]$release" /etc/apt/sources.list \
        /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources || true
}

# Prints how this machine's apt reaches its sources, proxies among it.
print_apt_settings() {
    apt-config dump | grep '^Acquire::' | grep -v 'Proxy-Auto-Detect'
    if [ -n "${http_proxy:-}" ]; then
        echo "Acquire::http::Proxy \"$http_proxy\";"
    fi
    if [ -n "${https_proxy:-}" ]; then
        echo "Acquire::https::Proxy \"$https_proxy\";"
    fi
}

# Puts the minimal system into $base, unless it is there from an earlier run with the same
# sources.
make_base() {
    local sources
    mapfile -t sources < <(list_sources)
    [ ${#sources[@]} -gt 0 ] || skip "no apt source of this machine names $release"
    print_apt_settings >"$settings"
    base=$cache/$release-$(cat "$settings" "${sources[@]}" | cksum | cut -d ' ' -f 1).tar
    if [ -s "$base" ]; then
        say "the minimal system is $base"
        return 0
    fi
    say "making the minimal system $base"
    rm -f "$cache/$release"-*.tar "$cache/$release.tmp"
    mmdebstrap --quiet --mode=root --variant=minbase --format=tar --aptopt="$settings" \
        "$release" "$cache/$release.tmp" "${sources[@]}"
    mv "$cache/$release.tmp" "$base"
}

# inside COMMAND...: runs it as root on the bare machine.
inside() {
    unshare --mount --pid --fork --kill-child bash tests/fresh/enter.sh \
        "$machine" "$cache/archives" "$@"
}

# Gives the bare machine what its apt needs to reach and to trust this machine's sources:
# names of hosts, keys, and certificates, of which a minimal system has none.
carry_apt_needs() {
    local folder
    cp /etc/resolv.conf /etc/hosts "$machine/etc/"
    for folder in /usr/share/keyrings /etc/apt/keyrings /usr/local/share/ca-certificates; do
        if [ -d $folder ]; then
            mkdir -p "$machine$folder"
            cp -rn $folder/. "$machine$folder"
        fi
    done
    mkdir -p "$machine/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$machine/etc/ssl/certs/" 2>/dev/null || true
}

# Puts compilers before those that will be installed, which they call with less to do.
hurry_compilers() {
    local name
    for name in cc c++; do
        printf '#!/bin/sh\nexec /usr/bin/%s "$@" -O1\n' $name >"$machine/usr/local/bin/$name"
        chmod 755 "$machine/usr/local/bin/$name"
    done
}

# Unpacks the minimal system, with a user `visitor`, and gives the project's files to $1.
unpack_machine() {
    local owner=$1 home=/root
    remove_machine
    mkdir "$machine"
    tar -C "$machine" -xf "$base"
    # dpkg waits for the disk after each file, which takes minutes where others use it, too.
    echo force-unsafe-io >"$machine/etc/dpkg/dpkg.cfg.d/unsafe-io"
    carry_apt_needs
    if [ "$owner" != root ]; then
        home=/home/$owner
        hurry_compilers
        inside sh -c "apt-get update -qq && apt-get install -y -qq sudo &&
            useradd --create-home --shell /bin/bash $owner &&
            echo '$owner ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$owner" \
            >"$cache/log" 2>&1 </dev/null || fail "$owner cannot be given sudo"
    fi
    mkdir "$machine$home/tessera"
    tracked_files | tar --null -T - -cf - | tar -C "$machine$home/tessera" -xf -
    inside chown -R "$owner:" "$home/tessera"
}

# Those of the project's files that are there, as they are now, committed or not.
tracked_files() {
    local file
    git -c safe.directory='*' ls-files -z | while IFS= read -r -d '' file; do
        if [ -e "$file" ]; then
            printf '%s\0' "$file"
        fi
    done
}

remove_machine() {
    rm -rf --one-file-system "$machine"
}

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

fail() {
    tail -n 40 "$cache/log"
    say "FAILED $*"
    exit 1
}

# step USER WHAT COMMANDS: the commands, by USER in the project's folder, must succeed.
step() {
    local user=$1 what=$2
    say "$user: $what"
    printf 'set -e\ncd ~/tessera\n%s\n' "$3" >"$machine/tmp/step.sh"
    inside su --login "$user" --command 'bash /tmp/step.sh' >"$cache/log" 2>&1 </dev/null ||
        fail "$user: $what: $(grep -aE '^E: |CMake Error|[Ee]rror:' "$cache/log" | head -n 1)"
}

check_user() {
    local user=$1
    say "$user: unpacking the minimal system"
    unpack_machine "$user"
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

check_needs
mkdir -p "$cache/archives/partial"
exec 9>"$cache/lock"
flock 9
make_base
trap remove_machine EXIT
[ $# -gt 0 ] || set -- root visitor
for user in "$@"; do
    check_user "$user"
done
say "a bare $release runs README's Build section, the manual, the quickstart and the first tests"
