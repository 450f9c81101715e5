#!/bin/sh
# switches.sh BUILD - all 64 combinations of the six feature switches: each compiles without a warning and passes
# lock_test, or is an #error. Needs WARN, the warnings of the Makefile, and POSIX.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
: "${WARN:?}" "${POSIX:?}"
folder=$1/switches
mkdir -p "$folder"
. test/tap.sh

switches='REDLOCK_NOTIFICATION REDLOCK_FENCING REDLOCK_MARKER REDLOCK_MULTI_KEY REDLOCK_NATIVE_RELEASE REDLOCK_DURABLE'
tests=lock_test # safety_test would take a minute more; test-lean and others run it

# compile SOURCE OBJECT [FLAG ...]
compile() {
    source=$1
    object=$2
    shift 2
    # shellcheck disable=SC2086
    ${CC:-cc} $WARN $POSIX -I. -Itest "$@" -c "$source" -o "$folder/$object"
}

# What stays the same, as it knows no switch: worth the time to make it fast.
shared() {
    compile resp.c resp.o -O2 && compile test/fake.c fake.o -O2 && compile test/mini.c mini.o -O2
}

# passes [FLAG ...] - the library and its tests, with these switches
passes() {
    objects=
    for each in client redlock round node command text; do
        compile $each.c $each.o -O0 "$@" || return 1
        objects="$objects $folder/$each.o"
    done
    for each in $tests; do
        compile "test/$each.c" "$each.o" -O0 "$@" || return 1
        # shellcheck disable=SC2086
        ${CC:-cc} "$folder/$each.o" $objects "$folder/resp.o" "$folder/fake.o" "$folder/mini.o" \
            -o "$folder/$each" || return 1
        timeout 60 "$folder/$each" >"$folder/output" 2>&1 || {
            grep -a -e '^not ok' -e '^Bail' "$folder/output"
            return 1
        }
        grep -q -a '^1\.\.[1-9]' "$folder/output" || return 1 # the plan, and not of nothing
    done
}

# is_refused TEXT [FLAG ...] - by an #error with this text, and by nothing else
is_refused() {
    text=$1
    shift
    ! compile redlock.c refused.o -O0 "$@" 2>"$folder/output" || return 1
    cat "$folder/output"
    grep -q "error:.*$text" "$folder/output" && [ "$(grep -c 'error:' "$folder/output")" -eq 1 ]
}

check 'what all combinations share compiles' shared
combination=0
while [ $combination -lt 64 ]; do
    flags=''
    off=''
    bits=$combination
    for switch in $switches; do
        flags="$flags -D$switch=$((1 - bits % 2))"
        [ $((bits % 2)) -eq 0 ] || off="$off ${switch#REDLOCK_}"
        bits=$((bits / 2))
    done
    # shellcheck disable=SC2086
    case $flags in
    *FENCING=0*MARKER=1*) check "refused: without$off" is_refused 'REDLOCK_MARKER needs REDLOCK_FENCING' $flags ;;
    *) check "without${off:- nothing}" passes $flags ;;
    esac
    combination=$((combination + 1))
done
done_testing
