#!/bin/sh
# instructions.sh BUILD_DIR - instructions that the library takes for an acquire and a release on five nodes, built from its files
# and from the single file, which the compiler optimizes as a whole. They are the same in each run, because servers and clock
# are simulated. The callbacks of the io table are not counted. The difference between a long and a short run, so that the
# set-up does not count.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1
set -- --toggle-collect=redlock_acquire --toggle-collect=redlock_release
for callback in dial ready transmit receive shut clock wall process entropy wait; do
    set -- "$@" --toggle-collect=fake_$callback
done

count() { # PROGRAM PAIRS GAP_US OPTION ... - of valgrind
    program=$1 pairs=$2 gap_us=$3
    shift 3
    timeout 100 valgrind --tool=callgrind --collect-atstart=no "$@" --callgrind-out-file=/dev/null \
        --log-file="$build/instructions.log" "$build/$program" "$pairs" "$gap_us"
    sed -n 's/.*Collected : *//p' "$build/instructions.log"
}

echo
echo 'Instructions of the library for each acquire + release, 5 nodes (target: 9500 or less, with net.c)'
printf '%-28s %6s %11s\n' '' files 'single file'
for gap in 0 20; do
    case $gap in
    0) when='all replies arrive at once' ;;
    *) when='one reply at a time' ;;
    esac
    for from in instructions instructions-single; do
        few=$(count $from 100 $gap "$@")
        many=$(count $from 300 $gap "$@")
        echo $(((many - few) / 200))
    done | xargs printf '%-28s %6d %11d\n' "$when"
done
