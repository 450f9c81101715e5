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
set -- --toggle-collect=main
for callback in dial ready transmit receive shut clock wall process entropy wait; do
    set -- "$@" --toggle-collect=fake_$callback
done

count() { # PROGRAM PAIRS GAP_US LOCKS OPTION ... - of valgrind
    program=$1 pairs=$2 gap_us=$3 locks=$4
    shift 4
    timeout 100 valgrind --tool=callgrind --collect-atstart=no "$@" --callgrind-out-file="$build/instructions.$pairs" \
        --log-file="$build/instructions.log" "$build/$program" "$pairs" "$gap_us" "$locks"
    sed -n 's/.*Collected : *//p' "$build/instructions.log"
}

by_file() { # OPTION ... - of the first row
    for pairs in 300 600; do
        count instructions $pairs 0 1 "$@" >/dev/null
    done
    for pairs in 300 600; do
        callgrind_annotate --threshold=100 "$build/instructions.$pairs" | tr -d , |
            sed -n "s/^ *\([0-9]*\) (.*) *\([^ ]*\)\.\([chS]\):.*/$pairs \1 \2.\3/p"
    done | awk '
        { sub(/.*\//, "", $3); sum[$3 ~ /\.[ch]$/ ? $3 : "libc"] += ($1 == 600 ? $2 : -$2) / 300 }
        END { for (file in sum) if (sum[file] >= 10) printf "    %-42s%12d\n", file, sum[file] }' | sort -k 2 -rn
}

row() { # WHAT GAP_US LOCKS OPTION ...
    printf '%-46s' "$1"
    gap_us=$2 locks=$3
    shift 3
    for from in instructions instructions-single; do
        few=$(count $from 300 "$gap_us" "$locks" "$@")
        many=$(count $from 600 "$gap_us" "$locks" "$@")
        printf '%12d' $(((many - few) / 300))
    done
    echo
}

echo
echo 'Instructions of the library for each acquire + release, 5 nodes'
printf '%-46s%12s%12s\n' '' files 'single file'
row 'one lock, all replies arrive at once' 0 1 "$@"
row 'one lock, one reply at a time' 20 1 "$@"
row '64 locks at a time, all replies arrive at once' 0 64 "$@"
row '64 locks at a time, two nodes reply later' 20 64 "$@"
echo 'The first line, file by file:'
by_file "$@"
