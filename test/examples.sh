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
grep -q 'too few nodes' "$folder/out" && grep -q 'No such file' "$folder/out" || fail "lock gives no reason"
"$build/examples/lock" a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 2>"$folder/out" && fail "lock with too many nodes succeeds"
grep -qx 'lock: at most 7 nodes' "$folder/out" || fail "lock with too many nodes: $(cat "$folder/out")"

# The host names of resolve are files here; each holds an address.
cat >"$folder/names.c" <<'END'
#include "redlock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int __wrap_redlock_resolve(const char *name, char *text, size_t size);
int __wrap_redlock_resolve(const char *name, char *text, size_t size)
{
    char path[200];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", getenv("NAMES"), name);
    if ((file = fopen(path, "r")) == NULL)
        return -1;
    if (fgets(text, (int)size, file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
    return 0;
}
END
gcc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -D_POSIX_C_SOURCE=200809L -I. examples/resolve.c "$folder/names.c" \
    "$build/libredlock.a" -Wl,--wrap=redlock_resolve -o "$folder/resolve" || fail "resolve does not compile"
for n in 1 2 3; do echo "unix:$folder/$n.sock" >"$folder/redis-$n"; done
NAMES=$folder tied "$folder/resolve" 20 redis-1 redis-2 redis-3 >"$folder/resolved" 2>&1 &
resolve=$!
until_so grep -q ', 3 of 3 nodes are connected' "$folder/resolved" || fail "resolve: $(cat "$folder/resolved")"
kill -KILL $server # the third server: it starts again at another address
start_server moved
until_so grep -q ', 2 of 3 nodes are connected' "$folder/resolved" || fail "resolve, one server gone: $(cat "$folder/resolved")"
echo "unix:$folder/moved.sock" >"$folder/redis-3"
until_so awk '/^redis-3 is .*moved/ { found = 1 } /, 3 of 3 nodes are connected/ && found { back = 1 } END { exit !back }' "$folder/resolved" ||
    fail "resolve, one server moved: $(cat "$folder/resolved")"
kill $resolve

# A limit of some milliseconds is missed while the machine is paused, so each example has three tries.
demo() { "$build/demo" >"$folder/out" && ! grep -q UNEXPECTED "$folder/out"; }
demo || demo || demo || fail "demo: $(cat "$folder/out")"

# When the demo is interrupted, it removes its folder and ends its five servers.
interrupted() {
    mkdir -p "$folder/tmp"
    : >"$folder/out"
    TMPDIR=$folder/tmp tied "$build/demo" >"$folder/out" 2>&1 &
    demo=$!
    until_so grep -q 'B waits' "$folder/out"
    its_folder=$(ls "$folder/tmp")
    its_servers=$(pgrep -P $demo) # redis-server rewrites its command line: only its parent identifies it
    kill -INT $demo
    wait $demo
    [ -n "$its_folder" ] && [ "$(echo "$its_servers" | wc -l)" -eq 5 ] && [ -z "$(ls "$folder/tmp")" ] || return 1
    for pid in $its_servers; do
        kill -0 "$pid" 2>/dev/null && return 1
    done
    return 0
}
interrupted || interrupted || interrupted || fail "demo, interrupted: its folder $its_folder or one of its servers $its_servers is left"
echo "examples: lock, resolve, demo, demo interrupted: passed"
