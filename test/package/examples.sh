#!/bin/sh
# examples.sh BUILD_DIR - runs the examples against real servers; the demo also when it is interrupted. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1
. test/lib/servers.sh
. test/lib/tap.sh
nodes=''

for n in 1 2 3; do
    start_server $n
    nodes="$nodes unix:$folder/$n.sock"
done
lock() { # shellcheck disable=SC2086 # a list of words
    "$build/examples/lock" $nodes | grep '^held for '
}
check 'lock' lock
without_servers() {
    ! "$build/examples/lock" unix:/nonexistent >"$folder/out" 2>&1 && grep 'too few nodes' "$folder/out" &&
        grep 'No such file' "$folder/out"
}
check 'lock without servers fails, and says why' without_servers
too_many() {
    ! "$build/examples/lock" a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 2>"$folder/out" && grep -x 'lock: at most 7 nodes' "$folder/out"
}
check 'lock refuses too many nodes' too_many

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
check 'resolve compiles' gcc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -D_POSIX_C_SOURCE=200809L -I. examples/resolve.c \
    "$folder/names.c" "$build/libredlock.a" -Wl,--wrap=redlock_resolve -o "$folder/resolve"
for n in 1 2 3; do echo "unix:$folder/$n.sock" >"$folder/redis-$n"; done
NAMES=$folder tied "$folder/resolve" 20 redis-1 redis-2 redis-3 >"$folder/resolved" 2>&1 &
resolve=$!
resolved() { # COMMAND ... - succeeds for the output so far
    until_so "$@" "$folder/resolved" || { cat "$folder/resolved"; return 1; }
}
check 'resolve connects' resolved grep ', 3 of 3 nodes are connected'
kill -KILL $server # the third server: it starts again at another address
start_server moved
check 'resolve, one server gone' resolved grep ', 2 of 3 nodes are connected'
echo "unix:$folder/moved.sock" >"$folder/redis-3"
check 'resolve finds a server at its new address' resolved awk \
    '/^redis-3 is .*moved/ { found = 1 } /, 3 of 3 nodes are connected/ && found { back = 1 } END { exit !back }'
kill $resolve

# A limit of some milliseconds is missed while the machine is paused, so each example has three tries.
demo() { "$build/demo" >"$folder/out" && ! grep UNEXPECTED "$folder/out" || { cat "$folder/out"; return 1; }; }
thrice() { "$@" || "$@" || "$@"; }
check 'demo' thrice demo

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
        kill -0 "$pid" 2>/dev/null && { echo "server $pid is left"; return 1; }
    done
    return 0
}
check 'demo, interrupted: its folder and its servers are gone' thrice interrupted
done_testing
