#!/bin/sh
# instructions.sh BUILD_DIR - instructions that the library takes for an acquire and a release on five nodes: the same in each
# run, because servers and clock are simulated. The callbacks of the io table are not counted. The difference
# between a long and a short run, so that the set-up does not count.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1
set -- --toggle-collect=redlock_acquire --toggle-collect=redlock_release
for callback in dial ready transmit receive shut clock wall process entropy wait; do
    set -- "$@" --toggle-collect=fake_$callback
done

count() { # OPTION ... - of valgrind
    timeout 100 valgrind --tool=callgrind --collect-atstart=no "$@" --callgrind-out-file=/dev/null \
        --log-file="$build/instructions.log" "$build/instructions" "$pairs" "$gap_us"
    sed -n 's/.*Collected : *//p' "$build/instructions.log"
}

echo
echo 'Instructions of the library for each acquire + release, 5 nodes (target: 9500 or less, with net.c)'
for gap_us in 0 20; do
    pairs=100 few=$(count "$@")
    pairs=300 many=$(count "$@")
    case $gap_us in
    0) when='all replies arrive at once' ;;
    *) when='one reply at a time' ;;
    esac
    printf '%-28s %6d\n' "$when" $(((many - few) / 200))
done
