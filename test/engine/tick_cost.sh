#!/bin/sh
# tick_cost.sh BUILD_DIR - four times as many locks cost a client at most six times as many instructions, as valgrind counts them in
# the library: no work in a tick is a square of the number of locks. A notification costs the same, however many locks wait for other
# keys. Each once with a fault, to see that this can fail. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder for the builds}/tick_cost
mkdir -p "$folder/engine"
. test/lib/tap.sh
core=$(sed -n 's/^CORE = //p' Makefile)

# build [FILE FAULT] - tick_cost with the engine as it is, or after this sed command on a file of it
build() {
    # shellcheck disable=SC2086 # a list of words
    cp $core ./*.h "$folder/engine" || return 1
    if [ $# -eq 2 ]; then
        sed "$2" "$1" >"$folder/engine/$1"
        ! cmp -s "$1" "$folder/engine/$1" || { echo "the fault changes nothing: $2"; return 1; }
    fi
    # shellcheck disable=SC2046 # a list of words
    ${CC:-cc} -O1 -g -std=c99 -D_POSIX_C_SOURCE=200809L -I"$folder/engine" -Itest/lib -Itest/engine test/engine/tick_cost.c test/engine/fake.c \
        test/engine/mini.c $(printf "$folder/engine/%s " $core) -o "$folder/tick_cost"
}

# cost CASE LOCKS - the instructions of the files of the library; not of libc, nor of the simulated servers
cost() {
    timeout 300 valgrind --tool=callgrind --collect-atstart=no --toggle-collect=serve --callgrind-out-file="$folder/counts" \
        --log-file="$folder/valgrind" "$folder/tick_cost" "$@" >&2 || { cat "$folder/valgrind" >&2; return 1; }
    callgrind_annotate --threshold=100 --auto=no "$folder/counts" | tr -d , | awk -v files=" $core core.h redlock_private.h " '
        match($0, /[a-z_]+\.[ch]:/) && index(files, " " substr($0, RSTART, RLENGTH - 1) " ") { sum += $1 } END { print sum + 0 }'
}
is_linear() { # CASE FEW
    few=$(cost "$1" "$2") && many=$(cost "$1" $(($2 * 4))) || return 1
    echo "$1: $few instructions with $2 locks, $many with four times as many"
    [ "$few" -gt 10000 ] && [ "$many" -le $((few * 6)) ]
}
is_not_linear() {
    is_linear "$@" && return 1
    [ "$few" -gt 10000 ] && [ "$many" -gt $((few * 6)) ]
}

# is_level CASE - 10,000 waiting locks cost at most half more than 100, for the same notifications
is_level() {
    few=$(cost "$1" 100) && many=$(cost "$1" 10000) || return 1
    echo "$1: $few instructions with 100 waiting locks, $many with 10,000"
    [ "$few" -gt 10000 ] && [ "$many" -le $((few * 3 / 2)) ]
}
is_not_level() {
    is_level "$@" && return 1
    [ "$few" -gt 10000 ] && [ "$many" -gt $((few * 3 / 2)) ]
}

check 'built' build
check 'locks that are acquired at once, and released at once' is_linear burst 150
check 'locks that are extended at once' is_linear renewals 150
check 'locks that wait for one key, which goes from hand to hand' is_linear waiters 200
check 'the same in the wait queue' is_linear queue 40
check 'notifications of 50 keys, for locks that wait for different keys' is_level pushes
check 'of 50 leases, for waiters in different wait queues' is_level leases
check 'built with a fault' build redlock.c 's/next = other != NULL ? other->priv.heap.next : NULL;/next = other, other = NULL;/'
check 'a fault: locks that are due are not compared in pairs' is_not_linear renewals 150
check 'built with another fault' build wait.c 's/rl_extra_keys(lock) > 0$/1/'
check 'a fault: all waiters have the same hash' is_not_level pushes
done_testing
