# What the scripts of this folder share, which source it in the project's folder: a chroot of a
# minimal Debian 12 with an empty environment, in which steps run as root or as another user.
# Needs root, mmdebstrap and python3; exit status 77 (skipped) without them. The minimal system comes
# from this machine's own apt sources. The folder $TESS_TEST_CACHE, by default
# ~/.cache/tessera-tests, keeps that system and the packages that are installed into it.
# shellcheck shell=bash
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
        "$machine" "$cache" "$@"
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
        inside sh -c "apt-get update -qq && apt-get install -y -qq sudo &&
            useradd --create-home --shell /bin/bash $owner &&
            echo '$owner ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$owner" \
            >"$cache/log" 2>&1 </dev/null || fail "$owner cannot be given sudo"
    fi
    mkdir "$machine$home/tessera"
    tracked_files | tar --null -T - -cf - | tar -C "$machine$home/tessera" -xf -
    inside chown -R "$owner:" "$home/tessera"
}

# Puts compilers before those that will be installed, which they call with less to do: they optimise
# nothing but the loops that this processor runs, and those little, and copy what they have compiled
# before, also in other machines' folders: names of files of the project are compared from the folder
# of the build, those of the system from the root.
hurry_compilers() {
    local name loops=-mavx2
    grep -qw avx512vl /proc/cpuinfo && loops=-mavx512vl
    inside sh -c "apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache" \
        >"$cache/log" 2>&1 </dev/null || fail "no ccache"
    printf '%s\n' 'cache_dir = /var/cache/compiled' 'umask = 000' 'hash_dir = false' \
        'max_size = 500M' >"$machine/etc/ccache.conf"
    for name in cc c++; do
        cat >"$machine/usr/local/bin/$name" <<END
#!/bin/sh
top=\${PWD#/}
case "\$*" in *$loops*_isa.c*) level=-O1 ;; *) level=-O0 ;; esac
CCACHE_BASEDIR=/\${top%%/*} exec ccache /usr/bin/$name "\$@" \$level
END
        chmod 755 "$machine/usr/local/bin/$name"
    done
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

# One script at a time has the machine, which goes at its end.
begin_machine() {
    check_needs
    mkdir -p "$cache/archives/partial" "$cache/compiled"
    chmod 1777 "$cache/compiled"
    exec 9>"$cache/lock"
    flock 9
    make_base
    trap remove_machine EXIT
}
