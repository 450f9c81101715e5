#!/bin/sh
# fresh.sh BUILD_DIR SUITE COMPILER TARGET ... - a new Debian system of this suite in BUILD_DIR/fresh, with make and this compiler
# (gcc or clang) and nothing else. In a clone of the last commit there it follows README: first the quick start, whose lock.c stays
# in the checkout, then `make TARGET` for each. Needs root and mmdebstrap. The system stays for a look at it, until the next run.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
suite=${2:?SUITE=bookworm or SUITE=trixie} compiler=$3
mkdir -p "$1/fresh"
root=$(cd "$1/fresh" && pwd)/$suite-$compiler
shift 3
[ "$(id -u)" -eq 0 ] || { echo 'fresh: only root can make a system' >&2; exit 1; }
[ $# -gt 0 ] || { echo 'fresh: no targets' >&2; exit 1; }

# inside COMMAND - in the checkout of the new system. Its processes end with the command, and its mounts with its processes.
inside() {
    # shellcheck disable=SC2016 # the variables are those of the inner shell
    timeout --foreground 7200 unshare --pid --fork --kill-child --mount-proc="$root/proc" sh -c '
        mount --rbind /dev "$1/dev" && exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "cd /root/redlock; $2"' sh "$root" "$1"
}
# step TITLE COMMAND ... - shows the end of its output if it fails
step() {
    title=$1 start=$(date +%s)
    shift
    if "$@" >"$root.log" 2>&1; then
        echo "fresh: $suite, $compiler: $title: passed, $(($(date +%s) - start)) s"
    else
        tail -n 40 "$root.log" >&2
        echo "fresh: $suite, $compiler: $title: FAILED, see $root.log" >&2
        exit 1
    fi
}

make_system() {
    rm -rf "$root"
    mmdebstrap --variant=minbase --include="make,$compiler,libc6-dev" "$suite" "$root"
    cp /etc/resolv.conf "$root/etc"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # packages start no servers
    chmod +x "$root/usr/sbin/policy-rc.d"
    git clone -q --no-hardlinks . "$root/root/redlock"
}
step 'a new system' make_system
# shellcheck disable=SC2016
step 'quick start' inside '
    awk "/^\`\`\`c\$/ { inside = 1; next } /^\`\`\`/ { inside = 0 } inside && !done; /^}/ { done = inside }" README.md >lock.c
    make -s servers >servers.log 2>&1 &
    tries=0
    until grep -q REDLOCK_NODES servers.log; do tries=$((tries + 1)); [ $tries -lt 600 ]; sleep 0.5; done
    sh -euc "$(sed -n "1s,^/\* \(.*\) \*/\$,\1,p" lock.c)" | grep "held for"
    make cli
    export REDLOCK_NODES=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003
    build/redlock run nightly-backup -- echo "no other host runs this now"'
for target in "$@"; do
    step "make $target" inside "make $target"
    [ "$target" != test ] || sed -n '/^What ran/,$p' "$root.log"
done
