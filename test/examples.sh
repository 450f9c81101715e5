#!/bin/sh
# examples.sh BUILD_DIR - runs the examples against real servers; the demo also when it is interrupted.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1
folder=$(mktemp -d)
trap 'kill $pids 2>/dev/null; wait; rm -rf "$folder"' EXIT
pids= nodes=

fail() {
    echo "examples: $*" >&2
    exit 1
}

for n in 1 2 3; do # three servers on unix sockets: no port to be found
    redis-server --port 0 --unixsocket "$folder/$n.sock" --save '' --dir "$folder" \
        --logfile "$folder/$n.log" &
    pids="$pids $!"
    nodes="$nodes unix:$folder/$n.sock"
done
for n in 1 2 3; do
    tries=0
    until redis-cli -s "$folder/$n.sock" ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "redis-server $n does not come up"
        sleep 0.05
    done
done
"$build/examples/lock" $nodes | grep -q '^held for ' || fail "lock"
"$build/examples/lock" unix:/nonexistent >"$folder/out" 2>&1 && fail "lock without servers succeeds"
grep -q 'no quorum' "$folder/out" && grep -q 'No such file' "$folder/out" || fail "lock gives no reason"

"$build/demo" >"$folder/out" || fail "demo: $(cat "$folder/out")"
grep -q UNEXPECTED "$folder/out" && fail "demo: $(cat "$folder/out")"
# Interrupted in the middle: its servers and its folder must be gone.
mkdir "$folder/tmp"
: >"$folder/interrupted" # a file of its own: the other one still tells of the first run
TMPDIR=$folder/tmp "$build/demo" >"$folder/interrupted" 2>&1 &
demo=$!
tries=0
until grep -q 'B waits' "$folder/interrupted"; do
    tries=$((tries + 1))
    [ $tries -lt 400 ] || fail "demo does not start"
    sleep 0.05
done
ls "$folder/tmp" | grep -q redlock || fail "demo has no folder"
servers=$(pgrep -P $demo) # redis-server rewrites its command line: known by its parent only
[ "$(echo "$servers" | wc -l)" -eq 5 ] || fail "demo has not five servers: $servers"
kill -INT $demo
wait $demo
[ -z "$(ls "$folder/tmp")" ] || fail "demo leaves its folder behind"
for pid in $servers; do
    kill -0 "$pid" 2>/dev/null && fail "demo leaves a server behind"
done
echo "examples: lock, demo, demo interrupted: as they should be"
