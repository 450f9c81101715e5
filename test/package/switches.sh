#!/bin/sh
# switches.sh BUILD - the feature switches of redlock_config.h, on and off in all combinations: each of these builds compiles
# without a warning with two compilers and passes the tests of the lock. A switch of an earlier version is refused.
# Each limit is accepted at its ends, and refused beyond. Needs CORE (the sources), WARN (the warnings) and POSIX of the Makefile.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
: "${CORE:?}" "${WARN:?}" "${POSIX:?}"
folder=$1/switches
mkdir -p "$folder"
. test/lib/tap.sh

features='MINIMAL FAIR'
minimal=-DREDLOCK_MINIMAL=1

# The list above has all switches of redlock_config.h.
are_all() {
    sed '1,/^\/\* ---- Features/d' redlock_config.h | sed -n 's/^#ifndef //p' | sort >"$folder/there"
    for each in $features; do echo "REDLOCK_$each"; done | sort >"$folder/here"
    diff "$folder/there" "$folder/here"
}

# compile COMPILER SOURCE OBJECT [FLAG ...]
compile() {
    compiler=$1
    source=$2
    object=$3
    shift 3
    # shellcheck disable=SC2086
    "$compiler" $WARN $POSIX -I. -Itest/lib -Itest/engine "$@" -c "$source" -o "$folder/$object"
}

# This object does not depend on the switches, so it is compiled once, and optimized.
shared() {
    compile gcc test/engine/mini.c mini.o -O2
}

# runs TEST [FLAG ...] - with the library in $objects
runs() {
    test=$1
    shift
    compile gcc test/*/"$test.c" test.o -O0 "$@" || return 1
    # shellcheck disable=SC2086
    gcc "$folder/test.o" $objects -o "$folder/$test" || return 1
    timeout 60 "$folder/$test" >"$folder/output" 2>&1 || {
        grep -a -e '^not ok' -e '^Bail' "$folder/output"
        return 1
    }
    grep -q -a '^1\.\.[1-9]' "$folder/output" # a plan with at least one test
}

# passes TESTS [FLAG ...] - the library and these tests, with these switches
passes() {
    tests=$1
    shift
    compile gcc test/engine/fake.c fake.o -O0 "$@" || return 1
    objects="$folder/mini.o $folder/fake.o"
    for part in $CORE; do
        compile clang "$part" clang.o -O0 -fsyntax-only "$@" || return 1
        compile gcc "$part" "${part%.c}.o" -O0 "$@" || return 1
        objects="$objects $folder/${part%.c}.o"
    done
    for each in $tests; do
        runs "$each" "$@" || return 1
    done
}

# look_at [FLAG ...] - the compiler's messages about each file of the library, without any further option
look_at() {
    : >"$folder/output"
    for part in $CORE extra/url.c; do
        gcc -std=c99 -I. -fsyntax-only "$@" "$part" 2>>"$folder/output" || refused=yes
    done
    cat "$folder/output"
}
# is_refused TEXT [FLAG ...] - by an error with this text, and by no other error
is_refused() {
    text=$1 refused=no
    shift
    look_at "$@"
    [ $refused = yes ] && grep -q "error:.*$text" "$folder/output" && ! grep 'error:' "$folder/output" | grep -v -q "$text"
}
# says TEXT [FLAG ...] - an error with this text; it may cause others, about sizes below zero
says() {
    text=$1 refused=no
    shift
    look_at "$@"
    [ $refused = yes ] && grep -q "error:.*$text" "$folder/output"
}
# passes_with FLAG ...
passes_with() {
    refused=no
    look_at -Werror "$@"
    [ $refused = no ]
}

check 'the features are those of redlock_config.h' are_all
check 'the file that does not depend on switches compiles' shared

locks=$(basename -s .c test/engine/lock_*_test.c | tr '\n' ' ')
check 'all features' passes "$locks" -DREDLOCK_FAIR=1
check 'fair left out' passes "$locks" -DREDLOCK_FAIR=0
check 'minimal' passes "$locks" $minimal
check 'minimal with labels' passes "$locks" $minimal -DREDLOCK_LABEL_MAX=24
check 'all without labels' passes "$locks" -DREDLOCK_LABEL_MAX=0

text='REDLOCK_FAIR is no part of a minimal build'
check 'refused: minimal with fair' is_refused "$text" $minimal -DREDLOCK_FAIR=1
text='notifications need RESP_DEPTH_MAX'
check 'refused: notifications without lists in lists' is_refused "$text" -DRESP_DEPTH_MAX=1

# Each limit: one below its range, the least, the most (for a key: a length that fits the largest send buffer), one above. Some
# errors cause others: about arrays below 0 bytes, about the send buffer.
while read -r name least most works; do
    most_flags= least_flags= alone=is_refused
    case $name in # other limits that must change with this one
    RESP_DEPTH_MAX) least_flags=$minimal ;;
    REDLOCK_KEY_MAX) most_flags=-DREDLOCK_SEND_MAX=65535 alone=says ;;
    esac
    text="$name must be $least..$most"
    check "refused: $name of $((least - 1))" says "$text" -D$name=$((least - 1))
    check "refused: $name of -1" says "$text" -D$name=-1
    # shellcheck disable=SC2086 # no flag, or one
    check "accepted: $name of $least" passes_with -D$name=$least $least_flags
    # shellcheck disable=SC2086
    check "accepted: $name of ${works:-$most}" passes_with -D$name="${works:-$most}" $most_flags
    check "refused: $name of $((most + 1))" $alone "$text" -D$name=$((most + 1))
done <<'END'
REDLOCK_NODES_MAX 1 16
REDLOCK_KEY_MAX 1 65535 20000
REDLOCK_LABEL_MAX 0 255
REDLOCK_ERROR_MAX 1 65535
REDLOCK_READ_MAX 1 32767
REDLOCK_OWED_MAX 0 16
REDLOCK_URL_MAX 21 65535
REDLOCK_PIPELINE_MAX 2 255
RESP_TEXT_MAX 20 255
RESP_DEPTH_MAX 1 8
RESP_SIZE_MAX 1024 2147483647
END
are_limits() { # the table above, and REDLOCK_SEND_MAX, which is checked below
    sed -n 's/^#ifndef \(RE[A-Z]*_[A-Z]*_MAX\)$/\1/p' redlock_config.h redlock.h resp.h extra/url.h | sort >"$folder/there"
    { sed -n 's/^\(RE[A-Z]*_[A-Z]*_MAX\) [0-9]* [0-9 ]*$/\1/p' test/package/switches.sh && echo REDLOCK_SEND_MAX; } | sort >"$folder/here"
    diff "$folder/there" "$folder/here"
}
check 'the table has all limits that can be set' are_limits
while read -r old text; do
    check "refused: the old name $old" is_refused "$text" -D$old=1
done <<'END'
RESP_OUT_MAX RESP_OUT_MAX is REDLOCK_SEND_MAX now
RESP_PIPELINE_MAX RESP_PIPELINE_MAX is REDLOCK_PIPELINE_MAX
REDLOCK_ERROR_TEXTS only REDLOCK_MINIMAL leaves out
REDLOCK_DIAGNOSIS only REDLOCK_MINIMAL leaves out
REDLOCK_TEXTS only REDLOCK_MINIMAL leaves out
REDLOCK_FENCING only REDLOCK_MINIMAL leaves out
REDLOCK_RESTART_GUARD only REDLOCK_MINIMAL leaves out
REDLOCK_NOTIFICATION only REDLOCK_MINIMAL leaves out
REDLOCK_RESP3 only REDLOCK_MINIMAL leaves out
REDLOCK_REPAIR only REDLOCK_MINIMAL leaves out
REDLOCK_AUTO_EXTEND only REDLOCK_MINIMAL leaves out
REDLOCK_MULTI_KEY only REDLOCK_MINIMAL leaves out
REDLOCK_NATIVE_RELEASE only REDLOCK_MINIMAL leaves out
REDLOCK_TRANSFER only REDLOCK_MINIMAL leaves out
REDLOCK_MARKER are gone
REDLOCK_DURABLE are gone
REDLOCK_POOL_MAX are gone
END
text='REDLOCK_SEND_MAX must be 1..65535'
check 'refused: a send buffer of 0 bytes' says "$text" -DREDLOCK_SEND_MAX=0
check 'refused: a send buffer of 65536 bytes' is_refused "$text" -DREDLOCK_SEND_MAX=65536
check 'accepted: a send buffer of 65535 bytes' passes_with -DREDLOCK_SEND_MAX=65535
holds() { # FLAG ... - finds the least size that compiles; one byte less is refused, in C99 and in C11
    least=1 most=4096
    while [ $least -lt $most ]; do
        middle=$(((least + most) / 2))
        if passes_with -DREDLOCK_SEND_MAX=$middle "$@" >/dev/null; then most=$middle; else least=$((middle + 1)); fi
    done
    echo "the least is $least"
    [ $least -gt 200 ] && [ $least -lt 2000 ] &&
        is_refused REDLOCK_SEND_MAX_is_too_small_for_the_longest_command -DREDLOCK_SEND_MAX=$((least - 1)) "$@" &&
        is_refused '"REDLOCK_SEND_MAX is too small for the longest command"' -DREDLOCK_SEND_MAX=$((least - 1)) "$@" -std=c11
}
check 'refused: a send buffer that does not hold the longest command' holds
check 'refused: the same in the minimal build' holds $minimal
check 'refused: a key that is too long for the send buffer' is_refused REDLOCK_SEND_MAX_is_too_small -DREDLOCK_KEY_MAX=16384

# What a program passes to redlock_init, so that a library with other limits refuses it.
sizes() { # FLAG ...
    gcc -std=c99 -I. "$@" "$folder/sizes.c" -o "$folder/sizes" && "$folder/sizes"
}
are_told_apart() {
    printf '#include "redlock.h"\n#include <stdio.h>\nint main(void)\n{\n    return printf("%%lu\\n", (unsigned long)REDLOCK_SIZES) < 0;\n}\n' \
        >"$folder/sizes.c"
    for fair in 0 1; do
        n=0
        while [ $((n += 1)) -le 16 ]; do sizes -DREDLOCK_FAIR=$fair -DREDLOCK_NODES_MAX=$n || return 1; done
        for text in 79 87 95 103; do sizes -DREDLOCK_FAIR=$fair -DRESP_TEXT_MAX=$text -DREDLOCK_ERROR_MAX=$((190 - text)) || return 1; done
    done >"$folder/output"
    [ "$(wc -l <"$folder/output")" -eq 40 ] && ! sort "$folder/output" | uniq -d | grep .
}
check 'other limits have other REDLOCK_SIZES' are_told_apart

for each in HOSTED $features; do
    check "refused: REDLOCK_$each of 2" is_refused 'must be 0 or 1' -DREDLOCK_$each=2
done
done_testing
