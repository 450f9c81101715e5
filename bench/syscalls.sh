#!/bin/sh
# syscalls.sh BUILD_DIR [SHORT LONG] - system calls and user-space instructions per acquire + release, of
# the lower bound and of the library: the difference between a long and a short run, so that the setup does
# not count. Under strace and valgrind the client is slow, and nearly all replies have arrived at the first
# poll; the benchmark itself counts the calls of an undisturbed run.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1 short=${2:-200} long=${3:-2200}
. test/lib/servers.sh
start_nodes 5

only() { # KIND PAIRS
    echo "$build/bench --only $1 --pairs $2 --nodes $nodes"
}
calls() { # KIND PAIRS
    timeout 200 strace -f -c -o "$folder/calls" $(only "$1" "$2") >/dev/null
    awk '$1 ~ /^[0-9.]+$/ && $NF != "total" { print $NF, $4 }' "$folder/calls"
}
instructions() { # KIND PAIRS
    timeout 200 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --log-file="$folder/instructions" $(only "$1" "$2") >/dev/null
    sed -n 's/.*Collected : *//p' "$folder/instructions"
}

echo
echo "Per acquire + release, under strace and callgrind (target: no more calls than the lower bound)"
printf '%-8s %9s %9s %9s %9s %9s %9s %13s\n' '' sendto recvfrom poll getrandom other all instructions
for kind in bound library; do
    calls $kind "$short" >"$folder/short"
    calls $kind "$long" >"$folder/long"
    few=$(instructions $kind "$short")
    many=$(instructions $kind "$long")
    awk -v kind=$kind -v pairs=$((long - short)) -v instructions=$(((many - few) / (long - short))) '
        { all += each = (NR == FNR ? -$2 : $2) / pairs }
        $1 ~ /^(sendto|recvfrom|poll|getrandom)$/ { of[$1] += each; next }
        { of["other"] += each }
        END { printf "%-8s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %13d\n", kind, of["sendto"], of["recvfrom"],
                     of["poll"], of["getrandom"], of["other"], all, instructions }' "$folder/short" "$folder/long"
done
