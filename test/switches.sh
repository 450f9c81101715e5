#!/bin/sh
# switches.sh BUILD - the feature switches of redlock.h: all on, none (REDLOCK_MINIMAL), each alone on top of none with
# what it needs, each alone left out of all. Each of these builds compiles without a warning with two compilers and
# passes lock_test, some also safety_test. What can't work is an #error with a sentence. Needs CORE, the sources, WARN,
# the warnings, and POSIX of the Makefile.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
: "${CORE:?}" "${WARN:?}" "${POSIX:?}"
folder=$1/switches
mkdir -p "$folder"
. test/tap.sh

features='REPAIR AUTO_EXTEND RESP3 NOTIFICATION MULTI_KEY FENCING RESTART_GUARD MARKER DURABLE NATIVE_RELEASE DIAGNOSIS ERROR_TEXTS'
minimal=-DREDLOCK_MINIMAL=1

needs_of() {
    case $1 in
    NOTIFICATION) echo RESP3 ;;
    MARKER) echo FENCING RESTART_GUARD ;;
    esac
}

# The switches that redlock.h has between the head of the features and the first limit behind them.
are_all() {
    awk '/^\/\* Features/ { on = 1 } /^#ifndef REDLOCK_OWED_MAX/ { on = 0 } on && /^#ifndef/ { print $2 }' \
        redlock.h | sort >"$folder/there"
    for each in MINIMAL $features; do echo "REDLOCK_$each"; done | sort >"$folder/here"
    diff "$folder/there" "$folder/here"
}

# compile COMPILER SOURCE OBJECT [FLAG ...]
compile() {
    compiler=$1
    source=$2
    object=$3
    shift 3
    # shellcheck disable=SC2086
    "$compiler" $WARN $POSIX -I. -Itest "$@" -c "$source" -o "$folder/$object"
}

# What stays the same, as it knows no switch: worth the time to make it fast.
shared() {
    compile gcc resp.c resp.o -O2 && compile gcc test/mini.c mini.o -O2
}

# runs TEST [FLAG ...] - with the library in $objects
runs() {
    test=$1
    shift
    compile gcc "test/$test.c" test.o -O0 "$@" || return 1
    # shellcheck disable=SC2086
    gcc "$folder/test.o" $objects -o "$folder/$test" || return 1
    timeout 60 "$folder/$test" >"$folder/output" 2>&1 || {
        grep -a -e '^not ok' -e '^Bail' "$folder/output"
        return 1
    }
    grep -q -a '^1\.\.[1-9]' "$folder/output" # the plan, and not of nothing
}

# passes TESTS [FLAG ...] - the library and these tests, with these switches
passes() {
    tests=$1
    shift
    compile gcc test/fake.c fake.o -O0 "$@" || return 1
    objects="$folder/resp.o $folder/mini.o $folder/fake.o"
    for part in $CORE; do
        [ "$part" != resp.c ] || continue
        compile clang "$part" clang.o -O0 "$@" || return 1
        compile gcc "$part" "${part%.c}.o" -O0 "$@" || return 1
        objects="$objects $folder/${part%.c}.o"
    done
    for each in $tests; do
        runs "$each" "$@" || return 1
    done
}

# is_refused TEXT [FLAG ...] - by an #error with this text, and by nothing else
is_refused() {
    text=$1
    shift
    ! compile gcc redlock.c refused.o -O0 "$@" 2>"$folder/output" || return 1
    cat "$folder/output"
    grep -q "error:.*$text" "$folder/output" && [ "$(grep -c 'error:' "$folder/output")" -eq 1 ]
}

check 'the features are those of redlock.h' are_all
check 'what all builds share compiles' shared

both='lock_test safety_test'
check 'all features' passes "$both"
check 'minimal' passes "$both" $minimal
for each in $features; do
    flags=
    for one in $each $(needs_of $each); do
        flags="$flags -DREDLOCK_$one=1"
    done
    case $each in
    REPAIR | FENCING | RESTART_GUARD) tests=$both ;; # those on which the safety of the lock rests
    *) tests=lock_test ;;
    esac
    # shellcheck disable=SC2086
    check "minimal with $each $(needs_of $each)" passes "$tests" $minimal $flags
done
for each in $features; do # and of those that need it
    case $each in
    REPAIR | RESP3 | DIAGNOSIS) tests=$both ;;
    *) tests=lock_test ;;
    esac
    check "all without $each" passes "$tests" -DREDLOCK_$each=0
done

text='REDLOCK_NOTIFICATION needs REDLOCK_RESP3'
check 'refused: notification without RESP3' is_refused "$text" -DREDLOCK_NOTIFICATION=1 -DREDLOCK_RESP3=0
check 'refused: minimal with notification alone' is_refused "$text" $minimal -DREDLOCK_NOTIFICATION=1
text='REDLOCK_NOTIFICATION needs RESP_DEPTH_MAX'
check 'refused: notification without lists in lists' is_refused "$text" -DRESP_DEPTH_MAX=1
text='REDLOCK_MARKER needs REDLOCK_FENCING'
check 'refused: markers without fencing tokens' is_refused "$text" -DREDLOCK_MARKER=1 -DREDLOCK_FENCING=0
check 'refused: markers without the restart guard' is_refused "$text" -DREDLOCK_MARKER=1 -DREDLOCK_RESTART_GUARD=0
check 'refused: minimal with markers alone' is_refused "$text" $minimal -DREDLOCK_MARKER=1
check 'refused: and with fencing tokens' is_refused "$text" $minimal -DREDLOCK_MARKER=1 -DREDLOCK_FENCING=1
check 'refused: and with the restart guard' is_refused "$text" $minimal -DREDLOCK_MARKER=1 -DREDLOCK_RESTART_GUARD=1
done_testing
