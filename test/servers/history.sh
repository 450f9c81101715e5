#!/bin/sh
# history.sh BUILD_DIR [PORCUPINE] - tests history.awk: with small histories; with random ones, beside a search through all orders;
# and with those of soak.c on a library without the majority, in which it must find two holders at once. PORCUPINE is a folder with
# the sources of that checker, to which Go is needed: it must come to the same verdicts, also on the histories of `make soak`. TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=${1:?folder for the builds}
folder=$build/history
porcupine=${2:-}
here=$(dirname "$0")
. test/lib/tap.sh
rm -rf "$folder/random" "$folder"/*.edn
mkdir -p "$folder/random"

judge() { awk -f "$here/history.awk" "$@"; }

events() { # "PROCESS TYPE F, ..." - as EDN
    echo "$1" | tr , '\n' | awk '{ printf "{:process %d :type :%s :f :%s :value nil :time %d :index %d}\n", $1, $2, $3, 10 * NR, NR - 1 }'
}
is_good() { events "$1" >"$folder/small.edn" && judge "$folder/small.edn"; }
is_bad() { # WORDS EVENTS - for the reason with these words
    events "$2" >"$folder/small.edn"
    says "$1"
}
says() {
    judge "$folder/small.edn" >"$folder/verdict" && return 1
    cat "$folder/verdict"
    grep -q "$1" "$folder/verdict"
}
held='0 invoke acquire, 0 ok acquire'
released="$held, 0 invoke release, 0 ok release"
check 'good: one holder' is_good "$held"
check 'good: one holder after the other' is_good "$released, 1 invoke acquire, 1 ok acquire"
check 'good: an acquire waits' is_good "$held, 1 invoke acquire, 0 invoke release, 1 ok acquire, 0 ok release"
check 'good: an acquire fails' is_good "$held, 1 invoke acquire, 1 fail acquire, 1 invoke acquire, 1 fail acquire"
check 'good: an acquire of unknown outcome' is_good "1 invoke acquire, 1 info acquire, $released"
check 'good: a release of unknown outcome' is_good "$held, 0 invoke release, 0 info release, 1 invoke acquire, 1 ok acquire"
check 'bad: two holders' is_bad 'process 1 acquired the lock, which process 0 holds since line 2' "$held, 1 invoke acquire, 1 ok acquire"
check 'bad: two holders, though a release comes at once' is_bad 'process 1 acquired' "1 invoke acquire, $held, 1 ok acquire, 0 invoke release, 0 ok release"
check 'bad: three holders' is_bad 'process 2 acquired the lock, which process 0' "$held, 1 invoke acquire, 1 ok acquire, 2 invoke acquire, 2 ok acquire"
check 'bad: an unknown outcome does not release' is_bad 'process 2 acquired' "1 invoke acquire, 1 info acquire, $held, 2 invoke acquire, 2 ok acquire"
check 'bad: acquired twice' is_bad 'which it holds' "$held, 0 invoke acquire, 0 ok acquire"
check 'bad: released twice' is_bad 'does not hold' "$released, 0 invoke release, 0 ok release"
check 'bad: two calls at once' is_bad 'invoke acquire after acquire' '0 invoke acquire, 0 invoke acquire, 0 ok acquire'
check 'bad: a call after an unknown outcome' is_bad 'after gone' "$released, 1 invoke acquire, 1 info acquire, 1 invoke acquire, 1 ok acquire"
check 'bad: an end without a call' is_bad 'after no invoke' '0 ok acquire'
check 'bad: a release fails' is_bad 'no such event' "$held, 0 invoke release, 0 fail release"
check 'bad: no holding' is_bad 'no holding' '0 invoke acquire, 0 fail acquire'

damaged() { # SED WORDS
    events "$released" | sed "$1" >"$folder/small.edn"
    says "$2"
}
check 'bad: a line is missing' damaged 3d 'out of order'
check 'bad: the time goes back' damaged 's/:time 30/:time 3/' 'out of order'
check 'bad: a line is no event' damaged '3s/.*/[]/' 'no event'
check 'bad: an event of nobody' damaged 's/:process 0//' 'no event'
refuses_empty() {
    events "$released" >"$folder/small.edn"
    : >"$folder/empty.edn"
    ! judge "$folder/small.edn" "$folder/empty.edn"
}
check 'bad: a file is empty' refuses_empty

# Both verdicts must be frequent.
random() {
    perl "$here/history_search.pl" "$1" 1000 "$folder/random" >"$folder/expected" || return 1
    grep -c NOT "$folder/expected" | awk '{ print $1 " of 1000 are not linearizable"; exit $1 < 200 || $1 > 800 }' || return 1
    judge "$folder"/random/*.edn | sed -n 's/linearizable: .*/linearizable/p' >"$folder/found"
    diff "$folder/expected" "$folder/found"
}
check 'random histories: as a search through all orders says' random 1

# A run of three seconds has about 15 overlaps, by chance; so there are up to three runs.
mutant() {
    for run in 1 2 3; do
        echo "run $run"
        "$folder/soak" 0.1 "$build/soak/clock_shim.so" "$folder" 1 >"$folder/soak.out" 2>&1
        judge "$folder/lock-0.edn" "$folder/lock-1.edn" && continue
        judge "$folder/lock-0.edn" "$folder/lock-1.edn" | grep -q 'acquired the lock, which process' && return 0
    done
    return 1
}
check 'without the majority: two holders are found' mutant

others() {
    mkdir -p "$folder/go" && cp "$here/history.go" "$folder/go" || return 1
    (cd "$folder/go" && printf 'module history\ngo 1.16\nrequire github.com/anishathalye/porcupine v0.0.0\nreplace github.com/anishathalye/porcupine => %s\n' \
        "$porcupine" >go.mod && go build -o ../porcupine .) || return 1
    set -- "$folder"/random/*.edn "$folder"/lock-?.edn
    [ ! -e "$build/soak/lock-1.edn" ] || set -- "$@" "$build"/soak/lock-?.edn
    judge "$@" | sed -n 's/linearizable: .*/linearizable/p' >"$folder/found"
    "$folder/porcupine" "$@" | diff "$folder/found" -
}
[ -z "$porcupine" ] || check 'Porcupine comes to the same verdicts' others
done_testing
