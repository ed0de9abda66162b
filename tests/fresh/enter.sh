#!/usr/bin/env bash
# Runs a command as root in a folder that holds a whole system, with an empty environment;
# started by bare_machine.sh in mount and process namespaces of its own, which take along
# what is mounted and what is left running.
#
#   enter.sh FOLDER CACHE COMMAND...     CACHE/archives keeps the packages that apt fetches,
#                                        CACHE/compiled what compilers have made
set -eu
root=$1 cache=$2
shift 2
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount --bind "$cache/archives" "$root/var/cache/apt/archives"
mkdir -p "$root/var/cache/compiled"
mount --bind "$cache/compiled" "$root/var/cache/compiled"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"
