#!/bin/sh
# examples.sh BUILD_DIR - runs the examples against real servers; the demo also when it is interrupted.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1
. test/servers.sh
nodes=''

fail() {
    echo "examples: $*" >&2
    exit 1
}

for n in 1 2 3; do
    start_server $n
    nodes="$nodes unix:$folder/$n.sock"
done
# shellcheck disable=SC2086 # a list of words
"$build/examples/lock" $nodes | grep -q '^held for ' || fail "lock"
"$build/examples/lock" unix:/nonexistent >"$folder/out" 2>&1 && fail "lock without servers succeeds"
grep -q 'no quorum' "$folder/out" && grep -q 'No such file' "$folder/out" || fail "lock gives no reason"

# What must be done within some milliseconds fails while the machine stands still, so three times each.
demo() { "$build/demo" >"$folder/out" && ! grep -q UNEXPECTED "$folder/out"; }
demo || demo || demo || fail "demo: $(cat "$folder/out")"

# In the middle: it had a folder and five servers, and has left nothing of them.
interrupted() {
    mkdir -p "$folder/tmp"
    : >"$folder/out"
    TMPDIR=$folder/tmp tied "$build/demo" >"$folder/out" 2>&1 &
    demo=$!
    until_so grep -q 'B waits' "$folder/out"
    its_folder=$(ls "$folder/tmp")
    its_servers=$(pgrep -P $demo) # redis-server rewrites its command line: known by its parent only
    kill -INT $demo
    wait $demo
    [ -n "$its_folder" ] && [ "$(echo "$its_servers" | wc -l)" -eq 5 ] && [ -z "$(ls "$folder/tmp")" ] || return 1
    for pid in $its_servers; do
        kill -0 "$pid" 2>/dev/null && return 1
    done
    return 0
}
interrupted || interrupted || interrupted || fail "demo, interrupted: it had $its_folder and $its_servers, and left something"
echo "examples: lock, demo, demo interrupted: as they should be"
