#!/bin/sh
# syscalls.sh BUILD_DIR - system calls and user-space instructions per acquire + release, of the floor and
# of the library: the difference between a long and a short run, so that setting up does not count.
# These figures do not depend on how fast or busy the machine is, but for how many answers one poll finds.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1 short=200 long=2200
folder=$(mktemp -d)
mkfifo "$folder/stdin"
"$build/bench" --serve <"$folder/stdin" >"$folder/nodes" &
exec 3>"$folder/stdin"
trap 'exec 3>&-; wait; rm -rf "$folder"' EXIT
tries=0
until grep -q : "$folder/nodes"; do
    tries=$((tries + 1))
    [ $tries -lt 400 ] || { echo "bench: no servers" >&2; exit 1; }
    sleep 0.05
done
nodes=$(cat "$folder/nodes")

calls() { # KIND PAIRS
    strace -c -o "$folder/calls" "$build/bench" --only "$1" "$2" $nodes >/dev/null
    awk '$1 ~ /^[0-9.]+$/ && $NF != "total" { print $NF, $4 }' "$folder/calls"
}
instructions() { # KIND PAIRS
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$folder/instructions" \
        "$build/bench" --only "$1" "$2" $nodes >/dev/null 2>&1
    sed -n 's/.*Collected : *//p' "$folder/instructions"
}

echo
echo "System calls and user-space instructions per acquire + release (target: no more calls than the floor)"
for kind in floor library; do
    calls $kind $short >"$folder/short"
    calls $kind $long >"$folder/long"
    awk -v kind=$kind -v pairs=$((long - short)) '
        NR == FNR { before[$1] = $2; next }
        { each = ($2 - before[$1]) / pairs; if (each >= 0.005) { line = line sprintf("  %s %.2f", $1, each); all += each } }
        END { printf "%-8s calls %.2f:%s\n", kind, all, line }' "$folder/short" "$folder/long"
    few=$(instructions $kind $short)
    many=$(instructions $kind $long)
    printf '%-8s instructions %d\n' $kind $(((many - few) / (long - short)))
done
